//! A walk over the units in flight that no worker has in its hands, in steps of a bounded length.
//!
//! Each part shows its lists of units to the walk, always in the same order. A step ends within a list after a number of
//! units, and the next step goes on from there, under the mutex again. Queues and lines are walked from their ends: units
//! leave at the front and come at the back, so a unit that stays in its list is passed over by no step.

use std::ops::Range;

use super::column::Row;
use crate::engine::claims::{GrantList, InstanceId};

/// The place of a walk: the list, and the number of its units that were seen.
pub(crate) type WalkedTo = (usize, usize);

/// One step of a walk.
pub(crate) struct Walk {
    at: WalkedTo,
    /// The number of lists that were shown in this step.
    shown: usize,
    /// The number of units and lists that may still be seen in this step.
    left: usize,
}

/// The state of a unit that the walk sees.
pub(crate) enum Sight<'a> {
    /// In its stage's queue, behind `ahead` units.
    Queued { since_ns: u64, ahead: usize },
    /// Granted, as the unit at `place` among the `units` of a batch, with what the batch holds.
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
    /// Split, and done except for its children.
    ForChildren { children: u64 },
    /// At rest, with a group open.
    ForMembers,
}

/// The listener to a walk: it hears of a unit's row, stage and state.
pub(crate) type See<'a, 'b> = &'b mut dyn FnMut(&'a Row, u16, Sight<'a>);

impl Walk {
    /// A step that begins at `at`, and sees about `most` units.
    pub(crate) fn step(at: WalkedTo, most: usize) -> Self {
        Walk { at, shown: 0, left: most.max(1) }
    }

    /// The part of the next list that belongs to this step; the list has `len` units.
    pub(crate) fn next_list(&mut self, len: usize) -> Range<usize> {
        let list = self.shown;
        self.shown += 1;
        if list < self.at.0 || self.left == 0 {
            return 0..0;
        }
        let start = if list == self.at.0 { self.at.1.min(len) } else { 0 };
        let seen = (len - start).min(self.left);
        // An empty list costs a look, too.
        self.left -= seen.max(1).min(self.left);
        // A list that was seen to its end is not begun again, or a short step would stay at it.
        self.at = if start + seen == len { (list + 1, 0) } else { (list, start + seen) };
        start..start + seen
    }

    /// The place at which the next step begins; `None` if every list was seen to its end.
    pub(crate) fn end(self) -> Option<WalkedTo> {
        (self.left == 0).then_some(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_any_length_see_each_unit_once() {
        let lens = [3, 0, 5, 0, 0, 1];
        for most in 1..12 {
            let (mut at, mut seen, mut steps) = (Some((0, 0)), Vec::new(), 0);
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
