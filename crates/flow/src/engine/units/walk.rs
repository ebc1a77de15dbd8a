//! A walk over the units in flight that no worker has in hand, in steps of a bounded length.
//!
//! The lists of units are walked part by part, always in the same order. A step ends after a certain number of units,
//! perhaps in the middle of a list. The next step continues at that position. The mutex is not held between two steps.
//! Queues and lines are walked from their ends, because units join at the back and leave at the front. So no step
//! misses a unit that stays in its list.

use std::cmp::Ordering;
use std::ops::Range;

use super::column::Row;
use crate::engine::claims::{GrantList, InstanceId};

/// The position of a walk. A run is a part of a list, such as one arrival of a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct WalkedTo {
    /// The index of the current list.
    list: usize,
    /// The number of finished runs in the list; in a list without runs, the number of finished units.
    run: usize,
    /// The number of finished units in the next run.
    place: usize,
    /// The number of runs that had joined the list when the step ended.
    joined: usize,
}

impl WalkedTo {
    /// The beginning of a list.
    fn list(list: usize) -> Self {
        WalkedTo { list, ..WalkedTo::default() }
    }
}

/// A map has no positions to jump to, so each step must iterate from the map's beginning or end, and skip what earlier
/// steps have seen. To keep the number of steps small, a step sees at least `1 / MAP_SHARE` of the map.
const MAP_SHARE: usize = 8;

/// One step of a walk.
pub(crate) struct Walk {
    at: WalkedTo,
    /// The number of lists that this step has reached or skipped.
    shown: usize,
    /// The number of units and lists that may still be seen in this step.
    left: usize,
}

/// Where the walk sees a unit, and the time at which the unit began to wait there.
pub(crate) enum Sight<'a> {
    /// In its stage's queue: at `place` in run `run`, both counted from the end.
    Queued { since_ns: u64, run: usize, place: usize },
    /// Granted: the unit at `place` among the `units` of a batch, and the grants that the batch holds.
    Granted { since_ns: u64, permits: &'a GrantList, held: &'a GrantList, place: usize, units: usize },
    /// In the line of an instance.
    InLine { instance: InstanceId, amount: u64, since_ns: u64, ahead: usize },
    /// In the line for keys of a resource.
    ForKeys { resource: u16, since_ns: u64, ahead: usize },
    /// In the line for bytes.
    ForMemory { bytes: u64, since_ns: u64, ahead: usize },
    /// In its stage's line for room.
    ForRoom { since_ns: u64, ahead: usize },
    /// In a pause.
    Pausing { until_ns: u64 },
    /// Split, with its own work done; it waits only for its children.
    ForChildren { children: u64 },
    /// At rest, with a group open.
    ForMembers,
}

/// The callback of a walk. It gets a unit's row, stage and state.
pub(crate) type See<'a, 'b> = &'b mut dyn FnMut(&'a Row, u16, Sight<'a>);

impl Walk {
    /// A step that begins at `at`, and sees about `most` units.
    pub(crate) fn step(at: WalkedTo, most: usize) -> Self {
        Walk { at, shown: 0, left: most.max(1) }
    }

    /// The range of the next list that belongs to this step. The list has `len` units.
    pub(crate) fn next_list(&mut self, len: usize) -> Range<usize> {
        let Some(WalkedTo { list, run: start, .. }) = self.next() else { return 0..0 };
        let start = start.min(len);
        let seen = (len - start).min(self.left);
        self.spend(seen);
        // A finished list is not started again; otherwise a short step would never get past it.
        self.at = WalkedTo::list(list);
        if start + seen == len {
            self.at.list += 1;
        } else {
            self.at.run = start + seen;
        }
        start..start + seen
    }

    /// Like [`next_list`](Self::next_list), but for a map. A step sees at least a share of the map (see [`MAP_SHARE`]).
    pub(crate) fn next_map(&mut self, len: usize) -> Range<usize> {
        if self.shown >= self.at.list && self.left > 0 {
            self.left = self.left.max(len / MAP_SHARE);
        }
        self.next_list(len)
    }

    /// Walks over the part of the next list that belongs to this step. For each unit, `see` gets the run and the unit's
    /// position in the run. The list has `runs` runs, and `len` returns the number of units of a run. `joined` counts
    /// the runs that have ever joined the list, and may wrap around. From this count, a step finds the run at which the
    /// previous step ended. Without the count, each run that joins between two steps would make the walk start a long
    /// run again.
    pub(crate) fn next_runs(
        &mut self,
        runs: usize,
        joined: usize,
        len: impl Fn(usize) -> usize,
        mut see: impl FnMut(usize, usize),
    ) {
        let Some(WalkedTo { list, mut run, mut place, joined: before }) = self.next() else { return };
        if (run, place) != (0, 0) {
            run = run.saturating_add(joined.wrapping_sub(before));
        }
        if runs == 0 {
            self.spend(0);
        }
        while run < runs && self.left > 0 {
            let len = len(run);
            let seen = len.saturating_sub(place).min(self.left);
            (place..place + seen).for_each(|place| see(run, place));
            self.spend(seen);
            place += seen;
            if place >= len {
                (run, place) = (run + 1, 0);
            }
        }
        self.at = if run >= runs { WalkedTo::list(list + 1) } else { WalkedTo { list, run, place, joined } };
    }

    /// The next list, and the position in it to continue from; `None` if the list does not belong to this step.
    fn next(&mut self) -> Option<WalkedTo> {
        let list = self.shown;
        self.shown += 1;
        match list.cmp(&self.at.list) {
            _ if self.left == 0 => None,
            Ordering::Less => None,
            Ordering::Equal => Some(self.at),
            Ordering::Greater => Some(WalkedTo::list(list)),
        }
    }

    /// Counts units that were seen. An empty list costs as much as one unit.
    fn spend(&mut self, seen: usize) {
        self.left -= seen.max(1).min(self.left);
    }

    /// Of the next `lists` lists, skips the lists that earlier steps have completed. Returns the number of lists
    /// skipped.
    pub(crate) fn pass(&mut self, lists: usize) -> usize {
        let passed = self.at.list.saturating_sub(self.shown).min(lists);
        self.shown += passed;
        passed
    }

    /// Whether this step has reached its limit of units.
    pub(crate) fn is_over(&self) -> bool {
        self.left == 0
    }

    /// The position at which the next step begins; `None` if every list is done.
    pub(crate) fn end(self) -> Option<WalkedTo> {
        (self.left == 0).then_some(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_passes_lists_of_earlier_steps_at_once() {
        let mut walk = Walk::step(WalkedTo { run: 2, ..WalkedTo::list(70_000) }, 3);
        assert_eq!((walk.pass(50_000), walk.pass(50_000), walk.pass(50_000)), (50_000, 20_000, 0));
        assert_eq!((walk.next_list(4), walk.is_over()), (2..4, false));
        assert_eq!((walk.next_list(4), walk.is_over()), (0..1, true));
        assert_eq!(walk.end(), Some(WalkedTo { run: 1, ..WalkedTo::list(70_001) }));
    }

    #[test]
    fn runs_are_seen_in_steps_of_any_length_even_if_units_come_and_go_meanwhile() {
        for most in 1..9 {
            // Runs, beginning with the last run, as in a queue. Before the third step, two runs are added at the back
            // and the first run is removed.
            let mut runs: Vec<Vec<u32>> = vec![vec![0, 1, 2], vec![], vec![3], vec![4, 5, 6, 7], vec![8]];
            let (mut at, mut seen, mut steps, mut joined) = (Some(WalkedTo::default()), Vec::new(), 0, usize::MAX);
            while let Some(from) = at {
                if steps == 2 {
                    runs.pop();
                    runs.splice(0..0, [vec![9], vec![10, 11]]);
                    joined = joined.wrapping_add(2);
                }
                let mut walk = Walk::step(from, most);
                let before = seen.len();
                walk.next_runs(runs.len(), joined, |run| runs[run].len(), |run, place| seen.push(runs[run][place]));
                assert!(seen.len() - before <= most);
                assert!(walk.next_list(0).is_empty());
                at = walk.end();
                steps += 1;
                assert!(steps < 100, "the walk ends");
            }
            let times = |unit| seen.iter().filter(|&&other| other == unit).count();
            assert!((0..8).all(|unit| times(unit) == 1), "steps of {most}: {seen:?}");
        }
    }

    #[test]
    fn a_map_is_seen_in_a_few_steps() {
        let (mut at, mut seen, mut steps) = (Some(WalkedTo::default()), 0, 0);
        while let Some(from) = at {
            let mut walk = Walk::step(from, 1);
            assert_eq!(walk.next_list(1).len() + walk.next_list(1).len(), usize::from(steps < 2));
            let part = walk.next_map(8_000);
            assert!(part.is_empty() || part.start == seen);
            seen = seen.max(part.end);
            at = walk.end();
            steps += 1;
        }
        assert_eq!((seen, steps), (8_000, 11));
    }

    #[test]
    fn steps_of_any_length_see_each_unit_once() {
        let lens = [3, 0, 5, 0, 0, 1];
        for most in 1..12 {
            let (mut at, mut seen, mut steps) = (Some(WalkedTo::default()), Vec::new(), 0);
            while let Some(from) = at {
                let mut walk = Walk::step(from, most);
                for (list, len) in lens.into_iter().enumerate() {
                    let part = walk.next_list(len);
                    assert!(part.len() <= most);
                    seen.extend(part.map(|unit| (list, unit)));
                }
                at = walk.end();
                steps += 1;
                assert!(steps < 100, "the walk ends");
            }
            let all: Vec<_> = lens.into_iter().enumerate().flat_map(|(l, len)| (0..len).map(move |u| (l, u))).collect();
            assert_eq!(seen, all, "steps of {most}");
        }
    }
}
