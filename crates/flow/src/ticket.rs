//! Tickets, with which a submitter gets the result of its unit.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use crate::contain::{self, Contained};
use crate::engine::units::column::{Column, Row};
use crate::failure::DeadLetter;

/// The reason why a unit has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unfinished {
    /// The unit failed for good.
    #[error("{0}")]
    Dead(DeadLetter),
    /// The unit failed in a stage that skips failures.
    #[error("skipped after a failure")]
    Skipped,
    /// The unit was split. Its children continue in its place, and their results have no ticket.
    #[error("split into other units, whose results have no ticket")]
    Split,
    /// The unit joined a group, which continues in its place and has no ticket.
    #[error("gathered into a group, whose result has no ticket")]
    Gathered,
    /// The flow was abandoned before the unit was done.
    #[error("the flow was abandoned before the unit was done")]
    Abandoned,
}

/// The claim to the result of one unit. A ticket is also a future.
///
/// Dropping a ticket does not cancel the unit. If the unit fails later, its dead letter goes to the flow's listener;
/// a letter that the ticket already has is dropped with the ticket. To submit a unit whose result is not needed, use
/// [`send`](crate::Submitter::send).
#[must_use = "only the ticket yields the unit's result"]
pub struct Ticket<R> {
    cell: Arc<Cell<R>>,
}

impl<R> fmt::Debug for Ticket<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("ready", &matches!(*self.cell.lock(), Slot::Ready(_))).finish()
    }
}

/// The cell through which a unit's result reaches its ticket.
pub(crate) struct Cell<R> {
    slot: Mutex<Slot<R>>,
    ready: Condvar,
}

enum Slot<R> {
    Waiting(Option<Contained<Waker>>),
    Ready(Result<R, Unfinished>),
    Taken,
}

impl<R> Cell<R> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Cell { slot: Mutex::new(Slot::Waiting(None)), ready: Condvar::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Slot<R>> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<Result<R, Unfinished>> {
        let mut slot = self.lock();
        match std::mem::replace(&mut *slot, Slot::Taken) {
            Slot::Ready(result) => Some(result),
            other => {
                *slot = other;
                None
            }
        }
    }

    /// Stores the waker, and returns the waker that it replaces. `Err` means that the result has arrived.
    fn wait(&self, waker: Contained<Waker>) -> Result<Option<Contained<Waker>>, Contained<Waker>> {
        match &mut *self.lock() {
            Slot::Waiting(waiting) => Ok(waiting.replace(waker)),
            Slot::Ready(_) | Slot::Taken => Err(waker),
        }
    }

    fn put(&self, result: Result<R, Unfinished>) {
        let mut slot = self.lock();
        if let Slot::Waiting(waker) = &mut *slot {
            let waker = waker.take();
            *slot = Slot::Ready(result);
            drop(slot);
            self.ready.notify_all();
            if let Some(waker) = waker {
                contain::wake(waker);
            }
        }
    }
}

impl<R> Ticket<R> {
    pub(crate) fn new(cell: Arc<Cell<R>>) -> Self {
        Ticket { cell }
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// Returns an error if the unit ended without a result.
    pub fn wait(self) -> Result<R, Unfinished> {
        let mut slot = self.cell.lock();
        loop {
            match std::mem::replace(&mut *slot, Slot::Taken) {
                Slot::Ready(result) => return result,
                waiting => *slot = waiting,
            }
            slot = self.cell.ready.wait(slot).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for the result until `deadline`; does not wait if the deadline has passed.
    ///
    /// # Errors
    /// Returns the ticket itself if the unit is not done by then.
    pub fn wait_until(self, deadline: Instant) -> Result<Result<R, Unfinished>, Self> {
        let mut slot = self.cell.lock();
        loop {
            match std::mem::replace(&mut *slot, Slot::Taken) {
                Slot::Ready(result) => return Ok(result),
                waiting => *slot = waiting,
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                drop(slot);
                return Err(self);
            }
            slot = self.cell.ready.wait_timeout(slot, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl<R> Future for Ticket<R> {
    type Output = Result<R, Unfinished>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(result) = self.cell.take() {
            return Poll::Ready(result);
        }
        // Cloning and dropping a waker runs user code, so the ticket does neither under the lock.
        let waker = Contained::new(context.waker().clone());
        match self.cell.wait(waker) {
            Ok(_replaced) => Poll::Pending,
            // The result has arrived since the check above.
            Err(_waker) => Poll::Ready(self.cell.take().expect("a ticket was polled again after it gave its result")),
        }
    }
}

/// The tickets of a flow. Tells each ticket the outcome of its unit.
pub(crate) trait TicketBook: Send + Sync {
    /// Delivers the letter to the unit's ticket. Returns the letter if there is no ticket.
    fn dead(&self, row: &mut Row, letter: DeadLetter) -> Option<DeadLetter>;
    /// Tells the unit's ticket why there is no result.
    fn unfinished(&self, row: &mut Row, reason: Unfinished);
    fn abandoned(&self, row: &mut Row);
}

/// The unit's end of a cell. Dropping this end without a result tells the ticket that the unit was abandoned.
pub(crate) struct Promise<R>(Arc<Cell<R>>);

impl<R> Promise<R> {
    pub(crate) fn new(cell: Arc<Cell<R>>) -> Self {
        Promise(cell)
    }
}

impl<R> Drop for Promise<R> {
    fn drop(&mut self) {
        self.0.put(Err(Unfinished::Abandoned));
    }
}

/// Delivers the results of a flow to tickets or to the listener.
pub(crate) struct Sink<R> {
    pub(crate) tickets: Column<Promise<R>>,
    pub(crate) on_retire: OnceLock<Box<dyn Fn(R) + Send + Sync>>,
}

impl<R: Send + 'static> Sink<R> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Sink { tickets: Column::new(), on_retire: OnceLock::new() })
    }

    pub(crate) fn retire(&self, value: R, row: &mut Row, ticketed: bool) {
        if ticketed && let Some(promise) = self.take_promise(row) {
            return promise.0.put(Ok(value));
        }
        if let Some(on_retire) = self.on_retire.get() {
            on_retire(value);
        }
    }

    pub(crate) fn put_promise(&self, row: &mut Row, promise: Promise<R>) {
        // SAFETY: a flow has one sink, so the row belongs to the flow of the sink's column.
        *unsafe { self.tickets.cell(row) } = Some(promise);
    }

    fn take_promise(&self, row: &mut Row) -> Option<Promise<R>> {
        // SAFETY: a flow has one sink, so the row belongs to the flow of the sink's column.
        unsafe { self.tickets.cell(row) }.take()
    }
}

impl<R: Send + 'static> TicketBook for Sink<R> {
    fn dead(&self, row: &mut Row, letter: DeadLetter) -> Option<DeadLetter> {
        match self.take_promise(row) {
            // Ticket and promise share the cell. If the promise is the only owner, the ticket is gone, and the letter is
            // returned.
            Some(promise) if Arc::strong_count(&promise.0) > 1 => {
                promise.0.put(Err(Unfinished::Dead(letter)));
                None
            }
            _ => Some(letter),
        }
    }

    fn unfinished(&self, row: &mut Row, reason: Unfinished) {
        if let Some(promise) = self.take_promise(row) {
            promise.0.put(Err(reason));
        }
    }

    fn abandoned(&self, row: &mut Row) {
        drop(self.take_promise(row));
    }
}
