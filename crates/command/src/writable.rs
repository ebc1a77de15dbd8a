//! Checks whether a file can be written. A run checks this before it begins, rather than after its work.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::screen::shown;
use crate::temporary;

/// The error for a path at which no file can be written.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be written: {source}; {help}", shown::path(path))]
pub struct NotWritable {
    /// The file.
    pub path: PathBuf,
    /// The system's error.
    pub source: io::Error,
    /// The remedy.
    pub help: String,
}

/// How a file will be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// The new content follows the present content of the file.
    Append,
    /// A new file replaces the old file.
    Replace,
}

/// Checks that the file at `path` can be written, or created if there is no such file. The check creates another file
/// in the same folder, because permissions alone do not show that a file system is full or read-only.
///
/// # Errors
/// [`NotWritable`], which contains the remedy.
pub fn check(path: &Path, way: Way) -> Result<(), NotWritable> {
    check_listed(path, way, |_| ())
}

/// As [`check`], for a command that has a list of its temporary files. `list` adds the temporary file of the check to
/// that list, before the file is created, and returns the entry. Once the file has been removed, the entry is dropped.
/// If the file cannot be removed, the entry is not dropped, so that the file stays in the list.
///
/// # Errors
/// As [`check`].
pub fn check_listed<E>(path: &Path, way: Way, list: impl FnOnce(&Path) -> E) -> Result<(), NotWritable> {
    let refuse = |source: io::Error, help: String| Err(NotWritable { path: path.to_owned(), source, help });
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    match fs::metadata(folder) {
        Err(error) => return refuse(error, format!("make the folder {} first", shown::path(folder))),
        Ok(found) if !found.is_dir() => {
            return refuse(io::ErrorKind::NotADirectory.into(), format!("{} is not a folder", shown::path(folder)));
        }
        Ok(_) => {}
    }
    if let Ok(found) = fs::metadata(path) {
        if found.is_dir() {
            return refuse(io::ErrorKind::IsADirectory.into(), "name a file in it".to_owned());
        }
        if let Err(error) = access(path, Access::WRITE_OK) {
            return refuse(error.into(), "choose a file you may write to".to_owned());
        }
        if way == Way::Append {
            return Ok(());
        }
    }
    if way == Way::Replace
        && let Err(error) = check_replaceable(path)
    {
        return refuse(error, "choose a file".to_owned());
    }
    match try_beside(path, list) {
        Ok(()) => Ok(()),
        Err(error) => refuse(error, format!("choose another folder than {}", shown::path(folder))),
    }
}

/// The maximum length of a chain of symbolic links. The kernel has the same limit.
const MAX_LINKS: usize = 40;

/// Checks that a new file may replace the file at `path`, if there is one. A regular file, or a link to a regular file, may
/// be replaced. A device, a pipe, a socket, and a link to an open file such as `/dev/stdout` may not be replaced. If one
/// of these were replaced, every other program that uses the path would get the new file.
///
/// # Errors
/// The reason why the file may not be replaced.
pub fn check_replaceable(path: &Path) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return Err(io::Error::other("it is not a regular file, and a new file would take its place"));
    }
    let mut link = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&link) else { return Ok(()) };
        let folder = link.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if fs::canonicalize(folder).is_ok_and(|folder| folder.starts_with("/proc")) {
            return Err(io::Error::other(
                "it leads to a file that a process has open, and a new file would take its place",
            ));
        }
        link = folder.join(target);
    }
    Ok(())
}

/// Creates a file in the folder of `path`, and removes that file.
fn try_beside<E>(path: &Path, list: impl FnOnce(&Path) -> E) -> io::Result<()> {
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") || path.file_name().is_none() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "the path names a folder, not a file"));
    }
    let trial = path.with_file_name(temporary::name());
    let entry = list(&trial);
    File::create_new(&trial)?;
    // A failure to remove the file does not change the result of the check. The entry then stays in the list.
    if fs::remove_file(&trial).is_err_and(|error| error.kind() != io::ErrorKind::NotFound) {
        std::mem::forget(entry);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_to_open_files_and_devices_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let link = |name: &str, target: &Path| {
            let link = folder.path().join(name);
            std::os::unix::fs::symlink(target, &link).unwrap();
            link
        };
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let open = File::open(&file).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&open);
        let to_open = link("open", Path::new(&format!("/proc/self/fd/{number}")));
        for path in [
            &link("twice", &to_open),
            &to_open,
            Path::new(&format!("/dev/fd/{number}")),
            &link("null", Path::new("/dev/null")),
        ] {
            assert!(check_replaceable(path).is_err(), "{path:?}");
            assert!(check(path, Way::Replace).is_err() && check(path, Way::Append).is_ok(), "{path:?}");
        }
        for path in
            [&file, &link("plain", &file), &link("nowhere", Path::new("/no/such/file")), &folder.path().join("new")]
        {
            assert!(check_replaceable(path).is_ok(), "{path:?}");
        }
    }

    #[test]
    fn a_place_that_cannot_hold_a_file_is_refused_with_advice() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        fs::create_dir(folder.path().join("folder")).unwrap();
        for (path, expected) in [
            ("none/file", "make the folder"),
            ("file/report", "is not a folder"),
            ("folder", "name a file in it"),
            ("/proc/report", "choose another folder than /proc"),
        ] {
            let error = check(&folder.path().join(path), Way::Append).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        for way in [Way::Append, Way::Replace] {
            check(&folder.path().join("file"), way).unwrap();
            check(&folder.path().join("new"), way).unwrap();
            check(Path::new("new"), way).unwrap();
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left of the trial");
    }

    #[test]
    fn a_link_in_a_shared_folder_leads_the_trial_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        fs::write(&victim, "content").unwrap();
        let foreseen = format!(".report.{}.trial", std::process::id());
        std::os::unix::fs::symlink(&victim, folder.path().join(foreseen)).unwrap();
        check(&folder.path().join("report"), Way::Replace).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "content");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
