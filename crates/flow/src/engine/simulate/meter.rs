//! The meter, to which simulated code reports its duration.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The duration of one batch's code. Only one thread uses the meter, so every access is relaxed.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// The simulated time.
    now: Arc<AtomicU64>,
    cpu_ns: AtomicU64,
    wait_ns: AtomicU64,
}

/// The duration of one run: the part that needs a core, and the part spent waiting for something else.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) cpu_ns: u64,
    pub(crate) wait_ns: u64,
}

impl Meter {
    /// Returns the simulated clock, for the simulated flow.
    pub(crate) fn clock(&self) -> Arc<AtomicU64> {
        self.now.clone()
    }

    /// Adds to the duration of the current batch's code.
    pub(crate) fn spend(&self, spent: Spent) {
        let Spent { cpu_ns, wait_ns } = spent;
        self.cpu_ns.store(self.cpu_ns.load(Relaxed).saturating_add(cpu_ns), Relaxed);
        self.wait_ns.store(self.wait_ns.load(Relaxed).saturating_add(wait_ns), Relaxed);
        // The flow's clock advances within the batch, so that the engine's own measurements see each unit's time.
        self.now.store(self.now.load(Relaxed).saturating_add(cpu_ns).saturating_add(wait_ns), Relaxed);
    }

    pub(super) fn set_now(&self, now: u64) {
        self.now.store(now, Relaxed);
    }

    /// Returns and resets the duration of the batch whose code has run.
    pub(super) fn take(&self) -> Spent {
        Spent { cpu_ns: self.cpu_ns.swap(0, Relaxed), wait_ns: self.wait_ns.swap(0, Relaxed) }
    }
}
