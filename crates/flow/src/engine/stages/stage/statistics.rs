//! The counts of a stage, and views of its units.

use super::{StageState, Waits};
use crate::engine::stages::batch::GrantedBatch;
use crate::engine::stages::stats::StageStats;
use crate::engine::units::walk::{See, Sight, Walk};
use crate::snapshot::StageSnapshot;

// ---- views of its units -------------------------------------------------------------------------------

impl StageState {
    /// The stage's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The number of units that workers have in hand.
    pub(crate) fn in_hand(&self) -> u64 {
        (self.running + self.in_turns) as u64
    }

    /// Passes to `see` the units in the queue and the granted units.
    pub(in crate::engine::stages) fn walk<'a>(&'a self, walk: &mut Walk, see: See<'a, '_>) {
        self.waiting.walk(walk, |row, since_ns, run, place| {
            see(row, self.number, Sight::Queued { since_ns, run, place });
        });
        let batch = |run: usize| &self.batches[self.batches.len() - 1 - run];
        let len = |run: usize| batch(run).rows.len();
        // Batches are short, so the walk may start a batch over.
        walk.next_runs(self.batches.len(), 0, len, |run, place| {
            let GrantedBatch { permits, held, opened_ns, rows, .. } = batch(run);
            let place = rows.len() - 1 - place;
            let sight = Sight::Granted { since_ns: *opened_ns, permits, held, place, units: rows.len() };
            see(&rows[place], self.number, sight);
        });
    }

    /// The number of units in the queue ahead of a unit, given its two indices in the walk.
    pub(crate) fn ahead_of(&self, run: usize, place: usize) -> usize {
        self.waiting.ahead_of(run, place)
    }
}

// ---- statistics ---------------------------------------------------------------------------------------

impl StageState {
    /// Counts units that leave the stage with success.
    #[inline]
    pub(crate) fn count_units(&mut self, units: u64) {
        self.stats.units += units;
    }

    /// Counts units that come to the stage in a chain, without waiting in its queue.
    pub(crate) fn count_arrivals_in_chain(&mut self, units: u64) {
        self.stats.waited_in_queue(0, units);
    }

    /// Counts the time of a batch's run.
    pub(crate) fn count_run(&mut self, busy_ns: u64) {
        self.stats.busy_ns += busy_ns;
    }

    /// Records that `units` units were served in `ns` each.
    pub(crate) fn count_service(&mut self, ns: u64, units: u64) {
        self.stats.served(ns, units);
    }

    pub(crate) fn count_failure(&mut self) {
        self.stats.failures += 1;
    }

    pub(crate) fn count_retry(&mut self) {
        self.stats.failures += 1;
        self.stats.retries += 1;
    }

    pub(crate) fn count_dead_letter(&mut self) {
        self.stats.dead_lettered += 1;
    }

    /// Counts a unit that returns to the queue although nothing has failed.
    pub(crate) fn count_requeue(&mut self) {
        self.stats.requeued += 1;
    }

    pub(crate) fn count_wait_for_memory(&mut self, ns: u64) {
        self.stats.waited_for_memory(ns);
    }

    pub(crate) fn waits(&self) -> Waits<'_> {
        let StageStats { waited, waited_memory, waited_room, queued, .. } = &self.stats;
        Waits { for_resources: waited, for_memory: *waited_memory, for_room: *waited_room, in_queue: *queued }
    }

    /// The stage's own part of its snapshot. The caller fills in what the units wait for.
    pub(crate) fn snapshot(&self, now: u64) -> StageSnapshot {
        let mut snapshot = StageSnapshot {
            name: self.name.to_string(),
            waiting: self.queued(),
            waiting_for: Vec::new(),
            granted: self.granted as u64,
            running: self.running as u64,
            units: 0,
            failures: 0,
            retries: 0,
            dead_lettered: 0,
            requeued: 0,
            open_groups: self.open_groups,
            torn: 0,
            busy_ns: 0,
            workers_busy: self.busy as u64,
            workers_min: self.workers.floor as u64,
            workers_max: self.workers.ceiling as u64,
            blocking: self.blocking,
            oldest_ns: self.oldest_ns().map_or(0, |since_ns| now.saturating_sub(since_ns)),
            service_ns: Default::default(),
            wait_ns: Default::default(),
            waited_for: Vec::new(),
        };
        self.stats.write_to(&mut snapshot);
        snapshot
    }
}
