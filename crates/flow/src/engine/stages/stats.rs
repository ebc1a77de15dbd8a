//! Counts and distributions of a stage's queue and workers.
//!
//! The counts are plain words, changed under the scheduler's mutex once per batch, so a snapshot shows one consistent
//! moment. The counters of `millstream-sync` are meant for words that several threads change at once, and were slower
//! here.

use crate::engine::histogram::Times;
use crate::snapshot::StageSnapshot;

pub(crate) struct StageStats {
    pub(super) units: u64,
    pub(super) failures: u64,
    pub(super) retries: u64,
    pub(super) dead_lettered: u64,
    pub(super) requeued: u64,
    /// The number of groups that were closed early.
    pub(super) torn: u64,
    pub(super) busy_ns: u64,
    /// A running mean of the service time; 0 before the first unit.
    pub(super) mean_ns: u64,
    /// A decaying maximum of the service time: each new unit lowers the weight of the older units.
    pub(super) slow_ns: u64,
    pub(super) service: Times,
    pub(super) wait: Times,
    /// The sum and number of waits, by resource.
    pub(super) waited: Vec<(u64, u64)>,
    pub(super) waited_memory: (u64, u64),
    pub(super) waited_room: (u64, u64),
    /// The units' total time in the queue, including time in line for resources and for room; and the number of units.
    pub(super) queued: (u64, u64),
}

impl StageStats {
    pub(super) fn new(resources: usize) -> Self {
        StageStats {
            units: 0,
            failures: 0,
            retries: 0,
            dead_lettered: 0,
            requeued: 0,
            torn: 0,
            busy_ns: 0,
            mean_ns: 0,
            slow_ns: 0,
            service: Times::new(),
            wait: Times::new(),
            waited: vec![(0, 0); resources],
            waited_memory: (0, 0),
            waited_room: (0, 0),
            queued: (0, 0),
        }
    }

    /// Records that `n` units were served in `ns` each.
    pub(super) fn served(&mut self, ns: u64, n: u64) {
        self.service.record(ns, n);
        let sample = ns.max(1);
        self.slow_ns = sample.max(self.slow_ns - self.slow_ns / 64);
        self.mean_ns = match self.mean_ns {
            0 => sample,
            mean => mean.saturating_mul(7).saturating_add(sample) / 8,
        }
        .max(1);
    }

    /// Records that `n` units were in the queue for `ns` each.
    pub(super) fn waited_in_queue(&mut self, ns: u64, n: u64) {
        self.wait.record(ns, n);
        self.queued.0 = self.queued.0.saturating_add(ns.saturating_mul(n));
        self.queued.1 += n;
    }

    pub(super) fn waited_for_resource(&mut self, resource: u16, ns: u64) {
        let (total, count) = &mut self.waited[usize::from(resource)];
        *total = total.saturating_add(ns);
        *count += 1;
    }

    pub(super) fn waited_for_memory(&mut self, ns: u64) {
        self.waited_memory.0 = self.waited_memory.0.saturating_add(ns);
        self.waited_memory.1 += 1;
    }

    pub(super) fn waited_for_room(&mut self, ns: u64) {
        self.waited_room.0 = self.waited_room.0.saturating_add(ns);
        self.waited_room.1 += 1;
    }

    /// Writes the counts and distributions into a snapshot of the stage.
    pub(super) fn write_to(&self, snapshot: &mut StageSnapshot) {
        snapshot.units = self.units;
        snapshot.failures = self.failures;
        snapshot.retries = self.retries;
        snapshot.dead_lettered = self.dead_lettered;
        snapshot.requeued = self.requeued;
        snapshot.torn = self.torn;
        snapshot.busy_ns = self.busy_ns;
        snapshot.service_ns = self.service.quantiles();
        snapshot.wait_ns = self.wait.quantiles();
    }
}
