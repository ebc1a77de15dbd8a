//! The daemon's instructions to the program, in a map that only the daemon has.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use super::call::{self, BpfError};
use crate::memory::Words;

/// The condition under which the program wakes the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Bell {
    /// Never, because no client waits.
    Off = 0,
    /// When all wanted processors have passed, except for those that are idle.
    ForAll = 1,
    /// Whenever a wanted processor passes.
    ForEach = 2,
}

/// The number of words in an entry of the map. An entry is as large as an entry of the times, so that a processor's entries have
/// the same offset in both tables.
pub(super) const ENTRY_WORDS: usize = 8;

/// The map. The first entry has the bell. Each processor then has an entry with its *wanted* time: the virtual time that it must
/// exceed for a waiting request, or 0.
#[derive(Debug)]
pub(crate) struct Control {
    map: OwnedFd,
    words: Words,
}

impl Control {
    pub(super) fn new(cpus: usize) -> Result<Control, BpfError> {
        let count = (1 + cpus) * ENTRY_WORDS;
        let map = call::array(count * size_of::<u64>())?;
        let words = Words::map(map.as_fd(), count).map_err(|error| BpfError::new("a map's memory", error))?;
        Ok(Control { map, words })
    }

    /// Relaxed, like all stores in this file. Fences order them; `program.rs` describes how.
    pub(crate) fn set_bell(&self, bell: Bell) {
        self.words.get(0).store(bell as u64, Ordering::Relaxed);
    }

    /// Sets the virtual time that this processor must exceed; 0 if no request waits for it.
    pub(crate) fn set_wanted(&self, cpu: usize, virtual_time: u64) {
        self.wanted(cpu).store(virtual_time, Ordering::Relaxed);
    }

    fn wanted(&self, cpu: usize) -> &AtomicU64 {
        self.words.get((1 + cpu) * ENTRY_WORDS)
    }
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}
