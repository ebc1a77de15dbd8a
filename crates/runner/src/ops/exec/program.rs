//! Checks whether a program can be run. The check is made before the first unit.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{Access, access};

use super::super::OpError;

/// The number of bytes at the start of a program's file from which its format is recognized. The kernel reads the same
/// number of bytes.
const HEAD: u64 = 256;

/// Checks that the file at `path` looks like one that the kernel can run, without running it.
///
/// # Errors
/// The file does not exist, is not a regular file, is not executable, is a text that does not begin with `#!`, or names
/// an interpreter that does not exist.
pub(super) fn check(path: &Path) -> Result<(), OpError> {
    let shown = path.display();
    let refuse = |what: String, help: String| Err(OpError::new(what, help));
    match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let help =
                "give the path of a program that is there; a name without a slash is looked up on the search path";
            return refuse(format!("there is no program {shown}"), help.to_owned());
        }
        Err(error) => return refuse(format!("{shown} cannot be run: {error}"), "check the path".to_owned()),
        Ok(found) if found.is_dir() => {
            return refuse(format!("{shown} is a folder"), "name the program in it".to_owned());
        }
        Ok(found) if !found.is_file() => {
            return refuse(format!("{shown} is not a regular file"), "name a program".to_owned());
        }
        Ok(_) => {}
    }
    if access(path, Access::EXEC_OK).is_err() {
        let help = format!("`chmod +x {shown}`, or begin with what runs it: `exec = [\"sh\", \"{shown}\", …]`");
        return refuse(format!("{shown} is not executable"), help);
    }
    let mut head = Vec::new();
    // If the file may be executed but not read, the check ends here.
    if File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head)).is_err() {
        return Ok(());
    }
    match interpreter(&head) {
        Some(Some(interpreter)) if !interpreter.exists() => refuse(
            format!("{shown} needs the interpreter {}, which does not exist", interpreter.display()),
            "correct its first line, or install that program".to_owned(),
        ),
        None if is_text(&head) => refuse(
            format!("{shown} does not name its interpreter"),
            "give it a first line such as `#!/bin/sh`".to_owned(),
        ),
        _ => Ok(()),
    }
}

/// The interpreter that a script's first line names. The outer `None` means that the file does not begin with `#!`. The
/// inner `None` means that the first line contains no absolute path, or that `head` ends before the line does.
fn interpreter(head: &[u8]) -> Option<Option<&Path>> {
    let rest = head.strip_prefix(b"#!")?;
    let line = rest.split(|byte| *byte == b'\n').next().unwrap_or(rest).trim_ascii();
    let is_cut = head.len() as u64 == HEAD && !rest.contains(&b'\n');
    let name = line.split(u8::is_ascii_whitespace).next().filter(|name| name.starts_with(b"/") && !is_cut);
    Some(name.map(|name| Path::new(OsStr::from_bytes(name))))
}

/// Whether the file is a text. The head of every binary format that a kernel executes contains bytes that no text
/// contains.
fn is_text(head: &[u8]) -> bool {
    !head.contains(&0) && !head.starts_with(b"\x7fELF")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::check;

    #[test]
    fn what_cannot_be_run_is_told_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let said = |name: &str, mode: u32, content: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            check(&path).map_err(|error| format!("{}; {}", error.message, error.help))
        };
        for (name, mode, content, reason) in [
            ("plain", 0o644, &b"#!/bin/sh\n"[..], "is not executable; `chmod +x"),
            ("bare", 0o755, b"echo hello\n", "does not name its interpreter; give it a first line"),
            ("empty", 0o755, b"", "does not name its interpreter"),
            (
                "lost",
                0o755,
                b"#!/no/such/interpreter -x\n",
                "needs the interpreter /no/such/interpreter, which does not exist",
            ),
        ] {
            let error = said(name, mode, content).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
        assert!(check(folder.path()).unwrap_err().message.contains("is a folder"));
        assert!(check(&folder.path().join("none")).unwrap_err().message.contains("there is no program"));
        for content in [&b"#!/bin/sh\n"[..], b"#! /bin/sh -e\necho", b"MZ\0\0", b"#!sh\n"] {
            said("sound", 0o755, content).unwrap();
        }
        check(Path::new("/bin/sh")).unwrap();
    }
}
