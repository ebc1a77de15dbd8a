//! A number to which any thread can add.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::adder::Adder;
use super::local::Local;
use super::shards::Shards;
use crate::reclaim::registry::Registry;

/// Counts from any thread, exactly; see the [module](super) for what a sum means.
///
/// Takes eight bytes per processor in use; the memory is allocated at the first addition and freed when the counter is
/// dropped. A thread's additions outlive the thread.
pub struct Counter {
    shards: Shards<1>,
    locals: Registry<AtomicU64>,
}

impl Counter {
    /// A counter at zero.
    #[must_use]
    pub const fn new() -> Self {
        Counter { shards: Shards::new(), locals: Registry::new() }
    }

    /// Adds one; otherwise like [`add`](Self::add).
    #[inline]
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds `n`; the sum wraps around at 2⁶⁴.
    ///
    /// Wait-free, except for a counter's first addition, which takes a lock and allocates. After that and after the
    /// thread's first addition it is also safe in signal handlers. Not ordered with any other access. Takes about two
    /// and a half cycles, however many threads count; where the kernel has no restartable sequences, it costs as much
    /// as an uncontended atomic addition.
    #[inline]
    pub fn add(&self, n: u64) {
        self.shards.add(0, n);
    }

    /// An adder for a loop of this thread, which looks up all addresses only once. Wait-free, except for a counter's
    /// first adder, which takes a lock and allocates. [`Adder`] has an example.
    #[must_use]
    pub fn adder(&self) -> Adder<'_> {
        Adder::new(self, self.shards.words().word(0))
    }

    /// The sum of all additions, as defined in the [module](super). Wait-free; takes O(processors + the maximum number
    /// of locals at one time).
    #[must_use]
    pub fn sum(&self) -> u64 {
        let shards = self.shards.words().word(0).copies();
        let locals = self.locals.iter().map(|local| local.load(Relaxed));
        shards.chain(locals).fold(0, u64::wrapping_add)
    }

    /// A private word for a hot loop, a thread or a worker. The word belongs to the counter and keeps its value when
    /// the local is dropped.
    ///
    /// Lock-free: takes over a word without an owner, or allocates one if there is none. [`Local`] has an example.
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
