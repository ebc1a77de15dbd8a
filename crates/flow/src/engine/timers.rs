//! Timers: the moments at which the timekeeper acts. They use only one other part, `units`: its rows, and the walk over
//! them.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use super::claims::InstanceId;
use super::units::column::Row;
use super::units::walk::{See, Sight, Walk};

/// The timers of a flow, and the units that pause.
#[derive(Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<Timer>>,
    /// The number of units that pause, each with a timer of its own.
    paused: u64,
    /// The number of timers that bring tokens or keys to waiting units.
    supplies: usize,
}

struct Timer {
    at_ns: u64,
    action: TimerAction,
}

pub(crate) enum TimerAction {
    /// The unit enters the stage's queue.
    Enqueue(Row, u16),
    /// A filling batch of the stage may have waited long enough. The next choice of a batch takes that into account.
    Batch(u16),
    /// The rate has tokens again.
    Rate(InstanceId),
    /// A key of the rate may be forgotten.
    Keys(u16),
    /// The first unit in the line for bytes may have waited long enough.
    Memory,
    /// The system may now be able to start a thread.
    RetrySpawn,
    /// The group with this number has been open long enough.
    Group(u64),
    /// The timekeeper checks whether the workers that were expected soon have returned.
    Watch,
}

impl TimerAction {
    /// Whether the timer brings tokens or keys to waiting units.
    fn supplies(&self) -> bool {
        matches!(self, TimerAction::Rate(_) | TimerAction::Keys(_))
    }
}

impl Timers {
    pub(crate) fn set(&mut self, at_ns: u64, action: TimerAction) {
        self.supplies += usize::from(action.supplies());
        self.heap.push(Reverse(Timer { at_ns, action }));
    }

    /// Pauses a unit until `at_ns`; then it enters the stage's queue.
    pub(crate) fn pause(&mut self, row: Row, stage: u16, at_ns: u64) {
        self.paused += 1;
        self.set(at_ns, TimerAction::Enqueue(row, stage));
    }

    /// Takes the first timer that is due, with its time.
    pub(crate) fn next_due(&mut self, now: u64) -> Option<(u64, TimerAction)> {
        if self.next_at() > now {
            return None;
        }
        let Reverse(Timer { at_ns, action }) = self.heap.pop()?;
        self.supplies -= usize::from(action.supplies());
        self.paused -= u64::from(matches!(action, TimerAction::Enqueue(..)));
        Some((at_ns, action))
    }

    /// The time of the first timer; `u64::MAX` if none is set.
    #[inline]
    pub(crate) fn next_at(&self) -> u64 {
        self.heap.peek().map_or(u64::MAX, |Reverse(timer)| timer.at_ns)
    }

    /// The number of units that pause.
    pub(crate) fn paused(&self) -> u64 {
        self.paused
    }

    /// Whether a timer will end a unit's pause, or bring tokens or keys to waiting units.
    pub(crate) fn brings_work(&self) -> bool {
        self.paused > 0 || self.supplies > 0
    }

    /// Passes to `see` the units that pause.
    pub(crate) fn walk<'a>(&'a self, walk: &mut Walk, see: See<'a, '_>) {
        let part = walk.next_list(self.heap.len());
        for Reverse(timer) in self.heap.iter().skip(part.start).take(part.len()) {
            if let TimerAction::Enqueue(row, stage) = &timer.action {
                see(row, *stage, Sight::Pausing { until_ns: timer.at_ns });
            }
        }
    }

    /// Drops all timers. Returns the units whose pauses this ends.
    pub(crate) fn clear(&mut self) -> impl Iterator<Item = Row> {
        let Timers { heap, .. } = std::mem::take(self);
        heap.into_iter().filter_map(|Reverse(timer)| match timer.action {
            TimerAction::Enqueue(row, _) => Some(row),
            _ => None,
        })
    }

    /// The number of timers for filling batches.
    #[cfg(test)]
    pub(crate) fn for_batches(&self) -> usize {
        self.heap.iter().filter(|Reverse(timer)| matches!(timer.action, TimerAction::Batch(_))).count()
    }
}

impl PartialEq for Timer {
    fn eq(&self, other: &Self) -> bool {
        self.at_ns == other.at_ns
    }
}

impl Eq for Timer {}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timer {
    fn cmp(&self, other: &Self) -> Ordering {
        self.at_ns.cmp(&other.at_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fire_in_the_order_of_their_times() {
        let mut timers = Timers::default();
        timers.set(30, TimerAction::Memory);
        timers.set(10, TimerAction::Batch(1));
        timers.set(20, TimerAction::Rate(2));
        assert_eq!(timers.next_at(), 10);
        assert!(matches!(timers.next_due(25), Some((10, TimerAction::Batch(1)))));
        assert!(matches!(timers.next_due(25), Some((20, TimerAction::Rate(2)))));
        assert!(timers.next_due(25).is_none() && timers.next_at() == 30);
    }

    #[test]
    fn pauses_and_supplies_bring_work_until_they_end() {
        let mut timers = Timers::default();
        timers.set(5, TimerAction::Watch);
        assert!(!timers.brings_work());
        timers.set(6, TimerAction::Keys(0));
        // SAFETY: this test makes one row of each number.
        timers.pause(unsafe { Row::new(0) }, 3, 7);
        assert!(timers.brings_work() && timers.paused() == 1);
        while timers.next_due(10).is_some() {}
        assert!(!timers.brings_work() && timers.paused() == 0);
    }

    #[test]
    fn clearing_returns_the_units_that_paused() {
        let mut timers = Timers::default();
        timers.set(5, TimerAction::Memory);
        // SAFETY: this test makes one row of each number.
        timers.pause(unsafe { Row::new(4) }, 0, 9);
        assert_eq!(timers.clear().map(|row| row.number()).collect::<Vec<_>>(), [4]);
        assert!(timers.next_at() == u64::MAX && timers.paused() == 0);
    }
}
