//! `write`: writes the payload to a file.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use millstream_flow::{Cx, Failure};

use super::Op;
use super::failing::io_failure;
use super::place::{self, Existing, Placing};
use super::safe_path::PathTemplate;
use crate::file::template::Template;
use crate::record::Record;

/// See the [module](self).
pub(super) struct Write {
    path: PathTemplate,
    existing: IfExists,
    /// The permissions in octal. If they are not given, the new file gets the permissions of the unit's own file.
    mode: Option<Template>,
}

/// How a file that exists is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IfExists {
    Fail,
    Skip,
    Replace,
}

impl Write {
    pub(super) fn new(path: &Template, overwrite: bool, skip_existing: bool, mode: Option<&Template>) -> Self {
        let existing = match (overwrite, skip_existing) {
            (_, true) => IfExists::Skip,
            (true, false) => IfExists::Replace,
            (false, false) => IfExists::Fail,
        };
        Self { path: PathTemplate::new(path), existing, mode: mode.cloned() }
    }
}

impl Op for Write {
    fn run(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure> {
        let path = self.path.render_file(record)?;
        // A file that exists is detected before anything is written, so that a second run over the same input writes
        // nothing. The file may also appear later; the rename, which does not replace a file, then fails.
        if self.existing != IfExists::Replace && path.symlink_metadata().is_ok() {
            return self.exists(&path);
        }
        let mode = self.mode.as_ref().map(|mode| asked(mode, record)).transpose()?;
        let failed = |error, path: &Path| io_failure("write", path, &error);
        let (placing, mut file) = Placing::create_with(path.clone(), mode.map_or(record.permissions(), |_| 0o600))
            .map_err(|error| failed(error, &path))?;
        record.payload.each(cx, |piece| file.write_all(piece).map_err(|error| failed(error, &path)))?;
        if let Some(mode) = mode {
            // Permissions are set after the content is written, because a read-only file could not be written.
            file.set_permissions(Permissions::from_mode(mode)).map_err(|error| failed(error, &path))?;
        }
        place::close(file).map_err(|error| failed(error, &path))?;
        let existing = if self.existing == IfExists::Replace { Existing::Replace } else { Existing::Keep };
        match placing.put(existing) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.exists(&path),
            Err(error) => Err(failed(error, &path)),
        }
    }

    fn idempotent(&self) -> bool {
        true
    }
}

impl Write {
    /// The outcome if the file already exists.
    fn exists(&self, path: &Path) -> Result<(), Failure> {
        let what = match path.metadata() {
            Ok(found) if found.is_dir() => return Err(is_a_folder(path)),
            _ if self.existing == IfExists::Fail => {
                return Err(Failure::permanent(format!(
                    "{} exists and is kept; `overwrite = true` would replace it, `skip_existing = true` would count it as \
                     written",
                    path.display()
                )));
            }
            Ok(found) if found.is_file() => return Ok(()),
            Ok(_) => "not a regular file",
            Err(error) if error.kind() == io::ErrorKind::NotFound => "a symbolic link that leads nowhere",
            Err(error) => return Err(io_failure("look for", path, &error)),
        };
        Err(Failure::permanent(format!(
            "{} is {what}, which does not count as written; remove it, or let `overwrite = true` replace it",
            path.display()
        )))
    }
}

/// The permissions of the new file.
fn asked(mode: &Template, record: &Record) -> Result<u32, Failure> {
    let text = mode.render(record).map_err(|error| Failure::from(error).to_permanent())?;
    permissions(&text)
        .ok_or_else(|| Failure::permanent(format!("`{mode}` is not a file mode: {}", String::from_utf8_lossy(&text))))
}

/// Parses permissions in octal. Bits beyond the nine permission bits are dropped, so data cannot make a program run as
/// another user.
pub fn permissions(text: &[u8]) -> Option<u32> {
    let is_octal = (1..=4).contains(&text.len()) && text.iter().all(|byte| (b'0'..=b'7').contains(byte));
    let text = str::from_utf8(text).ok().filter(|_| is_octal)?;
    u32::from_str_radix(text, 8).ok().map(|mode| mode & 0o777)
}

/// The failure for a folder that has the file's name.
fn is_a_folder(path: &Path) -> Failure {
    Failure::permanent(format!("cannot write {}: it is a folder", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::Write;
    use crate::file::template::Template;
    use crate::ops::one_stage::run;
    use crate::record::Record;

    fn write(folder: &Path, overwrite: bool, skip_existing: bool) -> Write {
        let path = Template::parse(&format!("{}/{{line}}", folder.display())).unwrap();
        Write::new(&path, overwrite, skip_existing, None)
    }

    fn record(name: &str, payload: &str) -> Record {
        let mut record = Record::line(name.into());
        record.payload = payload.as_bytes().to_vec().into();
        record
    }

    #[test]
    fn permissions_are_as_asked_whatever_the_mask() {
        let folder = tempfile::tempdir().unwrap();
        let path = Template::parse(&format!("{}/{{line}}", folder.path().display())).unwrap();
        for (mode, bits) in [("444", 0o444), ("0666", 0o666), ("4755", 0o755), ("0", 0)] {
            let write = Write::new(&path, true, false, Some(&Template::parse(mode).unwrap()));
            run(write, record("file", "content")).unwrap();
            assert_eq!(fs::metadata(folder.path().join("file")).unwrap().permissions().mode() & 0o7777, bits, "{mode}");
        }
        let write = Write::new(&path, true, false, Some(&Template::parse("{line}").unwrap()));
        let error = run(write, record("rwx", "")).unwrap_err();
        assert!(error.contains("`{line}` is not a file mode: rwx"), "{error}");
    }

    fn entries(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn parents_are_made_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        run(write(folder.path(), false, false), record("a/b/c", "content")).unwrap();
        assert_eq!(fs::read(folder.path().join("a/b/c")).unwrap(), b"content");
        assert_eq!(entries(&folder.path().join("a/b")), 1);
    }

    #[test]
    fn an_existing_file_is_kept_unless_the_flow_says_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("f");
        fs::write(&file, "old").unwrap();
        let error = run(write(folder.path(), false, false), record("f", "new")).unwrap_err();
        assert!(error.contains("exists and is kept") && error.contains("overwrite = true"), "{error}");
        run(write(folder.path(), false, true), record("f", "new")).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"old");
        run(write(folder.path(), true, false), record("f", "new")).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(entries(folder.path()), 1);
    }

    #[test]
    fn a_dangling_link_is_an_existing_name() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/nowhere/at/all", folder.path().join("f")).unwrap();
        assert!(run(write(folder.path(), false, false), record("f", "new")).is_err());
    }

    #[test]
    fn only_a_regular_file_counts_as_written() {
        let folder = tempfile::tempdir().unwrap();
        let link = |name: &str, to: &Path| std::os::unix::fs::symlink(to, folder.path().join(name)).unwrap();
        fs::write(folder.path().join("file"), "old").unwrap();
        link("sound", &folder.path().join("file"));
        link("dangling", "/nowhere/at/all".as_ref());
        link("device", "/dev/null".as_ref());
        link("folder", folder.path());
        let skip = |name| run(write(folder.path(), false, true), record(name, "new"));
        skip("sound").unwrap();
        for (name, what) in [
            ("dangling", "a symbolic link that leads nowhere"),
            ("device", "not a regular file"),
            ("folder", "a folder"),
        ] {
            let error = skip(name).unwrap_err();
            assert!(error.contains(what), "{name}: {error}");
        }
        run(write(folder.path(), true, false), record("dangling", "new")).unwrap();
        assert_eq!(fs::read(folder.path().join("dangling")).unwrap(), b"new");
    }

    #[test]
    fn what_is_made_of_a_closed_file_is_no_more_open() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        fs::write(folder.path().join("usual"), "").unwrap();
        let usual = mode(&folder.path().join("usual"));
        for (source, most) in
            [(0o600, 0o600), (0o644, 0o644), (0o640, 0o600), (0o604, 0o600), (0o400, 0o600), (0o777, 0o666)]
        {
            let mut unit = record("made", "content");
            unit.mode = Some(0o100_000 | source);
            run(write(folder.path(), true, false), unit).unwrap();
            assert_eq!(mode(&folder.path().join("made")), most & usual, "{source:o}");

            // Without a `read` stage, the permissions come from the unit's own file.
            let file = folder.path().join("source");
            fs::write(&file, "").unwrap();
            fs::set_permissions(&file, PermissionsExt::from_mode(source)).unwrap();
            let mut unit =
                Record::file(file.as_os_str().as_encoded_bytes().to_vec(), folder.path().as_os_str().len() + 1);
            unit.payload = b"content".to_vec().into();
            let path = Template::parse(&format!("{}/of-{{rel}}", folder.path().display())).unwrap();
            run(Write::new(&path, true, false, None), unit).unwrap();
            assert_eq!(mode(&folder.path().join("of-source")), most & usual, "{source:o}");
            fs::remove_file(&file).unwrap();
        }
    }

    #[test]
    fn a_parent_that_is_no_folder_is_said() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("f"), "").unwrap();
        let error = run(write(folder.path(), false, false), record("f/g", "new")).unwrap_err();
        assert!(error.contains("cannot write") && error.contains("Not a directory"), "{error}");
    }

    #[test]
    fn a_folder_in_the_files_place_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("f")).unwrap();
        for (overwrite, skip) in [(true, false), (false, true), (false, false)] {
            let error = run(write(folder.path(), overwrite, skip), record("f", "new")).unwrap_err();
            assert!(error.contains("folder") || error.contains("directory"), "{error}");
            for name in ["f/", "", "."] {
                let error = run(write(folder.path(), overwrite, skip), record(name, "new")).unwrap_err();
                assert!(error.contains("a file needs a name"), "{name}: {error}");
            }
        }
        assert_eq!(entries(folder.path()), 1);
    }
}
