//! What the daemon tells the program: a map that only it has.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use super::call::{self, BpfError};
use crate::memory::Words;

/// When the program wakes the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Bell {
    /// Never: nobody waits.
    Off = 0,
    /// When no processor is wanted any more, except idle ones.
    ForAll = 1,
    /// For each processor that is wanted and passes.
    ForEach = 2,
}

/// The words of an entry of the map: as many bytes as an entry of the times has, so that both are found by one offset.
pub(super) const ENTRY_WORDS: usize = 8;

/// The map: an entry with the bell, and an entry for each processor with the virtual time that somebody wants it to
/// exceed, or 0.
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

    /// Relaxed, as all here: see the program for the fences around.
    pub(crate) fn set_bell(&self, bell: Bell) {
        self.words.get(0).store(bell as u64, Ordering::Relaxed);
    }

    /// The virtual time that this processor is wanted to exceed; 0: it is not wanted.
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
