//! How long to stay away from a word that another thread has just changed.

use crate::primitive::spin_loop;

/// Doubles with each failure, up to some microseconds: while one thread stays away, the other works with the cache lines at
/// hand, and both are the faster for it.
pub(super) struct Backoff {
    spins: u32,
}

const SPINS_FIRST: u32 = 8;
const SPINS_MOST: u32 = 512;

impl Backoff {
    pub(super) fn new() -> Self {
        Backoff { spins: SPINS_FIRST }
    }

    /// After a compare-and-swap that failed.
    #[cold]
    pub(super) fn spin(&mut self) {
        (0..self.spins).for_each(|_| spin_loop());
        self.spins = SPINS_MOST.min(self.spins * 2);
    }
}
