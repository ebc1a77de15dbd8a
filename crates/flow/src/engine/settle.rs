//! The end of a batch: each of its units goes on, is retried, or leaves.

use std::collections::VecDeque;

use super::column::{Column, Row};
use super::dispatch::RunningBatch;
use super::pocket::Pocket;
use super::state::{State, TimerAction};
use super::unit::{NO_STAGE, Stamp};
use crate::snapshot::Phase;
use smallvec::SmallVec;

/// The outcome of one unit's run in a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The unit goes to another stage; `bytes` is its weight there, if that changes.
    Go { stage: u16, bytes: Option<u64> },
    /// The unit leaves, done.
    Retire,
    /// The unit leaves without a result, because its stage skips failures.
    Skip,
    /// The unit failed, and its stage retries it after a pause.
    Retry { pause_ns: u64 },
    /// The unit failed for good; its dead letter is written.
    Dead { stop_flow: bool },
    /// The attempt was cancelled; the unit runs again when this many bytes are available.
    AwaitMemory { wants_bytes: u64 },
    /// It goes back to the stage's queue after a pause, for its `next_asks`; `bytes` is its weight there, if that changes.
    Requeue { bytes: Option<u64>, pause_ns: u64 },
    /// The flow was abandoned.
    Left,
}

/// The run of a batch through one stage.
pub(crate) struct StageRun {
    pub(crate) stage: u16,
    pub(crate) busy_ns: u64,
    /// The end of this stage's entries in [`Settlement::timings`].
    pub(crate) timed: usize,
}

/// The results that a worker brings back from one batch.
#[derive(Default)]
pub(crate) struct Settlement {
    /// The stages that the batch went through. The other fields speak of the last one.
    pub(crate) stage_runs: Vec<StageRun>,
    /// The destination of all units without an exception; [`NO_STAGE`]: they retire.
    pub(crate) to: u16,
    /// The units without an exception are plain (see `Unit`).
    pub(crate) plain: bool,
    /// Some units weigh less than is accounted to them.
    pub(crate) lighter: bool,
    /// The exceptions: a unit's position in the batch and its outcome, in ascending order.
    pub(crate) exceptions: Vec<(u32, Outcome)>,
    /// Units that have left already (see `leave_early`), as pairs of admission time and number of units.
    pub(crate) left: SmallVec<[(u64, u64); 4]>,
    /// Service times of all stages the batch went through, as pairs of nanoseconds per unit and number of units.
    pub(crate) timings: Vec<(u64, u64)>,
    /// The time at which the batch ended.
    pub(crate) ended_ns: u64,
}

/// Retires plain units ahead of their settlement, without the flow's mutex: their rows go to the worker's pocket, and
/// the settlement only has to count them.
pub(crate) fn leave_early(
    rows: &mut VecDeque<Row>,
    settlement: &mut Settlement,
    stamps: &Column<Stamp>,
    pocket: &mut Pocket,
) {
    for row in rows.iter() {
        let admitted_ns = stamps.stamp(row).admitted_ns();
        match settlement.left.last_mut().filter(|(at, _)| *at == admitted_ns) {
            Some((_, units)) => *units += 1,
            None => settlement.left.push((admitted_ns, 1)),
        }
    }
    pocket.rows.extend(rows.drain(..));
}

impl State {
    /// Takes a finished batch back and settles its units; `flow_on` then grants what that makes possible.
    pub(crate) fn settle(&mut self, mut batch: RunningBatch, settlement: &mut Settlement, now: u64) {
        self.end_run(&batch);
        self.settle_units(&mut batch, settlement, now);
    }

    /// Frees the batch's worker, or takes one batch off its hands.
    pub(crate) fn end_run(&mut self, batch: &RunningBatch) {
        // Only the first batch of a turn (`leads`) counts as running; the others stay among the granted units until
        // they are settled here. A chain may meanwhile have moved the worker's count to another stage, or to a later
        // batch of the turn, so the counts to undo are those that the chain reports and not those of the dispatch.
        let &RunningBatch { stage: first, units, soon, leads, .. } = batch;
        if leads {
            let alone = (first, units, false);
            let (counted, units, of_one_in_hand) = batch.chain.as_ref().and_then(|chain| chain.end()).unwrap_or(alone);
            if of_one_in_hand {
                // The batch in the worker's hands is settled next, as the granted batch that it was dispatched as.
                let state = self.stage(first);
                state.granted += units;
                state.in_turns += units;
            }
            let state = self.stage(counted);
            state.busy -= 1;
            state.running -= units;
            if !state.blocking {
                self.busy_shared -= 1;
                self.turns += 1;
                self.stalled = false;
            }
            self.busy_soon -= usize::from(soon);
            self.mark_pump(counted);
        } else {
            let state = self.stage(first);
            state.granted -= units;
            state.in_turns -= units;
            self.mark_pump(first);
        }
    }

    /// Settles every unit of the batch.
    pub(crate) fn settle_units(&mut self, batch: &mut RunningBatch, settlement: &mut Settlement, now: u64) {
        // Permits go back first, and exceptions are settled next; the remaining units then move on as one run. No
        // grant happens in between: `flow_on` sees all that the batch gave back at once.
        let first = batch.stage;
        let (units, mut rows) = (batch.units, std::mem::take(&mut batch.rows));
        let permits = std::mem::take(&mut batch.permits);
        let stage = self.note_stage_runs(units, settlement).unwrap_or(first);
        for permit in permits {
            self.release(permit, now);
        }
        if !settlement.exceptions.is_empty() {
            rows = self.settle_exceptions(rows, stage, &mut settlement.exceptions, now);
        }
        if settlement.lighter {
            for row in &mut rows {
                let base = self.units.unit(row).base_bytes;
                self.weigh(row, Some(base));
            }
        }
        let left: u64 = settlement.left.iter().map(|(_, units)| units).sum();
        self.stage(stage).stats.units += rows.len() as u64 + left;
        self.retired += left;
        self.in_flight -= left;
        for (admitted_ns, units) in settlement.left.drain(..) {
            self.record_latency(now, admitted_ns, units);
        }
        if settlement.to == NO_STAGE {
            self.retire(rows, settlement.plain, now);
        } else {
            self.enqueue_run(rows, settlement.plain, settlement.to, now);
        }
        self.mark_pump(stage);
        debug_assert!({
            self.assert_conserved();
            true
        });
    }

    /// Adds a batch's runs to the statistics of each stage it went through. Returns the last stage.
    fn note_stage_runs(&mut self, units: usize, settlement: &mut Settlement) -> Option<u16> {
        let mut timings = settlement.timings.drain(..);
        let (mut timed, mut last) = (0, None);
        for stage_run in settlement.stage_runs.drain(..) {
            if let Some(passed) = last.replace(stage_run.stage) {
                self.stages[usize::from(passed)].stats.units += units as u64;
                self.stages[usize::from(stage_run.stage)].stats.waited_in_queue(0, units as u64);
            }
            let stage = &mut self.stages[usize::from(stage_run.stage)];
            stage.stats.busy_ns += stage_run.busy_ns;
            for (ns, units) in timings.by_ref().take(stage_run.timed - timed) {
                stage.stats.served(ns, units);
            }
            timed = stage_run.timed;
            self.update_open_stage(stage_run.stage);
        }
        last
    }

    /// Settles the units that have an exception, and returns the others.
    fn settle_exceptions(
        &mut self,
        mut rows: VecDeque<Row>,
        stage: u16,
        exceptions: &mut Vec<(u32, Outcome)>,
        now: u64,
    ) -> VecDeque<Row> {
        let mut others = self.pocket.spares.take();
        let mut exceptions = exceptions.drain(..).peekable();
        for (place, row) in (0..).zip(rows.drain(..)) {
            match exceptions.next_if(|&(at, _)| at == place) {
                Some((_, outcome)) => self.settle_unit(row, stage, outcome, now),
                None => others.push_back(row),
            }
        }
        self.pocket.spares.keep(rows);
        others
    }

    /// Retires units that need no settlement beyond their leaving.
    fn retire(&mut self, mut rows: VecDeque<Row>, plain: bool, now: u64) {
        self.retired += rows.len() as u64;
        self.in_flight -= rows.len() as u64;
        // Units that were admitted together have the same latency.
        let (mut admitted_ns, mut together) = (0, 0);
        for row in &mut rows {
            if !plain {
                let unit = self.units.unit(row);
                let bytes = unit.bytes;
                unit.clear();
                self.subtract_bytes(bytes);
            }
            let came = self.stamps.stamp(row).admitted_ns();
            if came != admitted_ns {
                self.record_latency(now, admitted_ns, together);
                (admitted_ns, together) = (came, 0);
            }
            together += 1;
        }
        self.record_latency(now, admitted_ns, together);
        self.keep_rows(rows.drain(..));
        self.pocket.spares.keep(rows);
    }

    fn record_latency(&mut self, now: u64, admitted_ns: u64, units: u64) {
        if units > 0 {
            self.latency.saturating_record_n(now.saturating_sub(admitted_ns), units);
        }
    }

    fn settle_unit(&mut self, mut row: Row, stage: u16, outcome: Outcome, now: u64) {
        match outcome {
            Outcome::Go { stage: next, bytes } => {
                self.stage(stage).stats.units += 1;
                if bytes.is_some() {
                    self.weigh(&mut row, bytes);
                }
                let unit = self.units.unit(&mut row);
                unit.attempts = 0;
                unit.base_bytes = unit.bytes;
                unit.privileged = false;
                unit.is_reserved = false;
                let pause = std::mem::take(&mut unit.delay_ns);
                if let Some(needs) = &mut unit.needs {
                    needs.take_next_asks();
                    self.release_passed(&mut row, stage, next, now);
                }
                self.enqueue_after(row, next, pause, now);
            }
            Outcome::Retire => {
                self.stage(stage).stats.units += 1;
                self.retired += 1;
                self.leave(row, now);
            }
            Outcome::Skip => {
                self.stage(stage).stats.failures += 1;
                self.retired += 1;
                self.skipped += 1;
                self.leave(row, now);
            }
            Outcome::Dead { stop_flow } => {
                let stats = &mut self.stage(stage).stats;
                stats.failures += 1;
                stats.dead_lettered += 1;
                self.dead_lettered += 1;
                self.leave(row, now);
                if stop_flow && !self.is_closed() {
                    self.phase = Phase::Draining;
                    self.stopped_by_failure = true;
                }
            }
            Outcome::Retry { pause_ns } => {
                let stats = &mut self.stage(stage).stats;
                stats.failures += 1;
                stats.retries += 1;
                self.back_to_queue(&mut row, stage, now);
                self.units.unit(&mut row).attempts += 1;
                self.enqueue_after(row, stage, pause_ns, now);
            }
            Outcome::AwaitMemory { wants_bytes } => {
                self.stage(stage).stats.requeued += 1;
                self.back_to_queue(&mut row, stage, now);
                self.park_for_memory(row, stage, wants_bytes, now);
            }
            Outcome::Requeue { bytes, pause_ns } => {
                self.stage(stage).stats.requeued += 1;
                self.back_to_queue(&mut row, stage, now);
                if bytes.is_some() {
                    self.weigh(&mut row, bytes);
                }
                let unit = self.units.unit(&mut row);
                unit.base_bytes = unit.bytes;
                unit.privileged = false;
                if let Some(needs) = &mut unit.needs {
                    needs.take_next_asks();
                }
                self.enqueue_after(row, stage, pause_ns, now);
            }
            Outcome::Left => {
                self.release_all(&mut row, now);
                self.left.push(row);
            }
        }
    }

    fn enqueue_after(&mut self, row: Row, stage: u16, pause_ns: u64, now: u64) {
        if pause_ns == 0 {
            self.enqueue(row, stage, now);
        } else {
            self.delayed += 1;
            self.set_timer(now.saturating_add(pause_ns), TimerAction::Enqueue(row, stage));
        }
    }

    /// Undoes an attempt: the unit holds and weighs what it did when it entered the stage, so the next attempt meets
    /// the same state.
    fn back_to_queue(&mut self, row: &mut Row, stage: u16, now: u64) {
        let base = self.units.unit(row).base_bytes;
        self.weigh(row, Some(base));
        let unit = self.units.unit(row);
        unit.delay_ns = 0;
        unit.is_reserved = false;
        self.release_where(row, now, |grant| grant.from == stage);
    }

    /// Moves the unit from `stage` to `next` in the books: it gives back the grants that end here, and its places in
    /// the queues of stages that it did not go to.
    fn release_passed(&mut self, row: &mut Row, stage: u16, next: u16, now: u64) {
        let places = self.stages[usize::from(stage)].places.clone();
        self.release_where(row, now, |grant| {
            let elsewhere = grant.from == stage && grant.until != next && places.contains(&grant.instance);
            grant.until == stage || grant.until == NO_STAGE || elsewhere
        });
    }

    fn release_all(&mut self, row: &mut Row, now: u64) {
        self.release_where(row, now, |_| true);
    }

    /// Gives back the grants that `which` selects. They leave the record for the time of the loop, because `release`
    /// borrows the whole state.
    fn release_where(&mut self, row: &mut Row, now: u64, which: impl Fn(&super::unit::Grant) -> bool) {
        let Some(needs) = &mut self.units.unit(row).needs else { return };
        let mut held = std::mem::take(&mut needs.held);
        held.retain(|grant| {
            let released = which(grant);
            if released {
                self.release(*grant, now);
            }
            !released
        });
        self.units.unit(row).needs().held = held;
    }

    fn weigh(&mut self, row: &mut Row, bytes: Option<u64>) {
        let unit = self.units.unit(row);
        if let Some(bytes) = bytes.filter(|&bytes| bytes != unit.bytes) {
            let before = std::mem::replace(&mut unit.bytes, bytes);
            self.subtract_bytes(before);
            self.add_bytes(bytes);
        }
    }

    /// Ends the unit, whichever way it leaves.
    pub(crate) fn leave(&mut self, mut row: Row, now: u64) {
        if self.units.unit(&mut row).needs.is_some() {
            self.release_all(&mut row, now);
        }
        let unit = self.units.unit(&mut row);
        let bytes = unit.bytes;
        unit.clear();
        self.subtract_bytes(bytes);
        let admitted_ns = self.stamps.stamp(&row).admitted_ns();
        self.record_latency(now, admitted_ns, 1);
        self.in_flight -= 1;
        self.keep_rows(std::iter::once(row));
    }
}
