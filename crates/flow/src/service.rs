//! A flow as a service: any thread submits units, and tickets yield their results.

use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use millstream_sync::eventcount::EventCount;

use crate::contain::{Contained, is_waking};
use crate::control::Control;
use crate::engine::intake::candidate::Candidate;
use crate::engine::intake::crossing::Crossing;
use crate::engine::intake::entrance::Wake;
use crate::engine::intake::gate::{AtGate, TypedGate};
use crate::engine::state::State;
use crate::engine::threads::shared::Shared;
use crate::failure::{Cause, DeadLetter};
use crate::policy::Overload;
use crate::report::Report;
use crate::ticket::{Cell, Promise, Sink, Ticket, TicketBook};

/// The time that an abandoned flow waits for running code to end, before the flow ends without it.
const GRACE: Duration = Duration::from_millis(700);

/// The reason why a unit was not admitted. The error contains the unit.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError<In> {
    /// The flow is full, and the call does not wait for room.
    #[error("the flow is full")]
    Full(In),
    /// The flow was full until the deadline.
    #[error("the flow was full until the deadline")]
    Timeout(In),
    /// The flow is draining, or was stopped or abandoned.
    #[error("the flow no longer admits units")]
    Closed(In),
}

impl<In> SubmitError<In> {
    /// The unit that was not admitted.
    pub fn into_unit(self) -> In {
        match self {
            SubmitError::Full(unit) | SubmitError::Timeout(unit) | SubmitError::Closed(unit) => unit,
        }
    }
}

impl<In> fmt::Debug for SubmitError<In> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SubmitError::Full(_) => "Full(…)",
            SubmitError::Timeout(_) => "Timeout(…)",
            SubmitError::Closed(_) => "Closed(…)",
        })
    }
}

/// How often a submitter that does not wait checks whether another submitter's `send` has finished.
const MAX_CHECKS: u32 = 64;

/// How long a submitter waits for room.
#[derive(Clone, Copy)]
enum Patience {
    None,
    Until(Instant),
    Unlimited,
}

/// A handle with which any thread submits units to a running flow. Clones are cheap.
///
/// The submitting thread runs the functions that compute a unit's weight and needs. If one of them panics, the call
/// panics.
///
/// # In a stage's code
/// A call from the code of the flow's own stages never waits. If the flow is full, it refuses the unit with
/// [`SubmitError::Full`], because a worker that waited for room might be the worker that must make room. Two services
/// whose stages submit to each other could also fill each other up and deadlock. So a full flow *A* also refuses a unit
/// from a stage of a flow *B* if workers of *A* wait for room in *B*, directly or through further flows. Only `submit`,
/// `submit_at`, `send` and `send_all` detect this. If the stage returns the refusal as a failure, its retries submit
/// the unit again.
///
/// A stage may wait for a [`Ticket`], of another flow or its own, only if other workers can run that ticket's unit. The
/// engine does not detect that all workers wait.
pub struct Submitter<In, R> {
    shared: Arc<Shared>,
    gate: Arc<TypedGate<In>>,
    sink: Arc<Sink<R>>,
    overload: Overload,
}

impl<In, R> Clone for Submitter<In, R> {
    fn clone(&self) -> Self {
        Submitter {
            shared: self.shared.clone(),
            gate: self.gate.clone(),
            sink: self.sink.clone(),
            overload: self.overload,
        }
    }
}

impl<In, R> fmt::Debug for Submitter<In, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Submitter").field("flow", &self.shared.site().name()).finish_non_exhaustive()
    }
}

impl<In: Send + 'static, R: Send + 'static> Submitter<In, R> {
    pub(crate) fn new(shared: Arc<Shared>, gate: Arc<TypedGate<In>>, sink: Arc<Sink<R>>, overload: Overload) -> Self {
        Submitter { shared, gate, sink, overload }
    }

    /// Submits a unit. If the flow is full, the service's [`Overload`] policy decides what happens (default: the call
    /// waits).
    ///
    /// # Errors
    /// Returns [`SubmitError::Closed`], and [`SubmitError::Full`] if the policy is not to wait, or the caller must not
    /// wait (see [`Submitter`]).
    pub fn submit(&self, unit: In) -> Result<Ticket<R>, SubmitError<In>> {
        self.ticketed(unit, self.patience(), 0)
    }

    /// Submits a unit if there is room now. The call never waits for room.
    ///
    /// # Errors
    /// Returns [`SubmitError::Full`] or [`SubmitError::Closed`].
    pub fn try_submit(&self, unit: In) -> Result<Ticket<R>, SubmitError<In>> {
        self.ticketed(unit, Patience::None, 0)
    }

    /// Submits a unit, waiting for room until `deadline`.
    ///
    /// # Errors
    /// Returns [`SubmitError::Timeout`], [`SubmitError::Closed`], and [`SubmitError::Full`] in the code of the flow's
    /// own stages.
    pub fn submit_deadline(&self, unit: In, deadline: Instant) -> Result<Ticket<R>, SubmitError<In>> {
        self.ticketed(unit, Patience::Until(deadline), 0)
    }

    /// Submits a unit that must not run before `at`. The unit is in flight as soon as it is admitted.
    ///
    /// # Errors
    /// Returns the errors of [`submit`](Self::submit).
    pub fn submit_at(&self, unit: In, at: Instant) -> Result<Ticket<R>, SubmitError<In>> {
        self.ticketed(unit, self.patience(), self.shared.site().ns_at(at))
    }

    /// Submits a unit without blocking the thread. The future resolves when the unit is admitted.
    ///
    /// The first poll weighs the unit. A poll costs O(log n) with n waiting submitters. A future whose waker panics
    /// loses its position in line. A waker should not block, because other wake-ups may have to wait for it.
    ///
    /// # Errors
    /// Returns [`SubmitError::Closed`], and [`SubmitError::Full`] if the future is polled in the code of the flow's own
    /// stages.
    pub fn submit_async(&self, unit: In) -> SubmitFuture<'_, In, R> {
        SubmitFuture { submitter: self, unit: Some(unit), candidate: None, place: None }
    }

    /// Submits a unit without a ticket, waiting for room. Its result or dead letter goes to the flow's listeners.
    ///
    /// # Errors
    /// Returns [`SubmitError::Closed`], and [`SubmitError::Full`] where the caller must not wait (see [`Submitter`]).
    pub fn send(&self, unit: In) -> Result<(), SubmitError<In>> {
        let mut candidate = self.candidate(&unit, false, 0);
        let mut unit = unit;
        if self.shared.gate_is_attended() {
            // A worker will admit the unit, which brings the unit's record into the cache of the core that will use it.
            match self.gate.put(candidate, unit, || Crossing::into(self.shared.site().flow_id())) {
                AtGate::Closed(unit) => return Err(SubmitError::Closed(unit)),
                AtGate::Here => {
                    if !self.shared.gate_is_still_attended() {
                        // The thread that attended the gate has left, and another thread may not attend the gate for a
                        // long time.
                        self.shared.look_again();
                    }
                    return Ok(());
                }
                AtGate::Full(its, back) => (candidate, unit) = (its, back),
            }
        }
        self.admit(candidate, unit, None, Patience::Unlimited)
    }

    /// Sends every unit of `source`. The source runs on the calling thread.
    ///
    /// # Errors
    /// Returns [`SubmitError::Closed`], and [`SubmitError::Full`] if the caller must not wait (see [`Submitter`]). The
    /// error contains the first unit that was not admitted.
    ///
    /// # Panics
    /// Panics if the source panics. The flow is then abandoned.
    pub fn send_all(&self, source: impl IntoIterator<Item = In>) -> Result<(), SubmitError<In>> {
        let mut source = source.into_iter();
        loop {
            let next = catch_unwind(AssertUnwindSafe(|| source.next())).unwrap_or_else(|panic| {
                self.shared.abandon();
                resume_unwind(panic)
            });
            match next {
                Some(unit) => self.send(unit)?,
                None => return Ok(()),
            }
        }
    }

    fn patience(&self) -> Patience {
        match self.overload {
            Overload::Wait => Patience::Unlimited,
            Overload::Reject | Overload::DropOldest => Patience::None,
        }
    }

    fn ticketed(&self, unit: In, patience: Patience, not_before_ns: u64) -> Result<Ticket<R>, SubmitError<In>> {
        let cell = Cell::new();
        let candidate = self.candidate(&unit, true, not_before_ns);
        self.admit(candidate, unit, Some(Promise::new(cell.clone())), patience)?;
        Ok(Ticket::new(cell))
    }

    fn candidate(&self, unit: &In, ticketed: bool, not_before_ns: u64) -> Candidate {
        let dynamic = self.gate.entry().is_dynamic();
        let mut asks = Vec::new();
        let (bytes, refused) = match self.gate.entry().demand(unit, &mut asks) {
            Ok(bytes) => (bytes.unwrap_or(0), None),
            Err(refused) => (0, Some(refused)),
        };
        match dynamic || ticketed || not_before_ns > 0 || refused.is_some() {
            true => Candidate::with(bytes, asks, refused, ticketed, not_before_ns),
            false => Candidate::new(bytes),
        }
    }

    /// Admits a unit, after the units at the gate and the submitters at the entrance.
    fn admit(
        &self,
        candidate: Candidate,
        unit: In,
        promise: Option<Promise<R>>,
        patience: Patience,
    ) -> Result<(), SubmitError<In>> {
        let bytes = candidate.bytes();
        let is_unticketed = promise.is_none();
        // A worker of this flow must not wait for room: while it waits, it cannot finish the units that fill the
        // flow.
        let patience = if self.shared.is_own_thread() { Patience::None } else { patience };
        let mut state = self.shared.lock();
        let mut place = None;
        let mut waiting_since = None;
        let mut has_dropped = false;
        let mut checks = 0;
        let mut crossing = None;
        let bell = Arc::new(EventCount::new());
        let refused = loop {
            if state.is_closed() {
                break SubmitError::Closed(unit);
            }
            if self.may_enter(&mut state, place, bytes) {
                let now = self.shared.now();
                state.add_wait_for_admission(waiting_since.map_or(0, |since| now - since));
                let _ = state.leave_entrance(place);
                self.enter(&mut state, candidate, unit, promise, now);
                self.shared.unlock_and_wake(state);
                return Ok(());
            }
            let pause = match patience {
                // This submitter is the next one, and there is room. So only the gate keeps it out: a sender has
                // claimed a slot there, and is about to fill it.
                Patience::None if checks < MAX_CHECKS && state.is_next(place) && state.has_room(bytes) => {
                    checks += 1;
                    self.shared.unlock_and_wake(state);
                    std::thread::yield_now();
                    state = self.shared.lock();
                    continue;
                }
                Patience::None
                    if self.overload == Overload::DropOldest
                        && !has_dropped
                        && state.is_next(place)
                        && !state.has_room(bytes) =>
                {
                    let Some(mut row) = state.drop_oldest(bytes, self.shared.now()) else {
                        break SubmitError::Full(unit);
                    };
                    // Admitting units from the gate may have left work for other threads, which are woken here. The
                    // mutex is released because the listener that gets the dead letter may run for a long time.
                    self.shared.unlock_and_wake(state);
                    has_dropped = true;
                    let message = "dropped to make room for a newer unit";
                    self.shared.write_off(&mut row, &*self.sink, self.gate.entry().index, Cause::Overload, message);
                    state = self.shared.lock();
                    state.discard(row, self.shared.now());
                    continue;
                }
                Patience::None => break SubmitError::Full(unit),
                Patience::Until(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        break SubmitError::Timeout(unit);
                    }
                    Some(left)
                }
                Patience::Unlimited => {
                    crossing = crossing.or_else(|| Crossing::into(self.shared.site().flow_id()));
                    if crossing.is_none() {
                        break SubmitError::Full(unit);
                    }
                    None
                }
            };
            waiting_since.get_or_insert_with(|| self.shared.now());
            let wake = || Wake::Thread(bell.clone());
            let _ = state.wait_at_entrance(&mut place, &*self.gate, bytes, is_unticketed, wake());
            // Admitting units from the gate may have left work for other threads, which are woken here.
            self.shared.unlock_and_wake(state);
            state = self.shared.lock();
            if state.is_closed() || self.may_enter(&mut state, place, bytes) {
                continue;
            }
            // A wake-up that came before the check above may have used up the registration. So register again.
            let _ = state.wait_at_entrance(&mut place, &*self.gate, bytes, is_unticketed, wake());
            state = self.shared.wait_for(&bell, state, pause);
        };
        let _ = state.leave_entrance(place);
        self.shared.unlock_and_wake(state);
        Err(refused)
    }

    /// Whether the submitter at `place` is the next to be admitted, and there is room.
    fn may_enter(&self, state: &mut State, place: Option<u64>, bytes: u64) -> bool {
        state.may_enter(&*self.gate, place, bytes, self.shared.now())
    }

    fn enter(&self, state: &mut State, candidate: Candidate, unit: In, promise: Option<Promise<R>>, now: u64) {
        self.gate.admit_one(state, candidate, unit, now, |row| {
            if let Some(promise) = promise {
                self.sink.put_promise(row, promise);
            }
        });
    }
}

/// The future of [`Submitter::submit_async`]. Once polled, it keeps its position among the waiting submitters until it
/// resolves or is dropped, and no later submitter passes it. So poll it, or drop it.
#[must_use = "a future does nothing unless it is awaited"]
pub struct SubmitFuture<'a, In: Send + 'static, R: Send + 'static> {
    submitter: &'a Submitter<In, R>,
    unit: Option<In>,
    /// The unit's weight and needs, once the future has been polled.
    candidate: Option<Candidate>,
    place: Option<u64>,
}

impl<In: Send + 'static, R: Send + 'static> fmt::Debug for SubmitFuture<'_, In, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubmitFuture").finish_non_exhaustive()
    }
}

// The future never pins its unit, and only moves the unit out. So the future may be moved, whatever the type of the
// unit.
impl<In: Send + 'static, R: Send + 'static> Unpin for SubmitFuture<'_, In, R> {}

impl<In: Send + 'static, R: Send + 'static> Future for SubmitFuture<'_, In, R> {
    type Output = Result<Ticket<R>, SubmitError<In>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let unit = this.unit.as_ref().expect("a submission was polled again after it ended");
        let submitter = this.submitter;
        let shared = &submitter.shared;
        // Making the candidate and cloning the waker runs user code, so this comes before the lock is taken and the unit is
        // moved.
        let candidate = this.candidate.take().unwrap_or_else(|| submitter.candidate(unit, true, 0));
        let wake = Wake::Task(Contained::new(context.waker().clone()));
        let Some(unit) = this.unit.take() else { return Poll::Pending };
        let mut state = shared.lock();
        let closed = state.is_closed();
        let (result, replaced) = if !closed && submitter.may_enter(&mut state, this.place, candidate.bytes()) {
            let replaced = state.leave_entrance(this.place.take());
            let cell = Cell::new();
            let promise = Promise::new(cell.clone());
            submitter.enter(&mut state, candidate, unit, Some(promise), shared.now());
            (Poll::Ready(Ok(Ticket::new(cell))), replaced)
        } else if closed {
            (Poll::Ready(Err(SubmitError::Closed(unit))), state.leave_entrance(this.place.take()))
        } else if shared.is_own_thread() && !is_waking() {
            // A stage of the flow must not wait for room in the flow.
            (Poll::Ready(Err(SubmitError::Full(unit))), state.leave_entrance(this.place.take()))
        } else {
            let (gate, bytes) = (&*submitter.gate, candidate.bytes());
            let replaced = state.wait_at_entrance(&mut this.place, gate, bytes, false, wake);
            (this.unit, this.candidate) = (Some(unit), Some(candidate));
            (Poll::Pending, replaced)
        };
        shared.unlock_and_wake(state);
        drop(replaced);
        result
    }
}

impl<In: Send + 'static, R: Send + 'static> Drop for SubmitFuture<'_, In, R> {
    fn drop(&mut self) {
        if self.place.is_some() {
            let mut state = self.submitter.shared.lock();
            let replaced = state.leave_entrance(self.place);
            self.submitter.shared.unlock_and_wake(state);
            drop(replaced);
        }
    }
}

/// A running flow. It dereferences to a [`Submitter`]. [`submitter`](Service::submitter) returns further submitters,
/// for other threads.
///
/// Dropping a service drains it.
///
/// ```
/// use millstream_flow::Flow;
///
/// let mut flow = Flow::builder("square");
/// let (square, done) = (flow.inlet("square"), flow.retire());
/// flow.stage(square, |n: &mut u64, _| Ok(*n * *n)).to(done);
/// let service = flow.build(square)?.start();
/// let ticket = service.submit(12)?;
/// assert_eq!(ticket.wait()?, 144);
/// let report = service.drain();
/// assert_eq!((report.admitted, report.retired), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Service<In: Send + 'static, R: Send + 'static> {
    submitter: Submitter<In, R>,
    kept: Arc<Mutex<Vec<DeadLetter>>>,
    drained: bool,
}

impl<In: Send + 'static, R: Send + 'static> fmt::Debug for Service<In, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("flow", &self.submitter.shared.site().name()).finish_non_exhaustive()
    }
}

impl<In: Send + 'static, R: Send + 'static> Deref for Service<In, R> {
    type Target = Submitter<In, R>;
    fn deref(&self) -> &Submitter<In, R> {
        &self.submitter
    }
}

impl<In: Send + 'static, R: Send + 'static> Service<In, R> {
    pub(crate) fn new(submitter: Submitter<In, R>, kept: Arc<Mutex<Vec<DeadLetter>>>) -> Self {
        Service { submitter, kept, drained: false }
    }

    /// Returns a handle for submitting units from another thread.
    pub fn submitter(&self) -> Submitter<In, R> {
        self.submitter.clone()
    }

    /// A handle for inspecting and steering the flow.
    pub fn control(&self) -> Control {
        Control { shared: self.submitter.shared.clone() }
    }

    /// Closes admission, waits until every unit has left, and returns the report of the flow.
    ///
    /// After [`Control::abandon`](crate::Control::abandon), the call waits up to 0.7 seconds for running code to end,
    /// and counts units that still run as `left`. A thread that does not return from a stage's code continues without
    /// the flow, and the ticket of its unit stays open until the code returns.
    ///
    /// # Panics
    /// Panics if a stage of the flow itself calls this method, because the call would wait for that stage.
    pub fn drain(mut self) -> Report {
        self.end()
    }

    fn end(&mut self) -> Report {
        self.drained = true;
        let shared = &self.submitter.shared;
        shared.close();
        finish(shared, &*self.submitter.sink, &self.kept)
    }
}

impl<In: Send + 'static, R: Send + 'static> Drop for Service<In, R> {
    fn drop(&mut self) {
        if !self.drained {
            if std::thread::panicking() {
                self.submitter.shared.abandon();
            }
            if self.submitter.shared.is_own_thread() {
                // A stage of the flow is dropping the service. The flow drains, but this thread must not wait for the
                // drain.
                self.submitter.shared.close();
            } else {
                self.end();
            }
        }
    }
}

/// Ends a flow's threads and returns its report.
fn finish(shared: &Arc<Shared>, tickets: &dyn TicketBook, kept: &Mutex<Vec<DeadLetter>>) -> Report {
    for mut row in shared.finish(GRACE) {
        tickets.abandoned(&mut row);
    }
    let mut report = shared.report();
    report.dead_letters = std::mem::take(&mut *kept.lock().unwrap_or_else(PoisonError::into_inner));
    report
}
