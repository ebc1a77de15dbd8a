//! A number that anybody adds to.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::adder::Adder;
use super::local::Local;
use super::shards::Shards;
use crate::reclaim::registry::Registry;

/// Counts from any thread, exactly; see the [module](super) for what a sum means.
///
/// Eight bytes a processor that is used; the memory is taken at the first addition and given back when the counter is dropped.
/// What a thread added stays when it ends.
pub struct Counter {
    shards: Shards<1>,
    locals: Registry<AtomicU64>,
}

impl Counter {
    /// At zero.
    #[must_use]
    pub const fn new() -> Self {
        Counter { shards: Shards::new(), locals: Registry::new() }
    }

    /// Adds one.
    #[inline]
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds `n`; the sum wraps around at 2⁶⁴.
    ///
    /// Wait-free, but for a counter's first addition, which takes a lock and memory; after that and the thread's first one also good
    /// in signal handlers. Ordered with nothing. About two and a half cycles, however many threads count; an uncontended atomic addition
    /// where the kernel has no restartable sequences.
    #[inline]
    pub fn add(&self, n: u64) {
        self.shards.add(0, n);
    }

    /// The counter with everything at hand, for a loop of this thread.
    #[must_use]
    pub fn adder(&self) -> Adder<'_> {
        Adder::new(self, self.shards.words().word(0))
    }

    /// All additions, as the [module](super) says. Takes O(processors + locals that were ever held at a time).
    #[must_use]
    pub fn sum(&self) -> u64 {
        let shards = self.shards.words().word(0).copies();
        let locals = self.locals.iter().map(|local| local.load(Relaxed));
        shards.chain(locals).fold(0, u64::wrapping_add)
    }

    /// A word of one's own: for a hot loop, a thread, a worker. It belongs to the counter, and stays when the local is
    /// dropped.
    ///
    /// Lock-free; looks for a word that nobody has, and makes one if there is none.
    #[must_use]
    pub fn local(&self) -> Local<'_> {
        Local::new(self.locals.acquire(|| AtomicU64::new(0)))
    }
}

impl Default for Counter {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Counter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Counter").field(&self.sum()).finish()
    }
}
