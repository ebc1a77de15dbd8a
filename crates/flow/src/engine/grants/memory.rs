//! The line of units that were cancelled to stay within the byte budget. They run again when there is room.
//!
//! These units wait in one line, first come, first served, and admission is closed meanwhile. So a unit waits only for
//! units that were in flight before it, and each of these frees its bytes when it leaves.
//!
//! The wait could be long if no unit runs, because the units in flight pause between attempts, wait for tokens of a
//! rate, or wait for their batch to fill. While no unit runs, the first unit in line may therefore exceed the budget
//! after it has waited for [`MEMORY_PATIENCE_NS`]. The next unit may exceed the budget when the flow is within the
//! budget again, or another [`MEMORY_PATIENCE_NS`] later. It does not wait longer, because the first unit could itself
//! wait for something that the next unit holds. If nothing else in the flow can ever move, the first unit goes on at
//! once, because only a unit that finishes frees memory.
//!
//! A unit that has gone on beyond the budget may grow again in a later stage. It then returns to the front of the line,
//! so no other unit exceeds the budget before it.

use std::collections::VecDeque;

use crate::engine::timers::{TimerAction, Timers};
use crate::engine::units::column::Row;
use crate::engine::units::walk::{See, Sight, Walk};

/// How long a unit waits before it may exceed the budget while no unit runs.
const MEMORY_PATIENCE_NS: u64 = 100_000_000;

#[derive(Default)]
pub(crate) struct MemoryLine {
    line: VecDeque<MemoryWaiter>,
    timer_set: bool,
    /// The time at which a unit last went on beyond the byte budget.
    exceeded_ns: u64,
    /// The number of the unit that last went on beyond the byte budget.
    exceeding: Option<u64>,
}

/// A cancelled unit, with the bytes that it asks for.
pub(crate) struct MemoryWaiter {
    pub(crate) row: Row,
    /// The unit's number.
    pub(crate) unit: u64,
    pub(crate) stage: u16,
    pub(crate) wants_bytes: u64,
    pub(crate) since_ns: u64,
}

impl MemoryWaiter {
    pub(crate) fn waited_ns(&self, now: u64) -> u64 {
        now.saturating_sub(self.since_ns)
    }
}

impl MemoryLine {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.line.len()
    }

    /// Puts a cancelled unit at the end of the line; puts the unit that went on beyond the budget at the front. The
    /// unit's wait begins `now`, or at a time close to `now` that keeps the line sorted. Times may arrive out of order,
    /// because workers read the clock before they lock the mutex.
    pub(crate) fn park(&mut self, mut waiter: MemoryWaiter, timers: &mut Timers, now: u64) {
        if self.exceeding == Some(waiter.unit) {
            waiter.since_ns = self.line.front().map_or(now, |first| now.min(first.since_ns));
            self.line.push_front(waiter);
        } else {
            waiter.since_ns = self.line.back().map_or(now, |last| now.max(last.since_ns));
            self.line.push_back(waiter);
        }
        self.set_timer(timers, now);
    }

    /// Sets a timer for the moment at which the next unit's patience ends; one timer serves the whole line. Everything
    /// else that lets a unit go on is an event, and the line is checked after every event.
    fn set_timer(&mut self, timers: &mut Timers, now: u64) {
        if self.timer_set {
            return;
        }
        let ends = |waiter: &MemoryWaiter| waiter.since_ns.max(self.exceeded_ns).saturating_add(MEMORY_PATIENCE_NS);
        let next = self.line.partition_point(|waiter| ends(waiter) <= now);
        if let Some(at) = self.line.get(next).map(ends) {
            self.timer_set = true;
            timers.set(at, TimerAction::Memory);
        }
    }

    /// Sets the next timer after one has fired.
    pub(crate) fn timer_fired(&mut self, timers: &mut Timers, now: u64) {
        self.timer_set = false;
        self.set_timer(timers, now);
    }

    /// The first unit in line.
    #[inline]
    pub(crate) fn head(&mut self) -> Option<&mut MemoryWaiter> {
        self.line.front_mut()
    }

    /// Whether the first unit has waited long enough that it may exceed the budget if no unit runs. `kept` says that
    /// the flow is within the budget now.
    pub(crate) fn head_is_due(&self, kept: bool, now: u64) -> bool {
        self.line.front().is_some_and(|head| {
            let rested = now.saturating_sub(head.since_ns.max(self.exceeded_ns));
            rested >= MEMORY_PATIENCE_NS || (head.waited_ns(now) >= MEMORY_PATIENCE_NS && kept)
        })
    }

    /// Takes the first unit, which goes on now; `exceeds` says that it goes on beyond the budget.
    pub(crate) fn pop(&mut self, exceeds: bool, timers: &mut Timers, now: u64) -> Option<MemoryWaiter> {
        let waiter = self.line.pop_front()?;
        if exceeds {
            (self.exceeded_ns, self.exceeding) = (now, Some(waiter.unit));
            self.set_timer(timers, now);
        }
        Some(waiter)
    }

    /// Passes the units to `see`, beginning at the end of the line.
    pub(super) fn walk<'a>(&'a self, walk: &mut Walk, see: See<'a, '_>) {
        let part = walk.next_list(self.line.len());
        for (behind, waiter) in self.line.iter().rev().enumerate().skip(part.start).take(part.len()) {
            let MemoryWaiter { row, stage, wants_bytes, since_ns, .. } = waiter;
            let ahead = self.line.len() - 1 - behind;
            see(row, *stage, Sight::ForMemory { bytes: *wants_bytes, since_ns: *since_ns, ahead });
        }
    }

    /// Takes all units out of the line.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Row> {
        self.line.drain(..).map(|waiter| waiter.row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiter(number: u32) -> MemoryWaiter {
        // SAFETY: each test uses one row of each number at a time.
        MemoryWaiter { row: unsafe { Row::new(number) }, unit: number.into(), stage: 0, wants_bytes: 10, since_ns: 0 }
    }

    fn parked(since: &[u64]) -> (MemoryLine, Timers) {
        let (mut line, mut timers) = (MemoryLine::default(), Timers::default());
        for (number, &now) in (0..).zip(since) {
            line.park(waiter(number), &mut timers, now);
        }
        (line, timers)
    }

    #[test]
    fn the_unit_that_went_on_beyond_the_budget_comes_back_as_the_first() {
        let (mut line, mut timers) = parked(&[3, 4, 5]);
        assert_eq!(line.pop(true, &mut timers, 6).map(|first| first.unit), Some(0));
        line.park(waiter(3), &mut timers, 7);
        line.park(waiter(0), &mut timers, 8);
        let units: Vec<_> = line.line.iter().map(|waiter| (waiter.unit, waiter.since_ns)).collect();
        assert_eq!(units, [(0, 4), (1, 4), (2, 5), (3, 7)]);
    }

    #[test]
    fn one_timer_serves_the_line() {
        let (mut line, mut timers) = parked(&[5, 7]);
        assert_eq!(timers.next_at(), 5 + MEMORY_PATIENCE_NS);
        assert!(timers.next_due(5 + MEMORY_PATIENCE_NS).is_some() && timers.next_at() == u64::MAX);
        line.timer_fired(&mut timers, 5 + MEMORY_PATIENCE_NS);
        assert_eq!(timers.next_at(), 7 + MEMORY_PATIENCE_NS);
    }

    #[test]
    fn after_one_unit_exceeds_the_budget_the_next_one_waits() {
        let (mut line, mut timers) = parked(&[0, 0]);
        assert!(!line.head_is_due(true, MEMORY_PATIENCE_NS - 1) && line.head_is_due(false, MEMORY_PATIENCE_NS));
        assert!(line.pop(true, &mut timers, MEMORY_PATIENCE_NS).is_some());
        assert!(!line.head_is_due(false, MEMORY_PATIENCE_NS + 1), "the first one may wait for it");
        assert!(line.head_is_due(true, MEMORY_PATIENCE_NS + 1), "the flow is within the budget again");
        assert!(line.head_is_due(false, 2 * MEMORY_PATIENCE_NS));
    }
}
