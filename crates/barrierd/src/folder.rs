//! The daemon's folder, with a lock, the page and the socket.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The reason why the folder or a file in it could not be created.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FolderError {
    #[error("{folder:?}: another barrierd has this folder")]
    Taken { folder: PathBuf },
    #[error("{path:?}: {error}")]
    Io { path: PathBuf, error: io::Error },
}

/// The folder. It belongs to this daemon as long as this value exists.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// The kernel releases this lock when the process ends, however it ends.
    _lock: File,
}

/// A file with two descriptors: one for the daemon, one for clients.
#[derive(Debug)]
pub(crate) struct SharedFile {
    pub(crate) ours: File,
    pub(crate) readable: File,
}

impl Folder {
    /// Creates the folder if it does not exist, and locks it for this daemon.
    pub(crate) fn claim(folder: &Path) -> Result<Folder, FolderError> {
        fs::create_dir_all(folder).map_err(at(folder))?;
        let path = folder.join("lock");
        let lock = OpenOptions::new().write(true).create(true).truncate(false).open(&path).map_err(at(&path))?;
        // SAFETY: flock takes two integers.
        if unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
            let error = io::Error::last_os_error();
            return Err(match error.kind() {
                io::ErrorKind::WouldBlock => FolderError::Taken { folder: folder.to_owned() },
                _ => FolderError::Io { path, error },
            });
        }
        Ok(Folder { path: folder.to_owned(), _lock: lock })
    }

    /// Creates a file of zeros that every user may read. It replaces the file of an earlier daemon; clients of that daemon keep
    /// the old file mapped.
    pub(crate) fn file(&self, name: &str, bytes: usize) -> Result<SharedFile, FolderError> {
        let (path, fresh) = (self.path.join(name), self.path.join(format!("{name}.new")));
        let make = || {
            let _ = fs::remove_file(&fresh);
            let ours = OpenOptions::new().read(true).write(true).create_new(true).open(&fresh)?;
            ours.set_permissions(Permissions::from_mode(0o644))?;
            ours.set_len(bytes as u64)?;
            let readable = File::open(&fresh)?;
            fs::rename(&fresh, &path)?;
            Ok(SharedFile { ours, readable })
        };
        make().map_err(at(&path))
    }

    /// Removes the socket of an earlier daemon, and returns the path for the new one.
    pub(crate) fn socket(&self) -> PathBuf {
        let path = self.path.join("socket");
        let _ = fs::remove_file(&path);
        path
    }
}

pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> FolderError {
    let path = path.to_owned();
    |error| FolderError::Io { path, error }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn a_folder_has_one_daemon() {
        let folder = tempfile::tempdir().unwrap();
        let claimed = Folder::claim(folder.path()).unwrap();
        let error = Folder::claim(folder.path()).unwrap_err();
        assert!(matches!(error, FolderError::Taken { .. }), "{error}");
        drop(claimed);
        Folder::claim(folder.path()).unwrap();
    }

    #[test]
    fn a_new_file_leaves_the_old_one_to_its_clients() {
        let folder = tempfile::tempdir().unwrap();
        let claimed = Folder::claim(folder.path()).unwrap();
        let old = claimed.file("page", 64).unwrap();
        old.ours.write_all_at(b"old", 0).unwrap();
        let new = claimed.file("page", 64).unwrap();
        assert_eq!((old.readable.metadata().unwrap().len(), new.ours.metadata().unwrap().len()), (64, 64));
        let mut bytes = [0; 3];
        old.readable.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"old");
    }
}
