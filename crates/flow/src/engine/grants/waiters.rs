//! The waiters of an instance: first come, first served. The line counts its units and its stages apart, so that a
//! report on a line takes the same time at any length.

use std::collections::VecDeque;
use std::collections::vec_deque::Iter;

use crate::engine::units::column::Row;

/// The line of waiters.
#[derive(Default)]
pub(super) struct Waiters {
    line: VecDeque<Waiter>,
    /// The number of waiters that are stages.
    stages: usize,
}

/// A waiter in an instance's line.
pub(crate) struct Waiter {
    pub(crate) party: Party,
    /// The amount that the unit or stage waits for.
    pub(crate) amount: u64,
    pub(crate) since_ns: u64,
}

/// The waiting unit or stage.
pub(crate) enum Party {
    /// A unit of a stage.
    Unit { row: Row, stage: u16 },
    /// A stage whose next batch needs a permit.
    Stage(u16),
}

impl Party {
    fn is_stage(&self) -> bool {
        matches!(self, Party::Stage(_))
    }
}

impl Waiters {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    /// The number of waiters, units and stages.
    pub(super) fn len(&self) -> usize {
        self.line.len()
    }

    /// The number of waiting units.
    pub(super) fn units(&self) -> usize {
        self.line.len() - self.stages
    }

    pub(super) fn front(&self) -> Option<&Waiter> {
        self.line.front()
    }

    /// The row and the stage of the head, if the head is a unit.
    pub(super) fn front_unit_mut(&mut self) -> Option<(&mut Row, u16)> {
        match &mut self.line.front_mut()?.party {
            Party::Unit { row, stage } => Some((row, *stage)),
            Party::Stage(_) => None,
        }
    }

    pub(super) fn push_back(&mut self, waiter: Waiter) {
        self.stages += usize::from(waiter.party.is_stage());
        self.line.push_back(waiter);
    }

    pub(super) fn push_front(&mut self, waiter: Waiter) {
        self.stages += usize::from(waiter.party.is_stage());
        self.line.push_front(waiter);
    }

    pub(super) fn pop_front(&mut self) -> Option<Waiter> {
        let waiter = self.line.pop_front()?;
        self.stages -= usize::from(waiter.party.is_stage());
        Some(waiter)
    }

    /// The waiters from the head on.
    pub(super) fn iter(&self) -> Iter<'_, Waiter> {
        self.line.iter()
    }

    /// Empties the line; returns the rows of its units.
    pub(super) fn drain_units(&mut self) -> impl Iterator<Item = Row> + '_ {
        self.stages = 0;
        self.line.drain(..).filter_map(|waiter| match waiter.party {
            Party::Unit { row, .. } => Some(row),
            Party::Stage(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_counted_apart_from_stages_wherever_they_stand() {
        let waiter = |stage| Waiter { party: Party::Stage(stage), amount: 1, since_ns: 0 };
        let mut waiters = Waiters::default();
        waiters.push_back(waiter(0));
        waiters.push_front(waiter(1));
        assert_eq!((waiters.len(), waiters.units()), (2, 0));
        assert!(waiters.front_unit_mut().is_none());
        assert!(matches!(waiters.pop_front(), Some(Waiter { party: Party::Stage(1), .. })));
        assert_eq!((waiters.len(), waiters.units()), (1, 0));
        assert_eq!(waiters.drain_units().count(), 0);
        assert!(waiters.is_empty() && waiters.units() == 0);
    }
}
