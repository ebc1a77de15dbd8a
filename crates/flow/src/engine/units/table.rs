//! The table of the units in flight: their records and stamps, and the rows that are free.

use std::collections::VecDeque;
use std::sync::Arc;

use super::column::{Column, Row};
use super::families::Families;
use super::groups::Groups;
use super::pocket::{Pocket, Spares};
use super::record::{Parent, Record};
use super::stamp::Stamp;
use super::walk::{See, Walk};

pub(crate) struct Units {
    records: Arc<Column<Record>>,
    stamps: Arc<Column<Stamp>>,
    /// Free rows that are in no worker's pocket.
    free: Vec<Row>,
    /// The pocket of the worker that holds the mutex. All other threads that lock the mutex, such as submitters and the
    /// timekeeper, share one pocket, which is here when no worker holds the mutex.
    pocket: Pocket,
    /// The number of rows that exist.
    made: u32,
    /// Units that an abandoned flow leaves behind.
    left_behind: Vec<Row>,
    families: Families,
    groups: Groups,
}

impl Units {
    pub(crate) fn new() -> Self {
        Units {
            records: Arc::new(Column::new()),
            stamps: Arc::new(Column::new()),
            free: Vec::new(),
            pocket: Pocket::default(),
            made: 0,
            left_behind: Vec::new(),
            families: Families::default(),
            groups: Groups::default(),
        }
    }

    /// The columns of records and stamps, for threads that own a row.
    pub(crate) fn columns(&self) -> (Arc<Column<Record>>, Arc<Column<Stamp>>) {
        (self.records.clone(), self.stamps.clone())
    }

    #[inline]
    pub(crate) fn record<'a>(&'a self, row: &'a mut Row) -> &'a mut Record {
        self.records.record(row)
    }

    /// The unit's record, for reading.
    pub(crate) fn look<'a>(&'a self, row: &'a Row) -> &'a Record {
        self.records.look(row)
    }

    #[inline]
    pub(crate) fn stamp(&self, row: &Row) -> Stamp {
        self.stamps.stamp(row)
    }

    #[inline]
    pub(crate) fn set_stamp(&self, row: &mut Row, stamp: Stamp) {
        self.stamps.set(row, stamp);
    }

    /// Exchanges the current pocket for the caller's pocket.
    #[inline]
    pub(crate) fn swap_pocket(&mut self, pocket: &mut Pocket) {
        std::mem::swap(&mut self.pocket, pocket);
    }

    /// Takes all rows out of the pocket of a worker that ends.
    pub(crate) fn empty_pocket(&mut self, pocket: &mut Pocket) {
        self.free.extend(pocket.empty());
    }

    /// Takes a free row, or makes one, for a new unit.
    #[inline]
    pub(crate) fn take_row(&mut self) -> Row {
        self.pocket.take().or_else(|| self.free.pop()).unwrap_or_else(|| {
            let number = self.made;
            self.made += 1;
            // SAFETY: `made` only grows, so each number is given out once, and a `Row` cannot be copied. So no other
            // `Row` of this flow has the number.
            unsafe { Row::new(number) }
        })
    }

    /// Takes back the rows of units that have left.
    #[inline]
    pub(crate) fn free_rows(&mut self, rows: impl Iterator<Item = Row>) {
        self.pocket.keep(rows);
        self.share_surplus();
    }

    /// Moves surplus rows from the pocket to the flow.
    #[inline]
    pub(crate) fn share_surplus(&mut self) {
        if let Some(surplus) = self.pocket.surplus() {
            self.free.extend(surplus);
        }
    }

    /// An empty list of rows.
    #[inline]
    pub(crate) fn take_list(&mut self) -> VecDeque<Row> {
        self.pocket.spares().take()
    }

    /// Keeps an emptied list for reuse.
    #[inline]
    pub(crate) fn keep_list(&mut self, rows: VecDeque<Row>) {
        self.pocket.spares().keep(rows);
    }

    /// Empty lists for queues to use.
    #[inline]
    pub(crate) fn spares(&mut self) -> &mut Spares {
        self.pocket.spares()
    }

    /// The units that were split, and have children in flight.
    #[inline]
    pub(crate) fn families(&mut self) -> &mut Families {
        &mut self.families
    }

    /// The parent of a unit that was split and waits for its children.
    pub(crate) fn parent_of_waiting(&mut self, row: u32) -> Option<Parent> {
        let Units { families, records, .. } = self;
        records.record(families.waiting_parent(row)?).parent()
    }

    /// The units that hold groups open.
    #[inline]
    pub(crate) fn groups(&self) -> &Groups {
        &self.groups
    }

    #[inline]
    pub(crate) fn groups_mut(&mut self) -> &mut Groups {
        &mut self.groups
    }

    /// The number of units at rest, which wait only for other units: holders of open groups, and parents whose own work
    /// has ended.
    #[inline]
    pub(crate) fn at_rest(&self) -> u64 {
        self.groups.at_rest() + self.families.at_rest()
    }

    /// Passes to `see` the units that wait only for other units.
    pub(crate) fn walk<'a>(&'a self, walk: &mut Walk, see: See<'a, '_>) {
        self.families.walk(walk, see);
        self.groups.walk(walk, see);
    }

    /// Keeps a unit that the abandoned flow leaves behind.
    pub(crate) fn leave_behind(&mut self, row: Row) {
        self.left_behind.push(row);
    }

    pub(crate) fn take_left_behind(&mut self) -> Vec<Row> {
        let mut left = std::mem::take(&mut self.left_behind);
        left.extend(self.families.empty());
        left.extend(self.groups.empty());
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_row_is_used_again_before_a_new_one_is_made() {
        let mut units = Units::new();
        let (first, second) = (units.take_row(), units.take_row());
        assert_ne!(first.number(), second.number());
        let number = second.number();
        units.free_rows([second].into_iter());
        assert_eq!(units.take_row().number(), number);
    }

    #[test]
    fn a_worker_finds_its_own_rows_again() {
        let mut units = Units::new();
        let (mut mine, row) = (Pocket::default(), units.take_row());
        let number = row.number();
        units.swap_pocket(&mut mine);
        units.free_rows([row].into_iter());
        units.swap_pocket(&mut mine);
        assert_ne!(units.take_row().number(), number, "the row is in the worker's pocket");
        units.swap_pocket(&mut mine);
        assert_eq!(units.take_row().number(), number);
    }

    #[test]
    fn a_full_pocket_shares_its_rows() {
        let mut units = Units::new();
        let rows: Vec<Row> = (0..2000).map(|_| units.take_row()).collect();
        let mut pocket = Pocket::default();
        units.swap_pocket(&mut pocket);
        units.free_rows(rows.into_iter());
        units.swap_pocket(&mut pocket);
        assert!(units.take_row().number() < 2000, "some rows are in the flow's own list");
    }
}
