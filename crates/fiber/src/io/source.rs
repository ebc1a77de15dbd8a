//! A descriptor that fibers wait for, with its time limits.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::model::IoModel;
use super::poller::{AtomicTurn, Interest, Turn, Watch};
use super::wait::Wait;
use crate::park::deadline_after;
use crate::scheduler::local::Local;
use crate::scheduler::state::Reason;
use crate::waiter::{unwind_if_cancelled, yield_fiber};

/// The number of operations without a wait after which a fiber yields.
const MAX_OPERATIONS: u32 = 64;

/// A socket or pipe of the standard library in non-blocking mode. Calls through a source wait by suspending the fiber.
#[derive(Debug)]
pub(crate) struct Source<T> {
    inner: T,
    watch: Watch,
    /// The turn in which a read last emptied the stream.
    emptied: AtomicTurn,
    /// The time limit of each read, in nanoseconds; 0 means no limit.
    read_timeout: AtomicU64,
    write_timeout: AtomicU64,
}

impl<T: AsFd> Source<T> {
    /// Returns a source for `inner`, which must be non-blocking.
    pub(crate) fn new(inner: T) -> Self {
        let (read_timeout, write_timeout) = (AtomicU64::new(0), AtomicU64::new(0));
        Source { inner, watch: Watch::default(), emptied: AtomicTurn::new(Turn::NONE), read_timeout, write_timeout }
    }

    pub(crate) fn inner(&self) -> &T {
        &self.inner
    }

    pub(crate) fn into_inner(self) -> T {
        self.inner
    }

    fn timeout_of(&self, interest: Interest) -> &AtomicU64 {
        match interest {
            Interest::Read => &self.read_timeout,
            Interest::Write => &self.write_timeout,
        }
    }

    pub(crate) fn timeout(&self, interest: Interest) -> Option<Duration> {
        let nanoseconds = self.timeout_of(interest).load(Relaxed);
        (nanoseconds > 0).then(|| Duration::from_nanos(nanoseconds))
    }

    /// Sets a time limit for each operation, as the standard library does: zero is an error.
    pub(crate) fn set_timeout(&self, interest: Interest, timeout: Option<Duration>) -> io::Result<()> {
        if timeout == Some(Duration::ZERO) {
            let message = "a time limit of zero; expected a longer one, or `None` for no limit";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let nanoseconds = timeout.map_or(0, |timeout| u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
        self.timeout_of(interest).store(nanoseconds, Relaxed);
        Ok(())
    }

    /// Calls `call` until it does not block.
    ///
    /// # Errors
    /// Returns the errors of the call, and [`TimedOut`](io::ErrorKind::TimedOut).
    #[track_caller]
    pub(crate) fn operate<R>(&self, interest: Interest, call: impl FnMut(&T) -> io::Result<R>) -> io::Result<R> {
        let reason = match interest {
            Interest::Read => Reason::Readable,
            Interest::Write => Reason::Writable,
        };
        self.operate_for(reason, interest, self.timeout(interest), call)
    }

    /// Like [`operate`](Self::operate), with an explicit time limit, and the reason that a dump shows.
    #[track_caller]
    pub(crate) fn operate_for<R>(
        &self,
        reason: Reason,
        interest: Interest,
        timeout: Option<Duration>,
        call: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        take_turns();
        self.attempt_or_wait(false, reason, interest, timeout, call).map(|(result, _)| result)
    }

    /// Reads up to `length` bytes from a stream.
    #[track_caller]
    pub(crate) fn read_some(&self, _length: usize, call: impl FnMut(&T) -> io::Result<usize>) -> io::Result<usize> {
        self.operate(Interest::Read, call)
    }

    /// Reads up to `length` bytes from a stream whose reads return all available bytes. A read that returns less than `length`
    /// has therefore emptied the stream. The next read may then begin with its wait, under the conditions in the [module
    /// above](super).
    #[track_caller]
    pub(crate) fn read_all_there_is(
        &self,
        length: usize,
        call: impl FnMut(&T) -> io::Result<usize>,
    ) -> io::Result<usize> {
        take_turns();
        let is_empty = worker_turn().is_some_and(|turn| turn == self.emptied.load());
        let timeout = self.timeout(Interest::Read);
        let (bytes, woken_in) = self.attempt_or_wait(is_empty, Reason::Readable, Interest::Read, timeout, call)?;
        let has_emptied = (1..length).contains(&bytes);
        self.emptied.store(woken_in.filter(|_| has_emptied).unwrap_or(Turn::NONE));
        Ok(bytes)
    }

    /// Calls `call` until it does not block. If `waits_first`, waits before the first call. Returns the result of `call`, and the
    /// turn that the last [`Wait::run`] returned.
    #[track_caller]
    fn attempt_or_wait<R>(
        &self,
        mut waits_first: bool,
        reason: Reason,
        interest: Interest,
        timeout: Option<Duration>,
        mut call: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<(R, Option<Turn>)> {
        let (fd, watch, at): (BorrowedFd<'_>, _, _) = (self.inner.as_fd(), &self.watch, Location::caller());
        let (mut deadline, mut woken_in) = (None, None);
        loop {
            let attempted =
                if waits_first { Err(io::ErrorKind::WouldBlock.into()) } else { attempt(&mut call, &self.inner) };
            waits_first = false;
            match attempted {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // The clock is read only if there is a limit.
                    if let (Some(timeout), None) = (timeout, deadline) {
                        deadline = deadline_after(timeout);
                    }
                    woken_in = Wait { fd, watch, interest, reason, deadline, at }.run()?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result.map(|result| (result, woken_in)),
            }
        }
    }
}

/// Returns the latest turn of the worker's poller, if the fiber waits under the model of readiness.
fn worker_turn() -> Option<Turn> {
    Local::with(|local, fiber| local.poller_turn().filter(|_| fiber.io == IoModel::Readiness))?
}

/// Unwinds a cancelled fiber, and lets others run if the fiber has made many operations in a row. Otherwise a fiber whose peer is
/// always ready would never leave its worker. Called before each operation rather than after it, so that a cancellation cannot
/// lose data.
pub(crate) fn take_turns() {
    unwind_if_cancelled();
    let is_due = Local::with(|local, _| {
        local.operations.set(local.operations.get() + 1);
        local.operations.get() > MAX_OPERATIONS
    });
    if is_due == Some(true) {
        yield_fiber();
    }
}

/// Returns the number of bytes that an operation may use of a buffer: all of them, or fewer if a test injects faults.
#[inline]
pub(crate) fn shortened(length: usize) -> usize {
    #[cfg(all(test, not(loom)))]
    let length = super::fault::shorten(length);
    length
}

#[cfg(not(all(test, not(loom))))]
#[inline]
fn attempt<T, R>(call: &mut impl FnMut(&T) -> io::Result<R>, inner: &T) -> io::Result<R> {
    call(inner)
}

/// In the crate's own tests, injects faults.
#[cfg(all(test, not(loom)))]
fn attempt<T, R>(call: &mut impl FnMut(&T) -> io::Result<R>, inner: &T) -> io::Result<R> {
    super::fault::before_call()?;
    call(inner)
}
