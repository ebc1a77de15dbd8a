//! Counts entries of a walk that do not become units: links, pipes, empty folders. They are reported, because a copy
//! that is made from the walk's units lacks them.

use std::sync::atomic::{AtomicU64, Ordering};

use millstream_command::screen::text;
use rustix::fs::FileType;

/// The number of entries of each kind. Relaxed: the numbers are read after the walk.
#[derive(Debug, Default)]
pub struct LeftOut {
    links: AtomicU64,
    pipes: AtomicU64,
    sockets: AtomicU64,
    devices: AtomicU64,
    empty_folders: AtomicU64,
}

impl LeftOut {
    /// Counts an entry that is neither a file nor a folder.
    pub(super) fn entry(&self, kind: FileType) {
        let count = match kind {
            FileType::Symlink => &self.links,
            FileType::Fifo => &self.pipes,
            FileType::Socket => &self.sockets,
            FileType::CharacterDevice | FileType::BlockDevice => &self.devices,
            FileType::RegularFile | FileType::Directory | FileType::Unknown => return,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a folder in which the walk finds no entry.
    pub(super) fn empty_folder(&self) {
        self.empty_folders.fetch_add(1, Ordering::Relaxed);
    }

    /// The counts in words, such as `2 symbolic links, 1 pipe`; `None` if there were no such entries.
    pub fn told(&self) -> Option<String> {
        let counts = [
            (&self.links, "symbolic link"),
            (&self.pipes, "pipe"),
            (&self.sockets, "socket"),
            (&self.devices, "device"),
            (&self.empty_folders, "empty folder"),
        ];
        let told: Vec<String> = counts
            .iter()
            .map(|(count, noun)| (count.load(Ordering::Relaxed), noun))
            .filter(|(count, _)| *count > 0)
            .map(|(count, noun)| text::counted(count, noun))
            .collect();
        (!told.is_empty()).then(|| told.join(", "))
    }
}
