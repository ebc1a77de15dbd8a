//! Opens regular files whose names come from data.
//!
//! A name that was a file when a walk found it can be a link to a secret, a pipe or a device by the time it is opened.
//! So nothing is decided by name: the file is opened first, without waiting for a pipe's writer, and its kind and size
//! are read from the open descriptor. The folder in which a walk began stays open, and a file of the walk is opened
//! relative to it, without following any symbolic link. So a folder that was replaced by a link is refused.
//!
//! `openat2` does that in one call. If the kernel or a sandbox does not provide it, the path is opened component by
//! component, and the same paths are refused.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Without `NONBLOCK`, opening a pipe without a writer would not return; without `NOCTTY`, a terminal could become this
/// process's own.
const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// The maximum number of times that a path is resolved, if concurrent renames interfere.
const MAX_TRIES: u32 = 64;

/// Opens the regular file at `path`; symbolic links are followed.
///
/// # Errors
/// The error of the system, or that `path` is not a regular file.
pub fn open(path: &Path) -> io::Result<(File, Metadata)> {
    checked(rustix::fs::openat(CWD, path, FLAGS, Mode::empty())?)
}

/// Opens the regular file at `relative` below the open folder `root`, without following any symbolic link.
///
/// # Errors
/// The error of the system, or that the path contains a symbolic link or does not lead to a regular file.
pub fn open_below(root: &OwnedFd, relative: &Path) -> io::Result<(File, Metadata)> {
    let opened = match in_one_call(root.as_fd(), relative) {
        // An old kernel lacks the call, and a sandbox may refuse it.
        Err(Errno::NOSYS | Errno::PERM) => by_components(root.as_fd(), relative),
        opened => opened,
    };
    match opened {
        Ok(file) => checked(file),
        Err(Errno::LOOP) => Err(io::Error::new(
            // Errors of this kind are permanent: a retry would find the same link.
            io::ErrorKind::InvalidInput,
            "the path has a symbolic link, and this walk follows none (`follow = true` of the source would)",
        )),
        Err(errno) => Err(errno.into()),
    }
}

fn in_one_call(root: BorrowedFd<'_>, relative: &Path) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let mut tries = 1;
    loop {
        match rustix::fs::openat2(root, relative, FLAGS, Mode::empty(), resolve) {
            Err(Errno::AGAIN) if tries < MAX_TRIES => tries += 1,
            opened => return opened,
        }
    }
}

fn by_components(root: BorrowedFd<'_>, relative: &Path) -> Result<OwnedFd, Errno> {
    let mut names = Vec::new();
    for component in relative.components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(Errno::XDEV),
        }
    }
    let last = names.pop().ok_or(Errno::ISDIR)?;
    let mut folder: Option<OwnedFd> = None;
    for name in names {
        let parent = folder.as_ref().map_or(root, AsFd::as_fd);
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let next = match rustix::fs::openat(parent, name, flags, Mode::empty()) {
            Err(Errno::NOTDIR) if is_link(parent, Path::new(name)) => Err(Errno::LOOP),
            opened => opened,
        };
        folder = Some(next?);
    }
    let parent = folder.as_ref().map_or(root, AsFd::as_fd);
    rustix::fs::openat(parent, last, FLAGS | OFlags::NOFOLLOW, Mode::empty())
}

fn is_link(folder: BorrowedFd<'_>, name: &Path) -> bool {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink)
}

fn checked(file: OwnedFd) -> io::Result<(File, Metadata)> {
    let file = File::from(file);
    let found = file.metadata()?;
    let kind = found.file_type();
    let what = if kind.is_file() {
        return Ok((file, found));
    } else if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a pipe"
    } else {
        "a device"
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {what}, not a regular file")))
}

/// The part of `path` below `root`, if `path` begins with `root` and contains no `..` that leads out again.
pub fn part_below<'a>(path: &'a Path, root: &[u8]) -> Option<&'a Path> {
    let rest = path.as_os_str().as_bytes().strip_prefix(root)?;
    let rest = Path::new(std::ffi::OsStr::from_bytes(rest));
    let stays = rest.components().all(|component| matches!(component, Component::Normal(_) | Component::CurDir));
    stays.then_some(rest)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder(path: &Path) -> OwnedFd {
        rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).unwrap()
    }

    #[test]
    fn both_methods_open_files_and_refuse_links_and_paths_that_lead_out() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret"), "secret").unwrap();
        let tree = tempfile::tempdir().unwrap();
        fs::create_dir_all(tree.path().join("a/b")).unwrap();
        fs::write(tree.path().join("a/b/file"), "content").unwrap();
        symlink(outside.path().join("secret"), tree.path().join("a/link")).unwrap();
        symlink(outside.path(), tree.path().join("a/folder")).unwrap();
        symlink("b/file", tree.path().join("a/inside")).unwrap();
        let root = folder(tree.path());
        for way in [in_one_call, by_components as fn(BorrowedFd<'_>, &Path) -> _] {
            let mut content = String::new();
            File::from(way(root.as_fd(), Path::new("a/./b/file")).unwrap()).read_to_string(&mut content).unwrap();
            assert_eq!(content, "content");
            for link in ["a/link", "a/folder/secret", "a/inside"] {
                assert_eq!(way(root.as_fd(), Path::new(link)).unwrap_err(), Errno::LOOP, "{link}");
            }
            for out in ["../x", "/etc/passwd"] {
                assert_eq!(way(root.as_fd(), Path::new(out)).unwrap_err(), Errno::XDEV, "{out}");
            }
            assert_eq!(way(root.as_fd(), Path::new("a/none/x")).unwrap_err(), Errno::NOENT);
            assert_eq!(way(root.as_fd(), Path::new("a/b/file/x")).unwrap_err(), Errno::NOTDIR);
        }
        let error = open_below(&root, Path::new("a/link")).unwrap_err().to_string();
        assert!(error.contains("the path has a symbolic link") && error.contains("`follow = true`"), "{error}");
    }

    #[test]
    fn only_regular_files_are_opened_and_none_is_waited_for() {
        let tree = tempfile::tempdir().unwrap();
        let pipe = tree.path().join("pipe");
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
        for (path, what) in [(pipe.as_path(), "a pipe"), (tree.path(), "a folder"), ("/dev/zero".as_ref(), "a device")]
        {
            let error = open(path).unwrap_err().to_string();
            assert_eq!(error, format!("it is {what}, not a regular file"));
        }
        assert!(open_below(&folder(tree.path()), Path::new("pipe")).is_err());
    }

    #[test]
    fn a_part_below_never_leads_out() {
        let below = |path: &'static str| part_below(Path::new(path), b"root/").map(Path::to_owned);
        assert_eq!(below("root/a/b").as_deref(), Some(Path::new("a/b")));
        for path in ["other/a", "root/a/../../x", "root//etc/passwd", "roo"] {
            assert_eq!(below(path), None, "{path}");
        }
    }
}
