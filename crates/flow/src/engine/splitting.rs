//! Splitting: how children enter the flow from a unit in flight.
//!
//! A unit in a stage that splits first waits for room for a child, then for the needs of the stage, and then runs. The
//! rows and numbers of its children are taken before the run, as for pulled units. The children enter their first
//! queues when the run is settled. A unit that has more children waits for room again. A unit leaves the flow when its
//! last child leaves.
//!
//! # Why every wait ends
//! A unit in the line for room holds nothing, so no child waits for it. Hence all children eventually leave, and make
//! room. If the flow is full of units in that line, nothing else moves, and the first unit in line produces one child
//! beyond the caps. The line prefers the deepest unit. So this child and its descendants leave before another unit of
//! the same depth exceeds the caps.

use std::collections::VecDeque;

use super::claims::NO_STAGE;
use super::grant::Woken;
use super::run::brood::{Branch, Brood, Newborn};
use super::state::State;
use super::units::column::Row;
use super::units::families::{Parting, Siblings};
use super::units::stamp::Stamp;

impl State {
    /// Puts all units of the stage's queue into the line for room.
    pub(super) fn await_room(&mut self, stage: u16, now: u64) {
        // A stage that waits for a permit keeps its units in the queue (see `serve_stage`).
        while !self.stages.at(stage).awaits_permit()
            && let Some(row) = self.pop_waiting(stage)
        {
            self.wait_for_room(row, stage, false, now);
        }
    }

    /// Puts a unit into the line for room. A unit that has `begun` has, or had, children in flight.
    pub(super) fn wait_for_room(&mut self, mut row: Row, stage: u16, begun: bool, now: u64) {
        let record = self.units.record(&mut row);
        if begun {
            record.set_queued_ns(now);
        }
        let (depth, queued_ns) = (record.depth(), record.queued_ns());
        self.stages.at_mut(stage).await_room(queued_ns);
        self.grants.room_mut().wait(row, stage, depth, begun, now);
    }

    /// Lets the first unit in the line for room go on, if that is allowed. Returns whether the unit goes on.
    #[inline]
    pub(super) fn serve_room(&mut self, now: u64) -> bool {
        if self.grants.room().is_empty() {
            return false;
        }
        let shared = self.crew.shared_workers();
        let has_seat = |stage| {
            let state = self.stages.at(stage);
            !state.awaits_permit() && state.has_seat(self.stages.workers_for(stage, shared))
        };
        let Some(stage) = self.grants.room().next_stage(has_seat) else { return false };
        let nth = self.stages.at(stage).splits().unwrap_or(0);
        let has_room = self.intake.budget().room_for_children(nth) > 0 && self.intake.budget().room_for_bytes() > 0;
        if !has_room && !self.is_stuck() {
            self.grants.room_mut().set_starved(true);
            return false;
        }
        let Some(mut waiter) = self.grants.room_mut().pop(stage) else { return false };
        let record = self.units.record(&mut waiter.row);
        if !has_room {
            record.privilege();
        }
        self.stages.at_mut(stage).end_wait_for_room(record.queued_ns(), now.saturating_sub(waiter.since_ns));
        self.try_unit(waiter.row, stage, Woken::No, now);
        true
    }

    /// Takes rows, numbers and room for the children of a run that is about to begin in the `nth` stage that splits.
    pub(super) fn take_brood(&mut self, stage: u16, nth: u64, rows: &mut VecDeque<Row>, now: u64) -> Brood {
        let budget = self.intake.budget();
        // Half of the free bytes remain for other runs.
        let bytes = budget.room_for_bytes().div_ceil(2);
        // Half of the room remains, too, so that the next run can produce children while the children of this run are
        // in flight.
        let room = budget.room_for_children(nth).div_ceil(2);
        let units = if bytes > 0 { room.min(self.stages.at(stage).next_brood()) } else { 0 };
        // A unit that may exceed the caps produces one child.
        let is_privileged = units == 0 && rows.iter_mut().any(|row| self.units.record(row).is_privileged());
        let units = units.max(u64::from(is_privileged));
        let budget = self.intake.budget_mut();
        budget.reserve(units, bytes);
        let first = Stamp::new(budget.take_ids(units), now);
        let rows = (0..units).map(|_| self.units.take_row()).collect();
        Brood::new(rows, first, bytes)
    }

    /// Takes the children of a finished run into the flow, and releases the rows, numbers and room that the run did not
    /// use.
    pub(super) fn take_in(&mut self, brood: Brood, stage: u16, now: u64) {
        let ((units, bytes), (next_id, end_id)) = (brood.reserved(), brood.numbers());
        let children = brood.children();
        let (mut born, branches, unused) = brood.into_parts();
        self.stages.at_mut(stage).size_brood(units, children);
        let budget = self.intake.budget_mut();
        budget.unreserve(units, bytes);
        budget.give_ids_back(end_id, end_id - next_id);
        budget.add_units(children);
        self.ledger.split(children);
        self.units.free_rows(unused.into_iter());
        let mut siblings = Siblings::default();
        for Newborn { row, bytes, .. } in &mut born {
            let record = self.units.record(row);
            record.weigh(*bytes);
            record.go_on();
            let parent = record.parent();
            self.intake.budget_mut().admit_bytes(*bytes);
            if let Some(parent) = parent {
                siblings.add(parent.row, |parent, children| self.units.families().add_children(parent, children));
            }
        }
        for Branch { rows, bytes, .. } in &branches {
            self.intake.budget_mut().admit_bytes(*bytes);
            // Once a family's group has gone on, the family's children no longer name a parent.
            for row in rows {
                let Some(parent) = self.units.look(row).parent() else { continue };
                siblings.add(parent.row, |parent, children| self.units.families().add_children(parent, children));
            }
        }
        siblings.end(|parent, children| self.units.families().add_children(parent, children));
        for Branch { first, rows, units, rested, mut settlement, .. } in branches {
            self.stages.at_mut(first).count_arrivals_in_chain(units as u64);
            let last = self.settle_rows(rows, units, first, &mut settlement, now);
            self.stages.at_mut(last).count_units(rested);
        }
        let mut together = self.units.take_list();
        let mut to = NO_STAGE;
        for Newborn { row, to: goes_to, .. } in born {
            if goes_to != to && !together.is_empty() {
                let rows = std::mem::replace(&mut together, self.units.take_list());
                self.send_children(rows, to, now);
            }
            to = goes_to;
            together.push_back(row);
        }
        self.send_children(together, to, now);
    }

    /// Sends children to their first stage.
    fn send_children(&mut self, rows: VecDeque<Row>, to: u16, now: u64) {
        if to == NO_STAGE {
            self.depart(rows, Parting::Retired, false, now);
        } else {
            self.stages.enqueue_all(rows, false, to, self.units.spares(), now);
        }
    }
}
