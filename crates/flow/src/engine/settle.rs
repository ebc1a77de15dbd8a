//! Settlement: each unit of a finished batch goes on, is retried, or leaves.

use std::collections::VecDeque;

use super::claims::{GATHERED, Grant, NO_STAGE, UNDECIDED};
use super::crew::turn_slot::DispatchedBatch;
use super::grants::memory::MemoryWaiter;
use super::run::settlement::{Settlement, Verdict};
use super::state::State;
use super::units::column::Row;
use super::units::families::{Departure, Effect, Parting, Siblings};
use super::units::groups::GroupNote;

// ---- a batch ------------------------------------------------------------------------------------------

impl State {
    /// Takes back a finished batch and settles its units. A later `grant_all` then grants units to the seats and
    /// resources that this frees.
    #[inline]
    pub(super) fn settle(&mut self, mut batch: DispatchedBatch, settlement: &mut Settlement, now: u64) {
        self.end_run(&batch);
        self.settle_units(&mut batch, settlement, now);
    }

    /// If the batch leads its turn, stops counting it as running and its worker as busy. Otherwise, stops counting the
    /// batch as granted.
    pub(super) fn end_run(&mut self, batch: &DispatchedBatch) {
        // Only the first batch of a turn (`leads`) counts as running; the other batches count as granted until they are
        // settled here. Meanwhile the turn may have moved the worker's count to another stage, or to a later batch of
        // the turn. So this function undoes the counts that the turn reports, not the counts of the dispatch.
        let &DispatchedBatch { stage: first, units, soon, leads, .. } = batch;
        if leads {
            let alone = (first, units, false);
            let (counted, units, of_one_in_hand) = batch.turn.as_ref().and_then(|turn| turn.end()).unwrap_or(alone);
            if of_one_in_hand {
                // The batch in hand is settled next. Its settlement will stop counting it as granted, so it must count
                // as granted now.
                self.stages.at_mut(first).reopen_in_turn(units);
            }
            let state = self.stages.at_mut(counted);
            state.end_work(units);
            if !state.is_blocking() {
                self.crew.end_turn(soon);
            }
            self.stages.mark(counted);
        } else {
            self.stages.at_mut(first).end_in_turn(units);
            self.stages.mark(first);
        }
    }

    /// Settles every unit of the batch.
    pub(super) fn settle_units(&mut self, batch: &mut DispatchedBatch, settlement: &mut Settlement, now: u64) {
        // The order is as follows: the children enter the flow, the batch's permits are released, the units with an
        // exception are settled, and the remaining units go on together. Nothing is granted in between. `grant_all`
        // follows, and sees all the releases together.
        let first = batch.stage;
        if let Some(note) = batch.note.take() {
            self.crew.notes_mut().forget(note);
        }
        let (units, rows) = (batch.units, std::mem::take(&mut batch.rows));
        let permits = std::mem::take(&mut batch.permits);
        // Children are settled before their parents' verdicts, so that a parent's children are already counted when the
        // parent ends.
        if let Some(brood) = batch.brood.take() {
            self.take_in(*brood, first, now);
        }
        for permit in permits {
            self.grants.release(permit, &mut self.timers, now);
        }
        self.settle_rows(rows, units, first, settlement, now);
        debug_assert!({
            self.ledger.assert_conserved(self.intake.budget().in_flight());
            true
        });
    }

    /// Settles units that began together in the stage `first`. `units` is the number of units that began. Returns the
    /// last stage that ran them.
    pub(super) fn settle_rows(
        &mut self,
        mut rows: VecDeque<Row>,
        units: usize,
        first: u16,
        settlement: &mut Settlement,
        now: u64,
    ) -> u16 {
        self.end_advance(std::mem::take(&mut settlement.advance));
        let stage = self.count_stage_runs(units, settlement).unwrap_or(first);
        // A group goes on as one unit, whose weight is the group's weight. So the group's growth is subtracted first;
        // otherwise the budget's peak would count the growth twice.
        settlement.groups.retain(|&note| {
            let has_ended = matches!(note, GroupNote::Ended { .. });
            if has_ended {
                self.take_group_note(note, now);
            }
            !has_ended
        });
        if !settlement.exceptions.is_empty() {
            rows = self.settle_exceptions(rows, stage, &mut settlement.exceptions, now);
        }
        if settlement.lighter {
            // In a chain, a unit's weight may fall from stage to stage. The budget learns the final weight once, at the
            // chain's end.
            for row in &mut rows {
                let base = self.units.record(row).base_bytes();
                self.weigh(row, base);
            }
        }
        let retired: u64 = settlement.retired_early.iter().map(|(_, units)| units).sum();
        self.stages.at_mut(stage).count_units(rows.len() as u64 + retired);
        self.ledger.depart(retired, Parting::Retired);
        self.intake.budget_mut().subtract_units(retired);
        for (admitted_ns, units) in settlement.retired_early.drain(..) {
            self.ledger.record_latency(admitted_ns, units, now);
        }
        match settlement.to {
            NO_STAGE => self.depart(rows, Parting::Retired, settlement.plain, now),
            GATHERED => self.depart(rows, Parting::Gathered, settlement.plain, now),
            UNDECIDED => {
                debug_assert!(rows.is_empty(), "a unit without an exception has no destination");
                self.units.keep_list(rows);
            }
            to => self.stages.enqueue_all(rows, settlement.plain, to, self.units.spares(), now),
        }
        for note in settlement.groups.drain(..) {
            self.take_group_note(note, now);
        }
        self.stages.mark(stage);
        stage
    }

    /// Adds a batch's runs to the statistics of each stage that it passed. Returns the last stage.
    fn count_stage_runs(&mut self, units: usize, settlement: &mut Settlement) -> Option<u16> {
        let mut timings = settlement.timings.drain(..);
        let (mut timed, mut last) = (0, None);
        for stage_run in settlement.stage_runs.drain(..) {
            if let Some(passed) = last.replace(stage_run.stage) {
                self.stages.at_mut(passed).count_units(units as u64);
                self.stages.at_mut(stage_run.stage).count_arrivals_in_chain(units as u64);
            }
            let stage = self.stages.at_mut(stage_run.stage);
            stage.count_run(stage_run.busy_ns);
            for (ns, units) in timings.by_ref().take(stage_run.timed - timed) {
                stage.count_service(ns, units);
            }
            timed = stage_run.timed;
            // The size of the batches that may go on to the stage in a chain depends on these times.
            self.stages.update_open(stage_run.stage);
        }
        last
    }

    /// Settles the units that have an exception, and returns the others.
    fn settle_exceptions(
        &mut self,
        mut rows: VecDeque<Row>,
        stage: u16,
        exceptions: &mut Vec<(u32, Verdict)>,
        now: u64,
    ) -> VecDeque<Row> {
        let mut others = self.units.take_list();
        let mut exceptions = exceptions.drain(..).peekable();
        for (place, row) in (0..).zip(rows.drain(..)) {
            match exceptions.next_if(|&(at, _)| at == place) {
                Some((_, verdict)) => self.settle_unit(row, stage, verdict, now),
                None => others.push_back(row),
            }
        }
        self.units.keep_list(rows);
        others
    }

    /// Removes from the flow units that hold no resources: counts them, and frees their rows.
    pub(super) fn depart(&mut self, mut rows: VecDeque<Row>, parting: Parting, plain: bool, now: u64) {
        self.ledger.depart(rows.len() as u64, parting);
        self.intake.budget_mut().subtract_units(rows.len() as u64);
        // Units that were admitted together have the same latency; units that were split together have the same parent.
        // Such units are counted together.
        let (mut admitted_ns, mut together) = (0, 0);
        let mut siblings = Siblings::default();
        for row in &mut rows {
            if !plain {
                let record = self.units.record(row);
                let (bytes, parent) = (record.bytes(), record.parent());
                record.clear();
                self.intake.budget_mut().subtract_bytes(bytes);
                if let Some(parent) = parent {
                    siblings.add(parent.row, |parent, children| self.children_departed(parent, children, 0, now));
                }
            }
            let came = self.units.stamp(row).admitted_ns();
            if came != admitted_ns {
                self.ledger.record_latency(admitted_ns, together, now);
                (admitted_ns, together) = (came, 0);
            }
            together += 1;
        }
        self.ledger.record_latency(admitted_ns, together, now);
        self.units.free_rows(rows.drain(..));
        self.units.keep_list(rows);
        siblings.end(|parent, children| self.children_departed(parent, children, 0, now));
    }
}

// ---- one unit -----------------------------------------------------------------------------------------

impl State {
    fn settle_unit(&mut self, mut row: Row, stage: u16, verdict: Verdict, now: u64) {
        match verdict {
            Verdict::Go { stage: next, bytes } => {
                self.stages.at_mut(stage).count_units(1);
                if let Some(bytes) = bytes {
                    self.weigh(&mut row, bytes);
                }
                let pause_ns = self.units.record(&mut row).go_on();
                self.release_passed(&mut row, stage, next, now);
                self.enqueue_after(row, next, pause_ns, now);
            }
            Verdict::Retire => {
                self.stages.at_mut(stage).count_units(1);
                self.leave(row, Parting::Retired, now);
            }
            Verdict::Skip => {
                self.stages.at_mut(stage).count_failure();
                self.leave(row, Parting::Skipped, now);
            }
            Verdict::Dead { stop_flow } => {
                let state = self.stages.at_mut(stage);
                state.count_failure();
                state.count_dead_letter();
                self.leave(row, Parting::Dead, now);
                if stop_flow {
                    self.life.stop_by_failure();
                }
            }
            Verdict::Retry { pause_ns } => {
                self.stages.at_mut(stage).count_retry();
                self.back_to_queue(&mut row, stage, now);
                self.units.record(&mut row).count_attempt();
                self.enqueue_after(row, stage, pause_ns, now);
            }
            Verdict::AwaitMemory { wants_bytes } => {
                self.stages.at_mut(stage).count_requeue();
                self.back_to_queue(&mut row, stage, now);
                let waiter = MemoryWaiter { unit: self.units.stamp(&row).id(), row, stage, wants_bytes, since_ns: now };
                self.grants.memory_mut().park(waiter, &mut self.timers, now);
            }
            Verdict::Requeue { bytes, pause_ns } => {
                self.stages.at_mut(stage).count_requeue();
                // The unit releases its grants before it asks for others. So the stage's pairs "holds a, asks for b"
                // remain the pairs that the build has checked.
                self.back_to_queue(&mut row, stage, now);
                if let Some(bytes) = bytes {
                    self.weigh(&mut row, bytes);
                }
                self.units.record(&mut row).ask_again();
                self.enqueue_after(row, stage, pause_ns, now);
            }
            Verdict::Unfold { begun } => {
                // The unit's children may need the resources that the unit holds, so it holds nothing while they are in
                // flight.
                self.release_where(&mut row, now, |_| true);
                self.units.record(&mut row).unfold(begun);
                self.wait_for_room(row, stage, begun, now);
            }
            Verdict::Unfolded { .. } => {
                self.stages.at_mut(stage).count_units(1);
                self.leave(row, Parting::Retired, now);
            }
            Verdict::Rest { group } => {
                self.stages.at_mut(stage).count_units(1);
                let own = self.units.record(&mut row).base_bytes();
                self.weigh(&mut row, own);
                self.rest(row, stage, group, now);
            }
            Verdict::Join => {
                self.stages.at_mut(stage).count_units(1);
                self.leave(row, Parting::Gathered, now);
            }
            Verdict::LeftBehind => {
                self.release_where(&mut row, now, |_| true);
                self.units.leave_behind(row);
            }
        }
    }

    fn enqueue_after(&mut self, row: Row, stage: u16, pause_ns: u64, now: u64) {
        if pause_ns == 0 {
            self.stages.enqueue(row, stage, now);
        } else {
            self.timers.pause(row, stage, now.saturating_add(pause_ns));
        }
    }

    /// Undoes an attempt: the unit has only the grants and the weight that it had when it entered the stage. So the
    /// next attempt begins in the same state.
    fn back_to_queue(&mut self, row: &mut Row, stage: u16, now: u64) {
        let base = self.units.record(row).base_bytes();
        self.weigh(row, base);
        self.units.record(row).fall_back();
        self.release_where(row, now, |grant| grant.from == stage);
    }

    /// Releases the grants that a unit must not keep when it moves from `stage` to `next`. These are the grants that
    /// end with `stage`, and the slots in the queues of stages that the unit does not go to.
    fn release_passed(&mut self, row: &mut Row, stage: u16, next: u16, now: u64) {
        let State { units, stages, grants, timers, .. } = self;
        let state = stages.at(stage);
        let passed = |grant: &Grant| {
            let elsewhere = grant.from == stage && grant.until != next && state.is_place(grant.instance);
            grant.until == stage || grant.until == NO_STAGE || elsewhere
        };
        units.record(row).release(passed, |grant| grants.release(grant, timers, now));
    }

    /// Releases the grants that `which` selects.
    pub(super) fn release_where(&mut self, row: &mut Row, now: u64, which: impl Fn(&Grant) -> bool) {
        let State { units, grants, timers, .. } = self;
        units.record(row).release(which, |grant| grants.release(grant, timers, now));
    }

    /// Changes the unit's weight, and adjusts the flow's bytes in flight.
    fn weigh(&mut self, row: &mut Row, bytes: u64) {
        let record = self.units.record(row);
        if bytes != record.bytes() {
            let budget = self.intake.budget_mut();
            budget.subtract_bytes(record.reweigh(bytes));
            budget.add_bytes(bytes);
        }
    }

    /// Ends the unit's own work, whatever its outcome. A unit with children in flight stays until the last child has
    /// left.
    pub(super) fn leave(&mut self, mut row: Row, parting: Parting, now: u64) {
        self.release_where(&mut row, now, |_| true);
        self.weigh(&mut row, 0);
        let effect = self.units.families().end(row, parting);
        self.follow_family(effect, now);
    }

    /// Removes departed children from their family. `dead` is the number of units that failed for good among the
    /// children and their descendants.
    pub(super) fn children_departed(&mut self, parent: u32, children: u64, dead: u64, now: u64) {
        let effect = self.units.families().remove_children(parent, children, dead);
        self.follow_family(effect, now);
    }

    /// Carries out the effect of a change in a family. A parent whose own work has ended leaves with its last child,
    /// and its ancestors may then leave, too.
    pub(super) fn follow_family(&mut self, effect: Effect, now: u64) {
        let mut effect = effect;
        loop {
            match effect {
                Effect::Nothing => break,
                Effect::Gathered(holders) => return self.close_groups_of_family(&holders, now),
                Effect::Leaves(Departure { mut row, parting, dead }) => {
                    let parent = self.units.record(&mut row).parent();
                    self.free(row, parting, now);
                    let Some(parent) = parent else { break };
                    effect = self.units.families().remove_children(parent.row, 1, dead);
                }
            }
        }
        self.note_rest();
    }

    /// Counts a unit as departed, and frees its row.
    fn free(&mut self, mut row: Row, parting: Parting, now: u64) {
        self.units.record(&mut row).clear();
        self.ledger.depart(1, parting);
        self.ledger.record_latency(self.units.stamp(&row).admitted_ns(), 1, now);
        self.intake.budget_mut().subtract_units(1);
        self.units.free_rows(std::iter::once(row));
    }
}
