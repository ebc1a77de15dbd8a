//! Back-off from a word that another thread has just changed.

use crate::primitive::spin_loop;

/// A back-off that doubles with each failure, up to some microseconds: while one thread pauses, another one keeps the
/// cache lines, and both finish sooner.
pub(super) struct Backoff {
    spins: u32,
}

const MIN_SPINS: u32 = 8;
const MAX_SPINS: u32 = 512;

impl Backoff {
    pub(super) fn new() -> Self {
        Backoff { spins: MIN_SPINS }
    }

    /// Backs off after a compare-and-swap that failed.
    #[cold]
    pub(super) fn spin(&mut self) {
        (0..self.spins).for_each(|_| spin_loop());
        self.spins = MAX_SPINS.min(self.spins * 2);
    }
}
