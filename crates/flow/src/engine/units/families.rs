//! Families: units that were split, and the children that they wait for.
//!
//! A child's record contains the number of its parent's row. The parent keeps this row until its own work and all its
//! children have ended, so the number stays valid. Then the parent leaves the flow, which may end the wait of its own
//! parent.
//!
//! A child may hold a group of its family open (see `groups`). When a parent waits only for such children, all members
//! of their groups have arrived.

use rustc_hash::FxHashMap;

use super::column::Row;
use super::walk::{See, Sight, Walk};
use crate::engine::claims::NO_STAGE;

/// How a unit leaves the flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parting {
    /// Done.
    Retired,
    /// The unit leaves without a result, because its stage skips failures.
    Skipped,
    /// Failed for good.
    Dead,
    /// The unit leaves as part of a group, which goes on in its place.
    Gathered,
}

/// A parent that leaves the flow.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Departure {
    pub(crate) row: Row,
    pub(crate) parting: Parting,
    /// The number of units that failed for good: its descendants, and the parent itself.
    pub(crate) dead: u64,
}

/// The effect of a change in a family.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Nothing,
    /// The parent leaves, because it waits for no child.
    Leaves(Departure),
    /// All members of the family's groups have arrived. The list has the numbers of these groups.
    Gathered(Vec<u64>),
}

/// The parents of children in flight, by the numbers of their rows.
#[derive(Default)]
pub(crate) struct Families {
    parents: FxHashMap<u32, Family>,
    /// The number of parents at rest: their own work has ended, and they wait for their children.
    at_rest: u64,
}

#[derive(Default)]
struct Family {
    /// The number of children in flight.
    children: u64,
    /// The parent, once its own work has ended.
    waits: Option<(Row, Parting)>,
    /// The numbers of the groups that resting children of the family hold open.
    groups: Vec<u64>,
    /// The number of units that failed for good: descendants, and the parent itself.
    dead: u64,
    /// The family's groups have been told of the failed units, so these are not reported to the parent's own parent.
    answered: bool,
}

impl Family {
    /// The number of failed units to report to the parent's own parent.
    fn unanswered(&self) -> u64 {
        if self.answered { 0 } else { self.dead }
    }

    /// The groups of the family, if nothing else of the family is in flight.
    fn gathered(&self) -> Effect {
        if self.waits.is_some() && self.children == self.groups.len() as u64 {
            Effect::Gathered(self.groups.clone())
        } else {
            Effect::Nothing
        }
    }
}

impl Families {
    /// Adds children of the unit in this row.
    pub(crate) fn add_children(&mut self, parent: u32, children: u64) {
        self.parents.entry(parent).or_default().children += children;
    }

    /// Ends a unit's own work.
    #[inline]
    pub(crate) fn end(&mut self, row: Row, parting: Parting) -> Effect {
        let dead = u64::from(parting == Parting::Dead);
        if self.parents.is_empty() {
            return Effect::Leaves(Departure { row, parting, dead });
        }
        self.end_of_parent(row, parting, dead)
    }

    fn end_of_parent(&mut self, row: Row, parting: Parting, dead: u64) -> Effect {
        let number = row.number();
        let Some(family) = self.parents.get_mut(&number) else {
            return Effect::Leaves(Departure { row, parting, dead });
        };
        // A parent that is skipped after its first child may lack further children, so it counts as failed.
        family.dead += u64::from(matches!(parting, Parting::Dead | Parting::Skipped));
        if family.children == 0 {
            let dead = family.unanswered();
            self.parents.remove(&number);
            return Effect::Leaves(Departure { row, parting, dead });
        }
        family.waits = Some((row, parting));
        self.at_rest += 1;
        family.gathered()
    }

    /// Removes children that leave the flow. `dead` is the number of units that failed for good among the children and
    /// their descendants.
    pub(crate) fn remove_children(&mut self, parent: u32, children: u64, dead: u64) -> Effect {
        let Some(family) = self.parents.get_mut(&parent) else { return Effect::Nothing };
        family.children -= children;
        family.dead += dead;
        if family.children > 0 {
            return family.gathered();
        }
        let dead = family.unanswered();
        match family.waits.take() {
            Some((row, parting)) => {
                self.at_rest -= 1;
                self.parents.remove(&parent);
                Effect::Leaves(Departure { row, parting, dead })
            }
            // The parent is still working. Its family stays, because the groups of its later children must learn of the
            // failed units.
            None if dead > 0 => Effect::Nothing,
            None => {
                self.parents.remove(&parent);
                Effect::Nothing
            }
        }
    }

    /// The number of parents at rest, which wait for their children.
    #[inline]
    pub(crate) fn at_rest(&self) -> u64 {
        self.at_rest
    }

    /// Passes to `see` the parents that wait for their children.
    pub(super) fn walk<'a>(&'a self, walk: &mut Walk, see: See<'a, '_>) {
        let part = walk.next_map(self.parents.len());
        for family in self.parents.values().skip(part.start).take(part.len()) {
            if let Some((row, _)) = &family.waits {
                see(row, NO_STAGE, Sight::ForChildren { children: family.children });
            }
        }
    }

    /// Takes the parents that wait for their children.
    pub(super) fn empty(&mut self) -> impl Iterator<Item = Row> {
        let Families { parents, .. } = std::mem::take(self);
        parents.into_values().filter_map(|family| Some(family.waits?.0))
    }
}

// ---- groups of one family -----------------------------------------------------------------------------

impl Families {
    /// Notes that a child rests and holds a group of its family open.
    pub(crate) fn add_group(&mut self, parent: u32, group: u64) -> Effect {
        let Some(family) = self.parents.get_mut(&parent) else { return Effect::Nothing };
        family.groups.push(group);
        family.gathered()
    }

    /// Notes that a child no longer rests.
    pub(crate) fn remove_group(&mut self, parent: u32, group: u64) {
        if let Some(family) = self.parents.get_mut(&parent) {
            family.groups.retain(|&open| open != group);
        }
    }

    /// The parent in this row, if it waits for its children.
    pub(crate) fn waiting_parent(&mut self, parent: u32) -> Option<&mut Row> {
        Some(&mut self.parents.get_mut(&parent)?.waits.as_mut()?.0)
    }

    /// Returns the number of the family's units that failed for good. The family's groups, which are about to be
    /// closed, fail because of these units or go on without them. So the units are no longer reported to the parent's
    /// own parent.
    pub(crate) fn answer_for_dead(&mut self, parent: u32) -> u64 {
        self.parents.get_mut(&parent).map_or(0, |family| {
            family.answered = true;
            family.dead
        })
    }
}

/// Counts consecutive children of one parent.
#[derive(Default)]
pub(crate) struct Siblings {
    of: Option<(u32, u64)>,
}

impl Siblings {
    /// Counts a child. If the children before it had another parent, passes their count to `counted`.
    pub(crate) fn add(&mut self, parent: u32, counted: impl FnOnce(u32, u64)) {
        match &mut self.of {
            Some((of, children)) if *of == parent => *children += 1,
            of => {
                let before = of.replace((parent, 1));
                before.map(|(parent, children)| counted(parent, children)).unwrap_or_default();
            }
        }
    }

    /// Passes the count of the last children to `counted`.
    pub(crate) fn end(self, counted: impl FnOnce(u32, u64)) {
        self.of.map(|(parent, children)| counted(parent, children)).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u32) -> Row {
        // SAFETY: each test makes one row of each number.
        unsafe { Row::new(number) }
    }

    fn leaves(effect: Effect) -> Option<(u32, Parting, u64)> {
        let Effect::Leaves(Departure { row, parting, dead }) = effect else { return None };
        Some((row.number(), parting, dead))
    }

    #[test]
    fn a_parent_leaves_when_its_work_and_its_last_child_have_ended() {
        let mut families = Families::default();
        assert!(leaves(families.end(row(1), Parting::Retired)).is_some(), "it was never split");
        families.add_children(2, 3);
        assert_eq!(families.remove_children(2, 2, 0), Effect::Nothing);
        assert_eq!(families.end(row(2), Parting::Dead), Effect::Nothing);
        assert_eq!(families.at_rest(), 1);
        assert_eq!(leaves(families.remove_children(2, 1, 0)), Some((2, Parting::Dead, 1)));
        assert_eq!(families.at_rest(), 0);
    }

    #[test]
    fn a_parent_whose_children_all_left_before_it_was_done_waits_for_none() {
        let mut families = Families::default();
        families.add_children(2, 3);
        families.add_children(3, 1);
        assert_eq!(families.remove_children(2, 3, 0), Effect::Nothing, "the parent still works");
        assert_eq!(leaves(families.end(row(2), Parting::Retired)), Some((2, Parting::Retired, 0)));
        assert_eq!(families.remove_children(3, 1, 1), Effect::Nothing, "the parent still works");
        assert_eq!(leaves(families.end(row(3), Parting::Retired)), Some((3, Parting::Retired, 1)));
    }

    #[test]
    fn groups_are_whole_when_nothing_else_of_the_family_is_in_flight() {
        let mut families = Families::default();
        families.add_children(2, 3);
        assert_eq!(families.add_group(2, 70), Effect::Nothing);
        assert_eq!(families.remove_children(2, 1, 1), Effect::Nothing);
        assert_eq!(families.end(row(2), Parting::Retired), Effect::Nothing, "one child is elsewhere");
        assert_eq!(families.add_group(2, 71), Effect::Gathered(vec![70, 71]));
        assert_eq!((families.answer_for_dead(2), families.answer_for_dead(2)), (1, 1));
        families.remove_group(2, 71);
        assert_eq!(families.remove_children(2, 1, 0), Effect::Gathered(vec![70]));
        families.remove_group(2, 70);
        assert_eq!(leaves(families.remove_children(2, 1, 0)), Some((2, Parting::Retired, 0)));
    }

    #[test]
    fn an_abandoned_flow_gets_the_waiting_parents_back() {
        let mut families = Families::default();
        families.add_children(2, 1);
        families.add_children(3, 1);
        assert_eq!(families.end(row(2), Parting::Retired), Effect::Nothing);
        assert_eq!(families.empty().map(|row| row.number()).collect::<Vec<_>>(), [2]);
    }
}
