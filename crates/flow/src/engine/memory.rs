//! Units that were cancelled to keep the byte budget, and run again when there is room.
//!
//! These units wait in one line, first come, first served, and admission is closed meanwhile. So a unit waits at most
//! for units that were in flight before it, each of which frees its bytes when it leaves. That may take long when none
//! of them runs: they pause between attempts, wait for tokens of a rate, or for their batch to fill. The first unit in
//! line, once it has waited for [`PATIENCE_NS`], therefore goes on beyond the budget at such a moment. The next one
//! does so when the budget is kept again, or another [`PATIENCE_NS`] later, because the first could wait for something
//! that the next one holds. If nothing else in the flow can ever move, the first unit goes on at once, because only
//! finishing frees memory.

use super::column::Row;
use super::state::{MemoryWaiter, State, TimerAction};

/// The time that a unit waits before it may exceed the budget at a moment when no unit runs.
const PATIENCE_NS: u64 = 100_000_000;

impl State {
    /// Puts a cancelled unit at the end of the line.
    pub(crate) fn park_for_memory(&mut self, row: Row, stage: u16, wants_bytes: u64, now: u64) {
        // Workers read the clock before they take the mutex, so times may arrive out of order; the line stays sorted by
        // time.
        let since_ns = self.memory_waiters.back().map_or(now, |last| now.max(last.since_ns));
        self.memory_waiters.push_back(MemoryWaiter { row, stage, wants_bytes, since_ns });
        self.set_memory_timer(now);
    }

    /// Sets a timer for the moment at which the next unit's patience ends; one timer serves the whole line. Whatever
    /// else lets a unit go on is an event, after which `flow_on` looks at the line anyway.
    fn set_memory_timer(&mut self, now: u64) {
        if self.memory_timer_set {
            return;
        }
        let exceeded_ns = self.memory_exceeded_ns;
        let ends = |waiter: &MemoryWaiter| waiter.since_ns.max(exceeded_ns).saturating_add(PATIENCE_NS);
        let next = self.memory_waiters.partition_point(|waiter| ends(waiter) <= now);
        if let Some(at) = self.memory_waiters.get(next).map(ends) {
            self.memory_timer_set = true;
            self.set_timer(at, TimerAction::Memory);
        }
    }

    /// Sets the next timer after one has fired; `flow_on` then looks at the line.
    pub(crate) fn watch_memory(&mut self, now: u64) {
        self.memory_timer_set = false;
        self.set_memory_timer(now);
    }

    /// Lets the first unit in line go on if it may. Returns whether it does.
    pub(crate) fn serve_memory(&mut self, now: u64) -> bool {
        let Some(head) = self.memory_waiters.front_mut() else { return false };
        let since_ns = head.since_ns;
        let waited = now.saturating_sub(since_ns);
        let grows = head.wants_bytes.saturating_sub(self.units.unit(&mut head.row).bytes);
        let fits = self.fits(grows.into());
        let rested = now.saturating_sub(since_ns.max(self.memory_exceeded_ns));
        let is_due = rested >= PATIENCE_NS || (waited >= PATIENCE_NS && self.fits(0));
        let may_exceed = self.is_stuck() || (is_due && self.is_at_rest(now));
        if !fits && !may_exceed {
            return false;
        }
        let Some(MemoryWaiter { mut row, stage, .. }) = self.memory_waiters.pop_front() else { return false };
        if !fits {
            self.memory_exceeded_ns = now;
            self.set_memory_timer(now);
        }
        let unit = self.units.unit(&mut row);
        unit.privileged |= !fits;
        unit.is_reserved = true;
        unit.bytes += grows;
        self.add_bytes(grows);
        self.stage(stage).stats.waited_for_memory(waited);
        self.enqueue(row, stage, now);
        true
    }

    /// Whether no unit runs, could run, or will come by itself to where it could.
    fn is_stuck(&self) -> bool {
        self.delayed == 0
            && self.supply_timers == 0
            && self.stages.iter().all(|stage| stage.granted + stage.running == 0)
    }

    /// Whether no unit runs or could run now.
    fn is_at_rest(&self, now: u64) -> bool {
        self.stages.iter().all(|stage| {
            stage.running + stage.in_turns == 0 && !stage.batches.iter().any(|batch| stage.is_ripe(batch, now))
        })
    }
}
