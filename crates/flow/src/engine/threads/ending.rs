//! The end of a flow: closing, stopping, abandoning, joining.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::shared::Shared;
use crate::contain::drop_panic;
use crate::engine::identity;
use crate::engine::intake::source::PullEnd;
use crate::engine::state::State;
use crate::engine::units::column::Row;
use crate::failure::{Cause, DeadLetter};
use crate::ticket::TicketBook;

impl Shared {
    /// Whether the calling thread belongs to this flow.
    pub(crate) fn is_own_thread(&self) -> bool {
        identity::is_of(self.site().flow_id())
    }

    /// Closes admission. Units in flight go on.
    pub(crate) fn close(self: &Arc<Self>) {
        self.end(|state| state.life.drain());
    }

    pub(crate) fn stop(self: &Arc<Self>) {
        self.end(|state| state.life.stop());
    }

    pub(crate) fn abandon(self: &Arc<Self>) {
        self.end(|state| {
            if state.life.abandon() {
                self.site().set_abandoned();
            }
        });
    }

    fn end(self: &Arc<Self>, how: impl FnOnce(&mut State)) {
        // The gate closes first, so every unit that was sent before has been counted when the state learns of the end.
        self.gate().close();
        let mut state = self.lock();
        how(&mut state);
        self.unlock_and_wake(state);
    }

    /// Acts on the end of the source, which the last pull has found.
    pub(crate) fn end_source(self: &Arc<Self>, end: PullEnd) {
        if end == PullEnd::Panicked {
            self.abandon();
        }
        self.source().tell_end(end);
    }

    /// Whether the flow has ended and no unit can enter it any more.
    fn is_over(&self, state: &State) -> bool {
        state.is_over() && self.gate().is_empty()
    }

    /// Waits until every unit has left, or until the flow is abandoned and its running code has had `grace` to end.
    /// Then ends the flow's threads. Returns the remaining units that no worker runs.
    ///
    /// # Panics
    /// Panics if the caller is one of the flow's own threads, because that thread would wait for itself.
    pub(crate) fn finish(self: &Arc<Self>, grace: Duration) -> Vec<Row> {
        assert!(
            !self.is_own_thread(),
            "flow `{}` cannot be drained by code of its own stages: the drain would wait for that code",
            self.site().name()
        );
        let mut state = self.lock();
        let mut give_up_at = None;
        let mut may_cancel = true;
        loop {
            if self.is_over(&state) {
                let Some(left) = state.pull_grace_remaining(self.now()) else { break };
                state = self.wait_for(&self.done, state, Some(left));
            } else if state.life.is_abandoned() {
                let at = *give_up_at.get_or_insert_with(|| Instant::now() + grace);
                let left = at.saturating_duration_since(Instant::now());
                let runs = !state.no_stage_runs();
                if runs && left.is_zero() && std::mem::take(&mut may_cancel) {
                    drop(state);
                    let has_fibers = self.cancel_fibers();
                    state = self.lock();
                    // The fibers that now unwind get the same grace again.
                    give_up_at = has_fibers.then(|| Instant::now() + grace).or(give_up_at);
                    continue;
                }
                if !runs || left.is_zero() {
                    break;
                }
                state = self.wait_for(&self.done, state, Some(left));
            } else {
                state = self.wait_for(&self.done, state, None);
            }
        }
        let is_pulling = state.intake.is_pulling();
        let all_idle = state.no_stage_runs() && !is_pulling;
        // The report counts the units that still wait to enter, but its peaks of units in flight do not include them.
        // So the peaks are restored afterwards.
        let peaks = state.intake.budget().peaks();
        self.gate().admit_all(&mut state, self.now());
        state.admit_all_pulled(self.now());
        state.intake.budget_mut().restore_peaks(peaks);
        let rows = state.empty_queues();
        state.ledger.end(self.now());
        state.life.finish();
        state.ledger.assert_conserved(state.intake.budget().in_flight());
        self.unlock_and_wake(state);
        self.wake_all_threads();
        if !is_pulling {
            self.source().detach();
        }
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        if all_idle {
            // Every thread will soon notice the end of the flow, so no join takes long.
            for thread in threads {
                if thread.thread().id() != std::thread::current().id() {
                    // A worker contains all panics of user code. If the worker itself panicked, the panic hook has
                    // reported it, so the payload is only dropped.
                    if let Err(panic) = thread.join() {
                        drop_panic(panic);
                    }
                }
            }
        }
        #[cfg(feature = "fibers")]
        self.fibers().end(all_idle);
        rows
    }

    /// Unwinds the fibers that wait. Returns whether there may be such fibers.
    fn cancel_fibers(&self) -> bool {
        #[cfg(feature = "fibers")]
        return self.fibers().cancel();
        #[cfg(not(feature = "fibers"))]
        false
    }

    /// Gives up a unit that no worker has in hand. Sends the unit's dead letter to its ticket or to the flow's
    /// listener.
    pub(crate) fn write_off(&self, row: &mut Row, tickets: &dyn TicketBook, stage: u16, cause: Cause, message: &str) {
        let site = self.site();
        let unit = site.stamps().id(row);
        let record = site.records().record(row);
        let (ticketed, attempts) = (record.is_ticketed(), record.attempts());
        let parent = record.parent().map(|parent| parent.id);
        let input = self.lane(stage).take_input(row);
        let stage = site.stage(stage).name.to_string();
        let letter = DeadLetter { unit, parent, stage, attempts, cause, message: message.to_owned(), input };
        site.deliver(letter, ticketed, row, tickets);
    }
}
