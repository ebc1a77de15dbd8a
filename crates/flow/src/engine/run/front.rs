//! The front of a stage: the payloads that it takes, and what happens to a unit whose run fails.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::batch_run::Run;
use super::settlement::Verdict;
use crate::contain::contain;
use crate::engine::pace::nanos;
use crate::engine::units::column::Row;
use crate::engine::units::record::UnitRef;
use crate::entry::Entry;
use crate::failure::{DeadLetter, Failure, Requeue};
use crate::policy::AfterFailure;
use crate::ticket::{TicketBook, Unfinished};

pub struct Front<In> {
    pub(crate) entry: Arc<Entry<In>>,
    /// Writes a ticketed unit's dead letter to its ticket. If there is no ticket, returns the letter.
    pub(crate) tickets: Arc<dyn TicketBook>,
}

impl<In: Send + 'static> Front<In> {
    /// The cell of a unit's payload.
    #[inline]
    pub(super) fn cell<'a>(&'a self, row: &'a mut Row) -> &'a mut Option<In> {
        // SAFETY: the lane's column belongs to the flow that the row belongs to.
        unsafe { self.entry.column.cell(row) }
    }

    /// The payload of a unit that waits for the stage. The caller owns the unit, and no code changes the payload
    /// meanwhile.
    pub(super) fn peek<'a>(&'a self, row: &'a Row) -> Option<&'a dyn Any> {
        // SAFETY: the lane's column belongs to the flow that the row belongs to, and the caller keeps the cell as it is.
        unsafe { self.entry.column.peek(row) }.map(|input| input as &dyn Any)
    }

    /// Takes a unit's payload out of its cell, for a dead letter.
    pub(super) fn take_input(&self, row: &mut Row) -> Option<Box<dyn Any + Send>> {
        self.cell(row).take().map(|input| Box::new(input) as Box<dyn Any + Send>)
    }

    #[cold]
    pub(super) fn fail(&self, failure: &Failure, row: &mut Row, run: &Run<'_>) -> Verdict {
        self.fail_with(failure, row, run, |row| self.take_input(row))
    }

    /// Ends a run that has failed. `take_input` returns the input for a dead letter.
    #[cold]
    pub(super) fn fail_with(
        &self,
        failure: &Failure,
        row: &mut Row,
        run: &Run<'_>,
        take_input: impl FnOnce(&mut Row) -> Option<Box<dyn Any + Send>>,
    ) -> Verdict {
        let site = run.site;
        // SAFETY: the code below uses `row` for columns of payloads only.
        let unit = unsafe { UnitRef::new(site.records(), row) };
        let (id, ticketed) = (site.stamps().id(row), unit.look().is_ticketed());
        let parent = unit.look().parent().map(|parent| parent.id);
        let config = site.stage(run.stage);
        if site.is_abandoned() {
            self.tickets.abandoned(row);
            return Verdict::LeftBehind;
        }
        match failure.requeued() {
            Some(Requeue::ForBytes(wants_bytes)) => return Verdict::AwaitMemory { wants_bytes },
            Some(Requeue::ForNeeds) => return self.requeue(failure, unit, row),
            None => {}
        }
        let attempts = unit.look().attempts() + u32::from(unit.look().refused().is_none());
        if !failure.is_permanent() && attempts <= config.retry.times {
            let random = mix(site.flow_id() ^ id.rotate_left(20) ^ u64::from(attempts));
            let asked = nanos(failure.pause());
            return Verdict::Retry { pause_ns: config.retry.pause_ns(attempts, random).max(asked).max(1) };
        }
        let input = take_input(row);
        if config.after_failure == AfterFailure::Skip {
            contain(|| drop(input));
            if ticketed {
                self.tickets.unfinished(row, Unfinished::Skipped);
            }
            return Verdict::Skip;
        }
        let letter = DeadLetter {
            unit: id,
            parent,
            stage: config.name.to_string(),
            attempts,
            cause: failure.cause(),
            message: failure.message().to_owned(),
            input,
        };
        site.deliver(letter, ticketed, row, &*self.tickets);
        Verdict::Dead { stop_flow: config.after_failure == AfterFailure::StopFlow }
    }

    /// Computes the unit's needs and weight again, as its sender (the previous stage or the submitter) did before the
    /// unit came here. Runs user code.
    fn requeue(&self, failure: &Failure, mut unit: UnitRef<'_>, row: &mut Row) -> Verdict {
        let input = self.cell(row).as_ref().expect("a running unit has its payload");
        let bytes = self.entry.note_demand(input, &mut unit);
        Verdict::Requeue { bytes, pause_ns: nanos(failure.pause()) }
    }
}

#[cold]
pub(super) fn late<T>(deadline: Instant, limit: Duration, result: &Result<T, Failure>) -> Failure {
    let over = Instant::now() - deadline;
    let done = if let Err(failure) = result { failure.message() } else { "its result is discarded" };
    Failure::timeout(format!("over its time limit of {limit:?} by {over:.1?}: {done}"))
}

/// 64 well-mixed bits of `seed` (the finaliser of SplitMix64).
pub(crate) fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
