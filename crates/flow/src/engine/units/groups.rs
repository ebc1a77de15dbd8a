//! Groups: each group has a holder, which is a unit that keeps the group open for other units until the group is
//! closed.
//!
//! The first member of a group stays in flight as the holder, and its row rests here. Members that join later leave the
//! flow. The stage's lane keeps the group's contents (see `run/gather`). When a batch of members is settled, its worker
//! notes here by how much the group grew and whether it is full.
//!
//! A note may arrive before the holder itself is settled, if another worker ran the holder. It may also arrive after
//! the group has ended. So each group has a number that no other group of the flow gets, not even a group that the same
//! unit opens later. The group's entry stays until all notes about the group have arrived.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::column::Row;
use super::walk::{See, Sight, Walk};

/// A worker's note about a group, which comes with the settlement of its batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupNote {
    /// Members have joined. The group's weight grew by `bytes`; `full` says that it must be closed.
    Joined { group: u64, bytes: u64, full: bool },
    /// The group has gone on from its stage, or was given up. Workers wrote `notes` notes about it.
    Ended { group: u64, notes: u64 },
}

/// The rules by which a stage gathers its units, as the scheduler needs them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupRules {
    /// A group gathers the children of one parent.
    pub(crate) by_family: bool,
    /// Groups have keys, which user code computes.
    pub(crate) by_key: bool,
    /// User code decides when a group is full.
    pub(crate) by_code: bool,
    /// A group of this many units is full.
    pub(crate) max_units: u64,
    /// A group of this many bytes is full.
    pub(crate) max_bytes: u64,
    /// A group goes on even if a unit of its family failed.
    pub(crate) goes_on_torn: bool,
    /// A group is closed this long after its holder has come to rest.
    pub(crate) wait_ns: u64,
    /// The maximum number of open groups. If there are more, the oldest group is closed early.
    pub(crate) max_groups: u64,
    /// The number of stages that a group may reach from here. When a flow ends, groups of the stage with the largest
    /// `leads_to` are closed first.
    pub(crate) leads_to: usize,
}

/// A holder at rest.
#[derive(Debug)]
pub(crate) struct Holder {
    pub(crate) row: Row,
    pub(crate) stage: u16,
    /// The row of the parent whose children the group gathers; `None` if the group is not by family.
    pub(crate) family: Option<u32>,
    /// The holder's own bytes.
    pub(crate) bytes: u64,
}

/// A resting holder's position in the order of holders: first by whether its group is by family, then by stage and age.
type Place = (bool, u16, u64);

#[derive(Default)]
struct Group {
    rests: Option<(Holder, Place)>,
    /// The number of bytes by which the group has grown.
    grown: u64,
    /// The group is full, so its holder no longer rests.
    full: bool,
    notes: u64,
    /// The number of notes that workers wrote; known once the group has ended.
    written: Option<u64>,
}

/// The groups of a flow, by their numbers.
#[derive(Default)]
pub(crate) struct Groups {
    groups: FxHashMap<u64, Group>,
    places: BTreeMap<Place, u64>,
    /// The bytes of all groups that may be closed early and whose holders rest.
    bytes: u64,
    /// The number of holders that have ever come to rest.
    came: u64,
}

impl Groups {
    /// The number of holders at rest.
    #[inline]
    pub(crate) fn at_rest(&self) -> u64 {
        self.places.len() as u64
    }

    /// The bytes of all groups that may be closed early and whose holders rest.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Puts a holder to rest. Returns the holder if its group is already full.
    pub(crate) fn rest(&mut self, number: u64, holder: Holder) -> Option<Holder> {
        let group = self.groups.entry(number).or_default();
        if group.full {
            return Some(holder);
        }
        let place = (holder.family.is_some(), holder.stage, self.came);
        self.came += 1;
        self.places.insert(place, number);
        if holder.family.is_none() {
            self.bytes += holder.bytes + group.grown;
        }
        group.rests = Some((holder, place));
        None
    }

    /// Notes that members have joined. Returns the number of bytes to add to the flow's bytes in flight.
    pub(crate) fn join(&mut self, number: u64, bytes: u64) -> u64 {
        let group = self.groups.entry(number).or_default();
        group.notes += 1;
        if group.written.is_some() {
            // The group has ended. Its weight already included these members then, so nothing is added.
            if group.written == Some(group.notes) {
                self.groups.remove(&number);
            }
            return 0;
        }
        group.grown += bytes;
        if group.rests.as_ref().is_some_and(|(holder, _)| holder.family.is_none()) {
            self.bytes += bytes;
        }
        bytes
    }

    /// Wakes the holder of a full group. A holder that is not at rest yet will not come to rest.
    pub(crate) fn fill(&mut self, number: u64) -> Option<Holder> {
        self.groups.get_mut(&number).filter(|group| group.written.is_none())?.full = true;
        self.wake(number)
    }

    /// Wakes a holder. Returns `None` if the holder is not at rest.
    pub(crate) fn wake(&mut self, number: u64) -> Option<Holder> {
        let group = self.groups.get_mut(&number)?;
        let (holder, place) = group.rests.take()?;
        if holder.family.is_none() {
            self.bytes -= holder.bytes + group.grown;
        }
        self.places.remove(&place);
        Some(holder)
    }

    /// Notes the end of a group. Returns the number of bytes by which it grew, to be subtracted from the flow's bytes
    /// in flight.
    pub(crate) fn end(&mut self, number: u64, written: u64) -> u64 {
        let Some(group) = self.groups.get_mut(&number) else { return 0 };
        let grown = std::mem::take(&mut group.grown);
        if group.notes == written {
            self.groups.remove(&number);
        } else {
            group.written = Some(written);
        }
        grown
    }

    /// The oldest of the stage's groups that may be closed early: its holder has rested longest.
    pub(crate) fn oldest_in(&self, stage: u16) -> Option<u64> {
        let places = (false, stage, 0)..=(false, stage, u64::MAX);
        self.places.range(places).next().map(|(_, &number)| number)
    }

    /// The stage's open groups that may be closed early, oldest first.
    pub(crate) fn in_stage(&self, stage: u16) -> Vec<u64> {
        self.places.range((false, stage, 0)..=(false, stage, u64::MAX)).map(|(_, &number)| number).collect()
    }

    /// Passes to `see` the holders at rest.
    pub(super) fn walk<'a>(&'a self, walk: &mut Walk, see: See<'a, '_>) {
        let part = walk.next_map(self.groups.len());
        for group in self.groups.values().skip(part.start).take(part.len()) {
            if let Some((holder, _)) = &group.rests {
                see(&holder.row, holder.stage, Sight::ForMembers);
            }
        }
    }

    /// Takes all holders at rest.
    pub(super) fn empty(&mut self) -> impl Iterator<Item = Row> {
        let Groups { groups, .. } = std::mem::take(self);
        groups.into_values().filter_map(|group| Some(group.rests?.0.row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(number: u32) -> Holder {
        // SAFETY: each test makes one row of each number.
        Holder { row: unsafe { Row::new(number) }, stage: 0, family: None, bytes: 1 }
    }

    #[test]
    fn the_oldest_holder_is_the_one_that_came_first() {
        let mut groups = Groups::default();
        for number in [7, 5, 9] {
            assert!(groups.rest(number, holder(number as u32)).is_none());
        }
        groups.rest(1, Holder { family: Some(3), ..holder(1) });
        assert_eq!((groups.oldest_in(0), groups.in_stage(0), groups.in_stage(1)), (Some(7), vec![7, 5, 9], vec![]));
        assert!(groups.wake(7).is_some() && groups.wake(7).is_none());
        assert_eq!((groups.oldest_in(0), groups.at_rest(), groups.bytes()), (Some(5), 3, 2));
    }

    #[test]
    fn a_holder_whose_group_is_full_before_it_rests_does_not_rest() {
        let mut groups = Groups::default();
        assert_eq!(groups.join(4, 10), 10);
        assert!(groups.fill(4).is_none(), "a worker still has its holder in hand");
        assert!(groups.rest(4, holder(4)).is_some());
        assert_eq!((groups.end(4, 1), groups.at_rest(), groups.groups.len()), (10, 0, 0));
    }

    #[test]
    fn a_note_that_comes_after_the_end_is_not_accounted_for() {
        let mut groups = Groups::default();
        groups.rest(4, holder(4));
        assert!(groups.wake(4).is_some());
        assert_eq!(groups.end(4, 2), 0);
        assert_eq!(groups.join(4, 10), 0);
        assert!(groups.fill(4).is_none());
        assert_eq!((groups.join(4, 10), groups.groups.len(), groups.bytes()), (0, 0, 0));
    }

    #[test]
    fn an_abandoned_flow_gets_the_resting_holders_back() {
        let mut groups = Groups::default();
        groups.rest(1, holder(1));
        groups.join(2, 5);
        assert_eq!(groups.empty().map(|row| row.number()).collect::<Vec<_>>(), [1]);
    }
}
