//! The daemon's instructions to the program: a map that only the daemon has.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use super::call::{self, BpfError};
use crate::memory::Words;

/// The condition on which the program wakes the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Bell {
    /// Never: no client waits.
    Off = 0,
    /// When no processor is wanted any more, except idle processors.
    ForAll = 1,
    /// For each wanted processor that passes.
    ForEach = 2,
}

/// The words of an entry of the map: as many bytes as an entry of the times has, so that one offset finds both.
pub(super) const ENTRY_WORDS: usize = 8;

/// The map: an entry with the bell, and for each processor an entry with the virtual time that the processor must
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

    /// Relaxed, as all stores here: the fences that order them are described with the program.
    pub(crate) fn set_bell(&self, bell: Bell) {
        self.words.get(0).store(bell as u64, Ordering::Relaxed);
    }

    /// Sets the virtual time that this processor is wanted to exceed; 0 if it is not wanted.
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
