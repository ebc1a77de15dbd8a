//! The meter: simulated code says by it how long it takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The time that the code of one batch takes. One thread uses it, so every access is relaxed.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// The simulated time.
    now: Arc<AtomicU64>,
    cpu_ns: AtomicU64,
    wait_ns: AtomicU64,
}

/// The time of one run: the part for which it needs a core, and the part for which it waits for something else.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spent {
    pub(crate) cpu_ns: u64,
    pub(crate) wait_ns: u64,
}

impl Meter {
    /// The simulated time, for a flow that is to live in it.
    pub(crate) fn clock(&self) -> Arc<AtomicU64> {
        self.now.clone()
    }

    /// Lets the code of the current batch take this time.
    pub(crate) fn spend(&self, spent: Spent) {
        let Spent { cpu_ns, wait_ns } = spent;
        self.cpu_ns.store(self.cpu_ns.load(Relaxed).saturating_add(cpu_ns), Relaxed);
        self.wait_ns.store(self.wait_ns.load(Relaxed).saturating_add(wait_ns), Relaxed);
        // The flow's clock goes on within the batch, so that the engine's own measurements see each unit's time.
        self.now.store(self.now.load(Relaxed).saturating_add(cpu_ns).saturating_add(wait_ns), Relaxed);
    }

    pub(super) fn set_now(&self, now: u64) {
        self.now.store(now, Relaxed);
    }

    /// Takes the time of the batch whose code has run.
    pub(super) fn take(&self) -> Spent {
        Spent { cpu_ns: self.cpu_ns.swap(0, Relaxed), wait_ns: self.wait_ns.swap(0, Relaxed) }
    }
}
