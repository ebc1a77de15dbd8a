//! The run-time folder: a folder of the user for the control sockets of runs and the lists of their temporary files.
//!
//! It is `$XDG_RUNTIME_DIR/millstream`, or `/tmp/millstream-UID` if there is no such folder. `/tmp` is shared, so the
//! folder is used only if it is not a link, belongs to the user and has no permissions for other users. In addition,
//! the permissions of the parent folder must prevent other users from replacing the folder.

use std::env;
use std::io;
use std::path::{Path, PathBuf};

use millstream_command::screen::shown;
use rustix::fs::{FileType, Mode, OFlags, fstat, mkdirat, open, openat};
use rustix::io::Errno;
use rustix::process::getuid;

/// The owner that the system reports for files of users without a number in this user namespace.
const NO_NUMBER: u32 = 65_534;

/// The folders in which a control socket may be, in order of preference.
pub fn folders() -> Vec<PathBuf> {
    let shared = PathBuf::from(format!("/tmp/millstream-{}", getuid().as_raw()));
    match env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|folder| folder.is_absolute()) {
        Some(folder) => vec![folder.join("millstream"), shared],
        None => vec![shared],
    }
}

/// Creates the first folder that can be created and is safe to use.
///
/// # Errors
/// The errors of the last folder that was tried.
pub fn make_folder() -> io::Result<PathBuf> {
    let mut refused = None;
    for folder in folders() {
        match make_private(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) => refused = Some(error),
        }
    }
    Err(refused.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
}

/// Creates the folder if it does not exist. Checks that it belongs to the user and that no other user can replace it.
pub fn make_private(folder: &Path) -> io::Result<()> {
    let refuse = |what: String| {
        let help = "remove it, or choose a path with --control";
        Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{what}; {help}")))
    };
    let named = |error: Errno| io::Error::new(error.kind(), format!("{}: {error}", shown::path(folder)));
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let owner = getuid().as_raw();
    let parent_end = open(parent, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).map_err(named)?;
    let found = fstat(&parent_end)?;
    let is_sticky = found.st_mode & 0o1000 != 0;
    // In a user namespace, the owner of `/tmp` may be a root user without a number.
    let is_trusted = found.st_uid == owner || found.st_uid == 0 || found.st_uid == NO_NUMBER && is_sticky;
    if !is_trusted || found.st_mode & 0o022 != 0 && !is_sticky {
        return refuse(format!(
            "{} is not safe for a control socket: other users can replace what is in {}, a folder of user {} with mode {:04o}",
            shown::path(folder),
            shown::path(parent),
            found.st_uid,
            found.st_mode & 0o7777
        ));
    }
    match mkdirat(&parent_end, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(named(error)),
    }
    let end =
        openat(&parent_end, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).map_err(named)?;
    let found = fstat(&end)?;
    let is_folder = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
    if !is_folder || found.st_uid != owner || found.st_mode & 0o077 != 0 {
        return refuse(format!(
            "{} is not safe for a control socket: expected a folder of user {owner} with mode 0700, found {} of user {} with \
             mode {:04o}",
            shown::path(folder),
            if is_folder { "a folder" } else { "no folder" },
            found.st_uid,
            found.st_mode & 0o7777
        ));
    }
    Ok(())
}

/// The folders that exist and belong to the user.
pub fn own_folders() -> Vec<PathBuf> {
    folders().into_iter().filter(|folder| folder.exists() && make_private(folder).is_ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_folder_that_others_reach_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("millstream");
        make_private(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        make_private(&folder).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        let error = make_private(&folder).unwrap_err().to_string();
        assert!(error.contains("mode 0755") && error.contains("--control"), "{error}");
        let link = base.path().join("link");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
        symlink(&folder, &link).unwrap();
        assert!(make_private(&link).unwrap_err().to_string().contains("no folder"));
    }

    #[test]
    fn a_folder_in_a_place_where_others_can_replace_it_is_refused() {
        let base = tempfile::tempdir().unwrap();
        for (mode, is_safe) in [(0o777, false), (0o770, false), (0o1777, true), (0o755, true)] {
            let shared = base.path().join(format!("{mode:o}"));
            fs::create_dir(&shared).unwrap();
            fs::set_permissions(&shared, fs::Permissions::from_mode(mode)).unwrap();
            let made = make_private(&shared.join("millstream"));
            assert_eq!(made.is_ok(), is_safe, "{mode:o}: {made:?}");
            if let Err(error) = made {
                assert!(error.to_string().contains("other users can replace"), "{error}");
                assert!(!shared.join("millstream").exists());
            }
        }
    }
}
