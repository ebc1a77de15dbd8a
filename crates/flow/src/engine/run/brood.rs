//! A brood: the children that one run of a splitting stage produces.
//!
//! Their rows and numbers are taken, and the room for them is reserved, under the flow's mutex before the run. So the
//! worker needs no lock for a child.

use std::collections::VecDeque;

use super::settlement::Settlement;
use crate::engine::units::column::Row;
use crate::engine::units::stamp::Stamp;

/// A child on its way from its parent's run into the flow.
pub(crate) struct Newborn {
    pub(crate) row: Row,
    /// Its first stage; [`NO_STAGE`](crate::engine::claims::NO_STAGE) if it has retired.
    pub(crate) to: u16,
    pub(crate) bytes: u64,
}

/// Children that have gone on together in the turn of their parents.
pub(crate) struct Branch {
    /// The stage in which these children began.
    pub(crate) first: u16,
    /// The units to settle.
    pub(crate) rows: VecDeque<Row>,
    /// The number of units that began: children, or groups of children.
    pub(crate) units: usize,
    /// The children's total weight when they were produced, in bytes.
    pub(crate) bytes: u64,
    /// The number of group holders that have moved from this branch to another branch and gone on there.
    pub(crate) rested: u64,
    pub(crate) settlement: Settlement,
}

impl Branch {
    pub(crate) fn new(first: u16) -> Self {
        let (rows, settlement) = (VecDeque::new(), Settlement::default());
        Branch { first, rows, units: 0, bytes: 0, rested: 0, settlement }
    }

    pub(crate) fn add(&mut self, row: Row, bytes: u64) {
        self.rows.push_back(row);
        self.bytes += bytes;
    }
}

pub(crate) struct Brood {
    /// Free rows for further children.
    rows: Vec<Row>,
    /// The stamp of the next child.
    next: Stamp,
    end_id: u64,
    /// The children so far; children of one parent are consecutive.
    born: Vec<Newborn>,
    /// The children that have gone on, in branches.
    branches: Vec<Branch>,
    /// The number of children that have gone on.
    gone_on: u64,
    bytes: u64,
    max_bytes: u64,
    /// The reserved room, in units and bytes.
    reserved: (u64, u64),
}

impl Brood {
    /// A brood of at most one child for each row. The first child gets the stamp `first`. The brood is full when its
    /// children weigh `max_bytes`.
    pub(crate) fn new(rows: Vec<Row>, first: Stamp, max_bytes: u64) -> Self {
        let reserved = (rows.len() as u64, max_bytes);
        let end_id = first.id() + reserved.0;
        let (born, branches) = (Vec::with_capacity(rows.len()), Vec::new());
        Brood { rows, next: first, end_id, born, branches, gone_on: 0, bytes: 0, max_bytes, reserved }
    }

    /// Whether another child may come. A brood without children has room for a child of any weight.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        !self.rows.is_empty() && (self.born.is_empty() || self.bytes < self.max_bytes)
    }

    /// Takes a row, with a stamp, for the next child.
    #[inline]
    pub(crate) fn take_row(&mut self) -> Option<(Row, Stamp)> {
        let row = self.rows.pop()?;
        let stamp = self.next;
        self.next = stamp.next();
        Some((row, stamp))
    }

    /// Takes back the row and the stamp of the last child, because the child could not be made.
    pub(crate) fn give_row_back(&mut self, row: Row, stamp: Stamp) {
        self.rows.push(row);
        self.next = stamp;
    }

    #[inline]
    pub(crate) fn add(&mut self, newborn: Newborn) {
        self.bytes = self.bytes.saturating_add(newborn.bytes);
        self.born.push(newborn);
    }

    /// The number of children so far.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.born.len()
    }

    /// The children that have not gone on.
    pub(crate) fn born(&self) -> impl Iterator<Item = &Newborn> {
        self.born.iter()
    }

    /// The number of the next child, and the first number after the numbers taken for the brood.
    pub(crate) fn numbers(&self) -> (u64, u64) {
        (self.next.id(), self.end_id)
    }

    /// The room that was reserved for the brood, in units and bytes.
    pub(crate) fn reserved(&self) -> (u64, u64) {
        self.reserved
    }

    /// Passes each child to `take`, and keeps the children that `take` returns.
    pub(crate) fn take_out(&mut self, take: impl FnMut(Newborn) -> Option<Newborn>) {
        let born = std::mem::take(&mut self.born);
        self.gone_on += born.len() as u64;
        self.born.extend(born.into_iter().filter_map(take));
        self.gone_on -= self.born.len() as u64;
    }

    /// Takes back a child that does not go on after all.
    pub(crate) fn give_back(&mut self, newborn: Newborn) {
        self.gone_on -= 1;
        self.born.push(newborn);
    }

    /// Whether the children weigh more than the brood's `max_bytes`.
    pub(crate) fn is_overweight(&self) -> bool {
        self.bytes > self.max_bytes
    }

    /// Notes the children that have gone on.
    pub(crate) fn go_on(&mut self, branches: Vec<Branch>) {
        self.branches = branches;
    }

    /// The number of children, including the children that have gone on.
    pub(crate) fn children(&self) -> u64 {
        self.born.len() as u64 + self.gone_on
    }

    /// The children that have not gone on, the branches of the other children, and the unused rows.
    pub(crate) fn into_parts(self) -> (Vec<Newborn>, Vec<Branch>, Vec<Row>) {
        (self.born, self.branches, self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brood_is_full_when_its_rows_are_used_up_or_it_weighs_enough() {
        // SAFETY: this test makes one row of each number.
        let rows: Vec<Row> = (0..3).map(|number| unsafe { Row::new(number) }).collect();
        let mut brood = Brood::new(rows, Stamp::new(7, 1), 10);
        let (row, stamp) = brood.take_row().unwrap();
        assert!(stamp.id() == 7 && brood.has_room());
        brood.add(Newborn { row, to: 0, bytes: 4 });
        let (row, stamp) = brood.take_row().unwrap();
        assert!(stamp.id() == 8 && brood.has_room());
        brood.add(Newborn { row, to: 0, bytes: 6 });
        assert!(!brood.has_room());
        assert_eq!(brood.children(), 2);
        let (born, branches, unused) = brood.into_parts();
        assert_eq!((born.len(), branches.len(), unused.len()), (2, 0, 1));
    }
}
