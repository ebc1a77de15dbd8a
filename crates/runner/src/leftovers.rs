//! Removes the temporary files of runs that were killed; every run does so when it starts.
//!
//! A run lists its current temporary files in a file of the run-time folder, `temporary-PID-TOKEN`, which it keeps
//! locked. The kernel releases the lock however the run ends. So a list that can be locked belongs to a dead run, even
//! if another process has that run's process number by now. The next run removes the files in such a list, then the
//! list.
//!
//! The list has a slot for each file. A slot is written before its file is created, and cleared after the file has its
//! final name or is gone; it is then reused. Names of temporary files contain the run's token, and only files with the
//! token of the list are removed, so a damaged list does no harm. A list stays as long as one of its files cannot be
//! removed, for example because its folder is read-only.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use millstream_command::temporary::{self, token};
use rustix::fs::{FlockOperation, flock};

use crate::runtime_folder;

/// The beginning of a list's name.
const LIST: &str = "temporary-";

/// The size of a slot in bytes: the longest path, and a zero byte.
const SLOT: usize = 4096;

/// The maximum number of attempts to make a list. Another run may mistake a list that is not locked yet for that of a
/// dead run, and remove it.
const MAX_ATTEMPTS: u32 = 8;

static OWN: OnceLock<List> = OnceLock::new();

/// The list of this process's temporary files. A file that is still listed when this value is dropped belongs to a unit
/// that did not end in time; it is removed with the list.
#[derive(Debug)]
pub struct Keeper(());

impl Keeper {
    /// Begins the list. If this fails, temporary files can still be made, but they are not listed.
    ///
    /// # Errors
    /// The system refuses a folder or a file for the list.
    pub fn start() -> io::Result<Self> {
        let list = List::make(&runtime_folder::make_folder()?)?;
        let _ = OWN.set(list);
        Ok(Self(()))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        remove_own();
    }
}

/// Removes the current temporary files of this process, and their list.
pub fn remove_own() {
    if let Some(list) = OWN.get() {
        let _ = remove_listed(&list.file, &list.path);
    }
}

/// Removes the temporary files left by runs that were killed; returns their number.
pub fn sweep() -> u64 {
    runtime_folder::own_folders().iter().map(|folder| sweep_folder(folder)).sum()
}

fn sweep_folder(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let lists = entries.filter(|entry| entry.file_name().as_bytes().starts_with(LIST.as_bytes()));
    lists.map(|entry| sweep_list(&entry.path()).unwrap_or(0)).sum()
}

/// Removes the files of a list, and then the list, if its run is dead.
fn sweep_list(path: &Path) -> io::Result<u64> {
    let list = File::options().read(true).write(true).custom_flags(libc::O_NOFOLLOW).open(path)?;
    flock(&list, FlockOperation::NonBlockingLockExclusive)?;
    remove_listed(&list, path)
}

fn remove_listed(list: &File, path: &Path) -> io::Result<u64> {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let prefix = [temporary::PREFIX.as_bytes(), name.strip_prefix(LIST.as_bytes()).unwrap_or_default(), b"-"].concat();
    let (mut reader, mut slots) = (list, Vec::new());
    reader.read_to_end(&mut slots)?;
    let listed = slots.chunks(SLOT).filter_map(|slot| slot.split(|byte| *byte == 0).next());
    let (mut removed, mut all) = (0, true);
    for path in listed.map(|path| Path::new(OsStr::from_bytes(path))) {
        if path.file_name().is_some_and(|name| name.as_bytes().starts_with(&prefix)) {
            match fs::remove_file(path) {
                Ok(()) => removed += 1,
                Err(error) => all &= matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
            }
        }
    }
    if all {
        fs::remove_file(path)?;
    }
    Ok(removed)
}

/// Lists a temporary file that is about to be made. It stays in the list until the returned entry is dropped.
pub fn note(path: &Path) -> Entry {
    Entry(OWN.get().and_then(|list| list.note(path).map(|slot| (list, slot))))
}

/// A file's slot in the list, if there is a list.
#[derive(Debug)]
pub struct Entry(Option<(&'static List, usize)>);

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some((list, slot)) = self.0 {
            list.clear(slot);
        }
    }
}

/// The list of a live run.
#[derive(Debug)]
struct List {
    file: File,
    path: PathBuf,
    /// The folder to which relative paths refer.
    folder: PathBuf,
    slots: Mutex<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    free: Vec<usize>,
    made: usize,
}

impl List {
    fn make(folder: &Path) -> io::Result<Self> {
        let path = folder.join(format!("{LIST}{}-{}", std::process::id(), token()));
        for _ in 0..MAX_ATTEMPTS {
            let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() && file.metadata()?.nlink() > 0 {
                let folder = std::env::current_dir()?;
                return Ok(Self { file, path, folder, slots: Mutex::default() });
            }
            // Another run has locked the list in order to remove it.
            std::thread::yield_now();
            let _ = fs::remove_file(&path);
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Writes a path into a free slot; `None` if that could not be done.
    fn note(&self, path: &Path) -> Option<usize> {
        let path = self.folder.join(path);
        let mut text = path.as_os_str().as_bytes().to_vec();
        text.push(0);
        if text.len() > SLOT {
            return None;
        }
        let slot = {
            let mut slots = self.slots();
            slots.free.pop().unwrap_or_else(|| {
                slots.made += 1;
                slots.made - 1
            })
        };
        if self.file.write_all_at(&text, Self::at(slot)).is_err() {
            self.clear(slot);
            return None;
        }
        Some(slot)
    }

    fn clear(&self, slot: usize) {
        // A failure does no harm: the file has its final name or is gone, so the slot names a file that does not exist.
        let _ = self.file.write_all_at(&[0], Self::at(slot));
        self.slots().free.push(slot);
    }

    fn at(slot: usize) -> u64 {
        (slot * SLOT) as u64
    }

    fn slots(&self) -> std::sync::MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_files_that_a_dead_run_lists_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let list = List::make(folder.path()).unwrap();
        let [left, placed, foreign] = [temporary::name(), temporary::name(), "precious".to_owned()];
        for name in [&left, &foreign] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        list.note(&folder.path().join(&left)).unwrap();
        let slot = list.note(&folder.path().join(placed)).unwrap();
        list.clear(slot);
        assert_eq!(list.note(&folder.path().join(&foreign)), Some(slot), "a slot is used again");

        assert_eq!(sweep_folder(folder.path()), 0, "the run is alive");
        assert!(folder.path().join(&left).exists());
        drop(list);
        assert_eq!(sweep_folder(folder.path()), 1);
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, [foreign.as_str()]);
    }

    #[test]
    fn a_list_stays_until_its_files_can_be_removed() {
        let folder = tempfile::tempdir().unwrap();
        let list = List::make(folder.path()).unwrap();
        let left = folder.path().join(temporary::name());
        list.note(&left).unwrap();
        // Removing a folder as a file fails, so a folder serves as a file that cannot be removed.
        fs::create_dir(&left).unwrap();
        drop(list);
        assert_eq!(sweep_folder(folder.path()), 0);
        fs::remove_dir(&left).unwrap();
        fs::write(&left, "").unwrap();
        assert_eq!(sweep_folder(folder.path()), 1);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_damaged_list_is_removed_with_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let precious = folder.path().join(".millstream-1-x.tmp");
        fs::write(&precious, "").unwrap();
        for content in [b"".to_vec(), vec![0xff; 3 * SLOT], precious.as_os_str().as_bytes().to_vec()] {
            let list = folder.path().join("temporary-1-0");
            fs::write(&list, content).unwrap();
            assert_eq!(sweep_folder(folder.path()), 0);
            assert!(!list.exists() && precious.exists());
        }
    }
}
