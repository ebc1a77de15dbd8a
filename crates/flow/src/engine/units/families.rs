//! Families: units that were split, and the children that they wait for.
//!
//! A child's record names its parent's row. The parent keeps that row until its own work and all its children have
//! ended, so the name stays good; then it leaves the flow, which may end the wait of its own parent.

use std::collections::HashMap;

use super::column::Row;

/// The way in which a unit leaves the flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parting {
    /// Done.
    Retired,
    /// Without a result, because its stage skips failures.
    Skipped,
    /// Failed for good.
    Dead,
}

/// The parents of children in flight, by the numbers of their rows.
#[derive(Default)]
pub(crate) struct Families {
    parents: HashMap<u32, Family>,
}

#[derive(Default)]
struct Family {
    /// The number of children in flight.
    children: u64,
    /// The parent, once its own work has ended.
    waits: Option<(Row, Parting)>,
}

impl Families {
    /// Adds children of the unit in this row.
    pub(crate) fn add_children(&mut self, parent: u32, children: u64) {
        self.parents.entry(parent).or_default().children += children;
    }

    /// Takes a unit whose own work has ended. Returns it if it may leave at once, because no child is in flight.
    #[inline]
    pub(crate) fn end(&mut self, row: Row, parting: Parting) -> Option<Row> {
        if self.parents.is_empty() {
            return Some(row);
        }
        let Some(family) = self.parents.get_mut(&row.number()) else { return Some(row) };
        family.waits = Some((row, parting));
        None
    }

    /// Removes children that leave the flow. Returns their parent if it has waited for them alone, and leaves now.
    pub(crate) fn remove_children(&mut self, parent: u32, children: u64) -> Option<(Row, Parting)> {
        let family = self.parents.get_mut(&parent)?;
        family.children -= children;
        if family.children > 0 {
            return None;
        }
        self.parents.remove(&parent)?.waits
    }

    /// Takes the parents that wait for their children.
    pub(super) fn empty(&mut self) -> impl Iterator<Item = Row> {
        std::mem::take(&mut self.parents).into_values().filter_map(|family| Some(family.waits?.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u32) -> Row {
        // SAFETY: each test makes one row of each number.
        unsafe { Row::new(number) }
    }

    #[test]
    fn a_parent_leaves_when_its_work_and_its_last_child_have_ended() {
        let mut families = Families::default();
        assert!(families.end(row(1), Parting::Retired).is_some(), "it was never split");
        families.add_children(2, 3);
        assert!(families.remove_children(2, 2).is_none());
        assert!(families.end(row(2), Parting::Dead).is_none());
        let (left, parting) = families.remove_children(2, 1).unwrap();
        assert_eq!((left.number(), parting), (2, Parting::Dead));
    }

    #[test]
    fn a_parent_whose_children_all_left_before_it_was_done_waits_for_none() {
        let mut families = Families::default();
        families.add_children(2, 3);
        assert!(families.remove_children(2, 3).is_none(), "the parent still works");
        assert!(families.end(row(2), Parting::Retired).is_some());
    }

    #[test]
    fn an_abandoned_flow_gets_the_waiting_parents_back() {
        let mut families = Families::default();
        families.add_children(2, 1);
        families.add_children(3, 1);
        assert!(families.end(row(2), Parting::Retired).is_none());
        assert_eq!(families.empty().map(|row| row.number()).collect::<Vec<_>>(), [2]);
    }
}
