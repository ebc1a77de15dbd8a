//! Removes the folders that killed tests have left.
//!
//! A test keeps the folder of its case locked. The kernel releases the lock however the test ends, so a folder that can
//! be locked belongs to no running test. A folder exists for a moment before it is locked, so a folder younger than a
//! minute is left alone.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

/// The beginning of a folder's name.
pub(super) const PREFIX: &str = "millstream-test-";

/// The age from which a folder without a lock counts as abandoned.
const OLD: Duration = Duration::from_secs(60);

/// Locks the folder of a case. The folder stays locked as long as the returned file is open.
pub(super) fn keep(folder: &Path) -> io::Result<File> {
    let file = File::open(folder)?;
    // If the file system has no locks, only the test itself removes its folder.
    let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
    Ok(file)
}

/// Removes the folders that killed tests of this user have left in `parent`.
pub(super) fn sweep(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().as_bytes().starts_with(PREFIX.as_bytes())) {
        // If a folder cannot be removed, the next test tries again.
        let _ = remove_if_abandoned(&entry.path());
    }
}

fn remove_if_abandoned(folder: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(folder)?;
    let is_own = found.is_dir() && found.uid() == rustix::process::getuid().as_raw();
    if !is_own || found.modified()?.elapsed().is_ok_and(|age| age < OLD) {
        return Ok(());
    }
    let file = File::open(folder)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    fs::remove_dir_all(folder)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn folders_of_tests_that_have_ended_go_and_others_stay() {
        let parent = tempfile::tempdir().unwrap();
        let folder = |name: &str, age: Duration| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("file"), "x").unwrap();
            File::open(&path).unwrap().set_modified(SystemTime::now() - age).unwrap();
            path
        };
        let hour = Duration::from_secs(3600);
        let killed = folder("millstream-test-a", hour);
        let running = folder("millstream-test-b", hour);
        let young = folder("millstream-test-c", Duration::ZERO);
        let other = folder("millstream-tests", hour);
        let lock = keep(&running).unwrap();
        sweep(parent.path());
        assert!(!killed.exists() && running.exists() && young.exists() && other.exists());
        drop(lock);
        sweep(parent.path());
        assert!(!running.exists());
    }
}
