//! Files that appear complete or not at all.
//!
//! A [`Placing`] is a file under a temporary name in the folder of its target. [`Placing::put`] renames that file to
//! the target. If the `Placing` is dropped first, the file is removed. A reader of the target sees either the old
//! content or the whole new content, whatever happens to this process. Data is not forced to the disk: after a loss of
//! power, the content of the file depends on the file system.
//!
//! The temporary name is unique to the process. It is short, so the target's name may have the maximum length. If the
//! process is killed, the next run removes the file ([`leftovers`]).

use std::fs::File;
use std::io;
use std::os::fd::IntoRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use millstream_command::{temporary, writable};
use rustix::fs::{AtFlags, CWD, RenameFlags};
use rustix::io::Errno;

use crate::leftovers;

/// The number of names tried for one temporary file; more than one is needed only if an earlier process left its files
/// behind.
const MAX_NAMES: u32 = 100;

/// How [`Placing::put`] treats a target that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// The target is kept, and [`Placing::put`] fails with [`io::ErrorKind::AlreadyExists`].
    Keep,
    /// The target is replaced.
    Replace,
}

/// A file that does not have its final name yet.
#[derive(Debug)]
pub struct Placing {
    temporary: PathBuf,
    target: PathBuf,
    put: bool,
    /// The entry in the list of temporary files. It is dropped once the file has its name or no longer exists.
    listed: Option<leftovers::Entry>,
}

impl Placing {
    /// Creates the temporary file, and the target's parent folders when they are missing.
    ///
    /// # Errors
    /// The target names a folder, or the file system reports an error.
    pub fn create(target: PathBuf) -> io::Result<(Self, File)> {
        Self::create_with(target, 0o666)
    }

    /// As [`create`](Self::create), with these permissions, reduced by the process's umask.
    pub fn create_with(target: PathBuf, permissions: u32) -> io::Result<(Self, File)> {
        if target.as_os_str().as_encoded_bytes().ends_with(b"/") || target.file_name().is_none() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "the path names a folder, not a file"));
        }
        let mut made_parents = false;
        for _ in 0..MAX_NAMES {
            let temporary = target.with_file_name(temporary::name());
            let listed = leftovers::note(&temporary);
            match File::options().write(true).create_new(true).mode(permissions).open(&temporary) {
                Ok(file) => return Ok((Self { temporary, target, put: false, listed: Some(listed) }, file)),
                Err(error) if error.kind() == io::ErrorKind::NotFound && !made_parents => {
                    // The folder usually exists, so it is created only after a failure. A check beforehand would cost a
                    // system call per file.
                    std::fs::create_dir_all(parent_of(&target))?;
                    made_parents = true;
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "every temporary name tried is taken by a file of an earlier process",
        ))
    }

    /// The target.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// The target exists and must be kept, or the file system reports an error. The temporary file is then removed.
    pub fn put(mut self, existing: Existing) -> io::Result<()> {
        self.rename(existing)
    }

    fn rename(&mut self, existing: Existing) -> io::Result<()> {
        match existing {
            Existing::Replace => {
                writable::check_replaceable(&self.target)?;
                std::fs::rename(&self.temporary, &self.target)?;
            }
            Existing::Keep => rename_new(&self.temporary, &self.target)?,
        }
        self.put = true;
        Ok(())
    }
}

impl Placing {
    /// The path of the file until it has its name.
    pub(super) fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Gives the file its name. An existing target is renamed to `earlier`, in the same folder, and replaces any file
    /// of that name. The target's name leads to the old or the new file at every moment, and the old file always has a
    /// name. Returns whether there was an existing target.
    ///
    /// # Errors
    /// The file system reports an error. The target is unchanged, and another call may give the file another name.
    pub(super) fn put_keeping(&mut self, earlier: &Path) -> io::Result<bool> {
        let existed = name_also(&self.target, earlier)?;
        self.rename(Existing::Replace).map(|()| existed)
    }

    /// Gives the file a name other than its intended one, in the same folder; an existing file is replaced.
    ///
    /// # Errors
    /// The file system reports an error. Another call may give the file yet another name.
    pub(super) fn put_as(&mut self, target: PathBuf) -> io::Result<()> {
        self.target = target;
        self.rename(Existing::Replace)
    }
}

impl Drop for Placing {
    fn drop(&mut self) {
        if !self.put
            && std::fs::remove_file(&self.temporary).is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
        {
            // The file could not be removed. This error is not reported. The name stays in the list, so the end of the
            // run and the next run try again to remove the file.
            std::mem::forget(self.listed.take());
        }
    }
}

/// Closes a file that was written to. Some file systems report a failed write only at the close.
///
/// # Errors
/// The errors of the file system; the file is closed in any case.
pub(super) fn close(file: File) -> io::Result<()> {
    // SAFETY: this function owns the descriptor and does not use it again. Linux closes it even if `close` fails.
    match unsafe { libc::close(file.into_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Adds the name `other` to the file at `path`, and replaces any file of that name. Returns whether there is a file at
/// `path`. If the file system has no hard links, the file is renamed instead.
fn name_also(path: &Path, other: &Path) -> io::Result<bool> {
    let between = path.with_file_name(temporary::name());
    let _listed = leftovers::note(&between);
    match rustix::fs::linkat(CWD, path, CWD, &between, AtFlags::empty()) {
        Ok(()) => {
            let renamed = std::fs::rename(&between, other);
            // A rename between two names of the same file has no effect, so the name `between` may still exist.
            let _ = std::fs::remove_file(&between);
            renamed.map(|()| true)
        }
        Err(Errno::NOENT) => Ok(false),
        Err(Errno::PERM | Errno::NOTSUP | Errno::NOSYS | Errno::MLINK) => {
            if path.symlink_metadata()?.is_dir() {
                return Err(io::ErrorKind::IsADirectory.into());
            }
            std::fs::rename(path, other).map(|()| true)
        }
        Err(errno) => Err(errno.into()),
    }
}

fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Renames without replacing. If the file system cannot do this in one step, a hard link is made and the first name is
/// removed. Without hard links, the code checks first that the target does not exist, and another process can create
/// the target before the rename.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => link_new(from, to),
        Err(errno) => Err(errno.into()),
    }
}

fn link_new(from: &Path, to: &Path) -> io::Result<()> {
    match rustix::fs::linkat(CWD, from, CWD, to, AtFlags::empty()) {
        Ok(()) => std::fs::remove_file(from),
        Err(Errno::PERM | Errno::NOTSUP | Errno::NOSYS) => {
            if to.symlink_metadata().is_ok() {
                return Err(Errno::EXIST.into());
            }
            std::fs::rename(from, to)
        }
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::{ErrorKind, Write};

    use super::{Existing, Placing, link_new};

    fn names(folder: &std::path::Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_target_appears_only_when_put() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a/b/file");
        let (placing, mut file) = Placing::create(target.clone()).unwrap();
        file.write_all(b"content").unwrap();
        assert!(!target.exists());
        placing.put(Existing::Keep).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"content");
        assert_eq!(names(target.parent().unwrap()), ["file"]);
    }

    #[test]
    fn an_existing_target_is_kept_or_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("file");
        fs::write(&target, "old").unwrap();
        let (placing, _file) = Placing::create(target.clone()).unwrap();
        assert_eq!(placing.put(Existing::Keep).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&target).unwrap(), b"old");
        let (placing, mut file) = Placing::create(target.clone()).unwrap();
        file.write_all(b"new").unwrap();
        placing.put(Existing::Replace).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["file"], "no temporary file is left");
    }

    #[test]
    fn the_earlier_file_is_kept_beside_the_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let (target, earlier) = (folder.path().join("file"), folder.path().join("file.old"));
        for (content, existed) in [("one", false), ("two", true), ("three", true)] {
            let (mut placing, mut file) = Placing::create(target.clone()).unwrap();
            file.write_all(content.as_bytes()).unwrap();
            assert_eq!(placing.put_keeping(&earlier).unwrap(), existed);
            assert_eq!(fs::read_to_string(&target).unwrap(), content);
        }
        assert_eq!(fs::read_to_string(&earlier).unwrap(), "two");
        assert_eq!(names(folder.path()), ["file", "file.old"]);
    }

    #[test]
    fn an_earlier_file_that_already_has_both_names_keeps_its_content_and_a_name() {
        let folder = tempfile::tempdir().unwrap();
        let (target, earlier) = (folder.path().join("file"), folder.path().join("file.old"));
        fs::write(&target, "old").unwrap();
        // The state after a run was killed between the hard link and the rename.
        fs::hard_link(&target, &earlier).unwrap();
        let (mut placing, mut file) = Placing::create(target.clone()).unwrap();
        file.write_all(b"new").unwrap();
        assert!(placing.put_keeping(&earlier).unwrap());
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(fs::read(&earlier).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["file", "file.old"]);
    }

    #[test]
    fn a_folder_is_not_renamed_for_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let (target, earlier) = (folder.path().join("file"), folder.path().join("file.old"));
        fs::create_dir(&target).unwrap();
        let (mut placing, _file) = Placing::create(target.clone()).unwrap();
        assert!(placing.put_keeping(&earlier).is_err());
        drop(placing);
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[test]
    fn dropped_before_it_is_put_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let (placing, file) = Placing::create(folder.path().join("file")).unwrap();
        drop((placing, file));
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn a_name_of_the_greatest_length_has_a_temporary_name_too() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("n".repeat(255));
        let (placing, _file) = Placing::create(target.clone()).unwrap();
        placing.put(Existing::Keep).unwrap();
        assert!(target.exists());
    }

    #[test]
    fn a_folder_is_no_target() {
        let folder = tempfile::tempdir().unwrap();
        let mut target = folder.path().join("x").into_os_string();
        target.push("/");
        assert_eq!(Placing::create(target.into()).unwrap_err().kind(), ErrorKind::IsADirectory);
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn without_a_rename_that_keeps_the_target_an_existing_target_is_kept_too() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::write(&from, "new").unwrap();
        fs::write(&to, "old").unwrap();
        assert_eq!(link_new(&from, &to).unwrap_err().kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&to).unwrap(), b"old");
        fs::remove_file(&to).unwrap();
        link_new(&from, &to).unwrap();
        assert_eq!(names(folder.path()), ["to"]);
    }
}
