//! Gathering: how groups are opened, grow, and are closed.
//!
//! A unit that opens a group becomes the group's holder and rests. The group's other members leave the flow. When the
//! group is closed, its holder returns to the stage's queue, and a worker sends the group on.
//!
//! # Why every wait ends
//! A holder at rest holds no resources, and the cap on units in flight does not count it. So no later unit waits for a
//! holder. A holder itself waits for members to arrive. If no member can arrive, because nothing else in the flow moves
//! and nothing can enter, [`close_if_stuck`](State::close_if_stuck) closes groups.
//!
//! At that moment, every unit in flight is a holder, or a parent that waits for its children. (A unit that waits for
//! room or for bytes would go on: it may exceed the caps if nothing else moves.) At least one group is not *by family*:
//! it does not gather the children of one parent. To see why, assume that all groups were by family. Then all children
//! of the deepest waiting parent would be holders of its family's groups, so these groups would have all their members,
//! and would already be closed.
//!
//! `close_if_stuck` then closes a group that is not by family in two cases. In the first case, no more units can enter
//! the flow, so all members of the group have arrived. In the second case, other units need the room that the group
//! takes up.

use super::state::State;
use super::timers::TimerAction;
use super::units::column::Row;
use super::units::groups::{GroupNote, GroupRules, Holder};

impl State {
    /// Puts to rest a unit that has opened a group. It rests until the group is closed.
    pub(super) fn rest(&mut self, mut row: Row, stage: u16, number: u64, now: u64) {
        self.release_where(&mut row, now, |_| true);
        let record = self.units.record(&mut row);
        record.rest();
        let rules = self.rules(stage);
        let bytes = record.bytes();
        let family = record.parent().filter(|_| rules.by_family).map(|parent| parent.row);
        let holder = Holder { row, stage, family, bytes };
        self.stages.at_mut(stage).open_group();
        if let Some(holder) = self.units.groups_mut().rest(number, holder) {
            return self.end_rest(holder, number, false, now);
        }
        self.note_rest();
        if rules.wait_ns != u64::MAX {
            self.timers.set(now.saturating_add(rules.wait_ns), TimerAction::Group(number));
        }
        if let Some(parent) = family {
            let effect = self.units.families().add_group(parent, number);
            self.follow_family(effect, now);
        }
        if self.stages.at(stage).open_groups() > rules.max_groups {
            self.close_oldest(stage, now);
        }
        self.keep_groups_in_budget(now);
    }

    /// Acts on a note about a group.
    pub(super) fn take_group_note(&mut self, note: GroupNote, now: u64) {
        match note {
            GroupNote::Joined { group, bytes, full } => {
                let bytes = self.units.groups_mut().join(group, bytes);
                self.intake.budget_mut().add_bytes(bytes);
                if full && let Some(holder) = self.units.groups_mut().fill(group) {
                    self.end_rest(holder, group, false, now);
                }
                self.keep_groups_in_budget(now);
            }
            GroupNote::Ended { group, notes } => {
                let bytes = self.units.groups_mut().end(group, notes);
                self.intake.budget_mut().subtract_bytes(bytes);
            }
        }
    }

    /// Closes the group with this number, if its holder rests.
    pub(super) fn close_group(&mut self, group: u64, now: u64) {
        if let Some(holder) = self.units.groups_mut().wake(group) {
            self.end_rest(holder, group, false, now);
        }
    }

    /// Closes the groups of a family, because all members have arrived. The groups' holders replace the parent in the
    /// flow.
    pub(super) fn close_groups_of_family(&mut self, groups: &[u64], now: u64) {
        let mut closed: Option<(u32, u64)> = None;
        for &number in groups {
            let Some(mut holder) = self.units.groups_mut().wake(number) else { continue };
            let Some(parent) = holder.family else { continue };
            let families = self.units.families();
            let dead = families.answer_for_dead(parent);
            families.remove_group(parent, number);
            let above = self.units.parent_of_waiting(parent);
            let record = self.units.record(&mut holder.row);
            record.set_parent(above);
            if dead > 0 && !self.rules(holder.stage).goes_on_torn {
                let units = if dead == 1 { "a unit".into() } else { format!("{dead} units") };
                record.refuse(format!("the group lacks {units} that failed for good").into());
            }
            if let Some(above) = above {
                self.units.families().add_children(above.row, 1);
            }
            closed = Some((parent, closed.map_or(0, |(_, holders)| holders) + 1));
            holder.family = None;
            self.end_rest(holder, number, false, now);
        }
        if let Some((parent, holders)) = closed {
            self.children_departed(parent, holders, 0, now);
        }
    }

    /// Closes groups if nothing else in the flow can move. `gate_is_empty` is called only then.
    pub(super) fn close_if_stuck(&mut self, gate_is_empty: impl FnOnce() -> bool, now: u64) {
        if self.units.groups().at_rest() == 0 || !self.life.dispatches() || !self.is_stuck() {
            return;
        }
        let stages = 0..self.stages.iter().len() as u16;
        // A pull that has lost its worker's slot probably blocks. It does not count here, because a flow may end during
        // such a pull.
        let can_come = self.intake.has_pulled() || self.intake.pulls_in_place() > 0;
        if self.is_closed() && !can_come && gate_is_empty() {
            // The groups closed here may become members of groups in later stages, so the stage that leads to the most
            // other stages comes first. Groups by family are not closed here. A group by family is closed when all its
            // members have arrived; the missing members are in other groups.
            let open = stages.filter(|&stage| self.units.groups().oldest_in(stage).is_some());
            let Some(first) = open.max_by_key(|&stage| self.rules(stage).leads_to) else { return };
            for group in self.units.groups().in_stage(first) {
                self.close_group(group, now);
            }
        } else if !self.has_room(1) {
            let oldest = stages.filter_map(|stage| Some((self.units.groups().oldest_in(stage)?, stage)));
            if let Some((_, stage)) = oldest.min() {
                self.close_oldest(stage, now);
            }
        }
        self.grant_all(now);
    }

    fn rules(&self, stage: u16) -> GroupRules {
        *self.stages.at(stage).groups().expect("a group is open in a stage that gathers")
    }

    /// Closes groups early, as long as resting groups use more than half of the byte budget.
    fn keep_groups_in_budget(&mut self, now: u64) {
        while self.units.groups().bytes() > self.intake.budget().max_bytes() / 2 {
            let stages = 0..self.stages.iter().len() as u16;
            let oldest = stages.filter_map(|stage| Some((self.units.groups().oldest_in(stage)?, stage))).min();
            let Some((_, stage)) = oldest else { return };
            self.close_oldest(stage, now);
        }
    }

    /// Closes the oldest group of the stage early.
    fn close_oldest(&mut self, stage: u16, now: u64) {
        let Some(number) = self.units.groups().oldest_in(stage) else { return };
        if let Some(holder) = self.units.groups_mut().wake(number) {
            self.end_rest(holder, number, true, now);
        }
    }

    /// Returns a holder to its stage's queue. `early` says that its group was closed early.
    fn end_rest(&mut self, holder: Holder, number: u64, early: bool, now: u64) {
        let Holder { row, stage, family, .. } = holder;
        if let Some(parent) = family {
            self.units.families().remove_group(parent, number);
        }
        self.stages.at_mut(stage).close_group(early);
        self.note_rest();
        self.stages.enqueue(row, stage, now);
    }

    /// Tells the budget how many units are at rest.
    #[inline]
    pub(super) fn note_rest(&mut self) {
        self.intake.budget_mut().set_at_rest(self.units.at_rest());
    }
}
