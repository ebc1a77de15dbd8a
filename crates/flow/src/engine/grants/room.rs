//! The line for room: a unit in a stage that splits waits here until the flow has room for children.
//!
//! A unit waits before it asks for the needs of its stage, so it holds nothing meanwhile. The deepest unit comes first,
//! whichever stage splits it, because work that has begun should finish first. A tree that is split level by level then
//! keeps one path in flight instead of one whole level. Among units of equal depth, a unit that has begun to split
//! comes before a unit that has not. So only a few units are in the middle of a split at a time. If nothing else in the
//! flow can ever move, the first unit produces one child beyond the caps. The flow then exceeds the caps by at most one
//! unit for each level.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::engine::units::column::Row;
use crate::engine::units::walk::{See, Sight, Walk};

/// The lines of the stages that split.
#[derive(Default)]
pub(crate) struct RoomLine {
    lines: Vec<(u16, BTreeMap<Place, RoomWaiter>)>,
    /// The number of units in all lines.
    units: usize,
    /// The number of units that have ever joined a line.
    came: u64,
    /// The first unit lacks room. Admission is closed until there is room.
    starved: bool,
}

/// A unit's position in line. Deeper units come first. Among units of equal depth, a unit that has begun to split comes
/// before a unit that has not. Otherwise, units are in the order in which they joined.
type Place = (Reverse<u32>, bool, u64);

pub(crate) struct RoomWaiter {
    pub(crate) row: Row,
    pub(crate) since_ns: u64,
}

impl RoomLine {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.units == 0
    }

    /// Whether a unit waits for room. If so, newcomers must not take any room.
    #[inline]
    pub(crate) fn is_starved(&self) -> bool {
        self.starved
    }

    pub(crate) fn set_starved(&mut self, starved: bool) {
        self.starved = starved;
    }

    /// Puts a unit into its stage's line.
    pub(crate) fn wait(&mut self, row: Row, stage: u16, depth: u32, begun: bool, now: u64) {
        let place = (Reverse(depth), !begun, self.came);
        self.came += 1;
        self.units += 1;
        let waiter = RoomWaiter { row, since_ns: now };
        match self.lines.iter_mut().find(|(of, _)| *of == stage) {
            Some((_, line)) => drop(line.insert(place, waiter)),
            None => self.lines.push((stage, BTreeMap::from([(place, waiter)]))),
        }
    }

    /// The stage whose first unit precedes the first units of all other stages; only stages that `serves` accepts
    /// count.
    pub(crate) fn next_stage(&self, serves: impl Fn(u16) -> bool) -> Option<u16> {
        let heads = self.lines.iter().filter(|(stage, _)| serves(*stage));
        let heads = heads.filter_map(|(stage, line)| Some((line.first_key_value()?.0, *stage)));
        heads.min().map(|(_, stage)| stage)
    }

    /// Takes the first unit of the stage.
    pub(crate) fn pop(&mut self, stage: u16) -> Option<RoomWaiter> {
        let (_, line) = self.lines.iter_mut().find(|(of, _)| *of == stage)?;
        let (_, waiter) = line.pop_first()?;
        self.units -= 1;
        self.starved = false;
        Some(waiter)
    }

    /// Passes the units to `see`. Within each stage, it begins at the end of the line.
    pub(super) fn walk<'a>(&'a self, walk: &mut Walk, see: See<'a, '_>) {
        for (stage, line) in &self.lines {
            let part = walk.next_map(line.len());
            for (behind, waiter) in line.values().rev().enumerate().skip(part.start).take(part.len()) {
                let ahead = line.len() - 1 - behind;
                see(&waiter.row, *stage, Sight::ForRoom { since_ns: waiter.since_ns, ahead });
            }
        }
    }

    /// Takes all units out of the lines.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Row> {
        (self.units, self.starved) = (0, false);
        std::mem::take(&mut self.lines).into_iter().flat_map(|(_, line)| line.into_values().map(|waiter| waiter.row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u32) -> Row {
        // SAFETY: each test makes one row of each number.
        unsafe { Row::new(number) }
    }

    fn order(line: &mut RoomLine) -> Vec<u32> {
        std::iter::from_fn(|| {
            let stage = line.next_stage(|_| true)?;
            line.pop(stage).map(|waiter| waiter.row.number())
        })
        .collect()
    }

    #[test]
    fn the_deepest_unit_comes_first_then_one_that_has_begun_then_the_oldest() {
        let mut line = RoomLine::default();
        line.wait(row(0), 7, 0, false, 0);
        line.wait(row(1), 7, 0, true, 1);
        line.wait(row(2), 4, 1, false, 2);
        line.wait(row(3), 7, 0, true, 3);
        line.wait(row(4), 7, 2, false, 4);
        assert_eq!(order(&mut line), [4, 2, 1, 3, 0]);
        assert!(line.is_empty());
    }

    #[test]
    fn a_stage_without_seats_holds_up_no_other() {
        let mut line = RoomLine::default();
        line.wait(row(0), 1, 5, false, 0);
        line.wait(row(1), 2, 0, false, 0);
        assert_eq!(line.next_stage(|stage| stage != 1), Some(2));
        assert_eq!(line.next_stage(|_| false), None);
    }
}
