//! One wait for a descriptor, under the model of the calling fiber, or on the calling thread.

use std::io;
use std::os::fd::BorrowedFd;
use std::panic::Location;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::model::IoModel;
use super::poller::{Interest, Turn, Watch};
use super::ring;
use crate::blocking::blocking;
use crate::scheduler::core_ref::CoreRef;
use crate::scheduler::local::Local;
use crate::scheduler::state::Reason;
use crate::waiter::{Waiter, yield_fiber};

/// The maximum time for which a thread blocks on behalf of a fiber. During this time a cancellation may go unnoticed, and other
/// fibers may have to wait for a thread.
pub(super) const SLICE: Duration = Duration::from_millis(50);

/// A wait for a descriptor.
#[derive(Clone, Copy)]
pub(super) struct Wait<'a> {
    pub(super) fd: BorrowedFd<'a>,
    pub(super) watch: &'a Watch,
    pub(super) interest: Interest,
    pub(super) reason: Reason,
    pub(super) deadline: Option<Instant>,
    pub(super) at: &'static Location<'static>,
}

impl Wait<'_> {
    /// Waits until the descriptor may be ready. May return spuriously. If a wait for a read was ended by an event that reported
    /// bytes and nothing else, returns the turn of the worker's poller that got the event.
    ///
    /// # Errors
    /// Returns [`TimedOut`](io::ErrorKind::TimedOut) at the deadline, and the errors of the poller.
    pub(super) fn run(self) -> io::Result<Option<Turn>> {
        if is_late(self.deadline) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let inside = Local::with(|local, fiber| match fiber.io {
            IoModel::Blocking => self.in_slices(local.is_sole).map(|()| None),
            IoModel::NonBlocking => {
                yield_fiber();
                Ok(None)
            }
            IoModel::Readiness => self.in_poller(local, fiber),
            IoModel::Completion => self.in_ring().map(|()| None),
        });
        inside.unwrap_or_else(|| self.on_thread(self.deadline).map(|_| None))
    }

    /// Blocks the thread until the descriptor is ready or `until` has passed. Returns whether it is ready.
    fn on_thread(&self, until: Option<Instant>) -> io::Result<bool> {
        let flags = match self.interest {
            Interest::Read => PollFlags::IN,
            Interest::Write => PollFlags::OUT,
        };
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            match poll(&mut [PollFd::from_borrowed_fd(self.fd, flags)], timeout.as_ref()) {
                Ok(ready) => return Ok(ready > 0),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits for at most one time slice: on this thread if it serves this fiber alone, otherwise on a thread for blocking
    /// calls.
    fn in_slices(&self, is_own: bool) -> io::Result<()> {
        let slice = Instant::now() + SLICE;
        let until = Some(self.deadline.map_or(slice, |deadline| deadline.min(slice)));
        let (fd, interest) = (self.fd, self.interest);
        if is_own {
            self.on_thread(until)?;
        } else {
            // The other thread gets an empty watch, because `self.watch` is for the pollers of workers only.
            let (watch, reason, at) = (Watch::default(), self.reason, self.at);
            blocking(move || Wait { fd, watch: &watch, interest, reason, deadline: until, at }.on_thread(until))?;
        }
        // A cancelled fiber unwinds here.
        yield_fiber();
        Ok(())
    }

    fn in_poller(&self, local: &Local, fiber: &CoreRef) -> io::Result<Option<Turn>> {
        local.with_poller(|poller| poller.enter(self.fd, self.watch, self.interest, fiber))??;
        let mut place = Place { local, wait: self, fiber, has_left: false };
        Waiter::Fiber(CoreRef::clone(fiber)).block_at(self.reason, self.deadline, self.at);
        Ok(place.leave())
    }

    fn in_ring(&self) -> io::Result<()> {
        let entry = ring::poll_entry(self.fd, self.interest);
        // SAFETY: the entry has no buffers, and the descriptor is open until the call returns.
        unsafe { ring::complete(&entry, self.reason, self.deadline, self.at) }.map(drop)
    }
}

/// Returns whether the deadline has come.
pub(super) fn is_late(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| deadline <= Instant::now())
}

/// A fiber's entry in its worker's poller. It is removed when the wait ends, even by unwinding.
struct Place<'a> {
    local: &'a Local,
    wait: &'a Wait<'a>,
    fiber: &'a CoreRef,
    has_left: bool,
}

impl Place<'_> {
    fn leave(&mut self) -> Option<Turn> {
        self.has_left = true;
        let left = self.local.with_poller(|poller| poller.leave(self.wait.fd, self.wait.interest, self.fiber));
        debug_assert!(left.is_ok(), "the poller that was entered is there");
        left.ok().flatten()
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if !self.has_left {
            self.leave();
        }
    }
}

/// Runs a call that may block the thread. It runs on this thread if the thread serves this fiber alone or there is no fiber,
/// otherwise on a thread for blocking calls. Interrupted calls begin again.
#[track_caller]
pub(crate) fn on_other_thread<T: Send>(mut call: impl FnMut() -> io::Result<T> + Send) -> io::Result<T> {
    let mut uninterrupted = move || {
        loop {
            match call() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    };
    let is_own = Local::with(|local, _| local.is_sole);
    if is_own == Some(false) { blocking(uninterrupted) } else { uninterrupted() }
}
