//! Waiting for one of several descriptors.

use std::io;
use std::os::fd::AsFd;
use std::panic::Location;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, Timespec};
use rustix::io::Errno;

use super::model::IoModel;
use super::source::take_turns;
use super::wait::{SLICE, is_late};
use crate::blocking::blocking;
use crate::park::deadline_after;
use crate::scheduler::core_ref::CoreRef;
use crate::scheduler::local::Local;
use crate::scheduler::state::Reason;
use crate::waiter::{Waiter, yield_fiber};

/// Waits until one of several descriptors is ready, for at most `timeout`, as `poll(2)` does. Outside a fiber, it makes that
/// system call.
///
/// Returns the number of entries that are ready, or 0 after the timeout. [`PollFd::revents`] of each entry has its events.
/// Without a `timeout` there is no limit, and a timeout of zero does not wait. The descriptors need not be non-blocking, and may
/// be those of [`net`](crate::net) and [`process`](crate::process). Several fibers may wait for the same descriptor. If a signal
/// interrupts the system call, the call is repeated.
///
/// `PollFlags::HUP` alone does not mean that nothing is left to read: the kernel checks for bytes before it checks for
/// writers, and the last writer may write and close in between. Only a read that returns 0 shows the end.
///
/// A cancelled fiber unwinds here. Under [`IoModel::Completion`] the fiber waits as under [`IoModel::Readiness`].
///
/// Costs one system call if a descriptor is ready. Otherwise it costs two system calls, and two more for each descriptor.
///
/// ```
/// use std::os::fd::AsFd;
/// use std::time::Duration;
/// use millstream_fiber::{Options, PollFd, PollFlags, Runtime, Threads, poll};
///
/// let runtime = Runtime::start(Options::new(Threads::One))?;
/// let ready = runtime.spawn(|| {
///     let (reader, _writer) = std::io::pipe()?;
///     let mut fds = [PollFd::new(&reader, PollFlags::IN)];
///     poll(&mut fds, Some(Duration::from_millis(1)))
/// });
/// assert_eq!(ready.join().unwrap()?, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Returns an error from `poll(2)`, or from `epoll_ctl(2)` if the worker gets no memory or no descriptor.
#[track_caller]
pub fn poll(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> io::Result<usize> {
    let at = Location::caller();
    let deadline = timeout.and_then(deadline_after);
    take_turns();
    let inside = Local::with(|local, fiber| {
        let mut places = Places { local, fiber, fds: &mut *fds, are_entered: false };
        loop {
            let ready = ask(places.fds, Some(Instant::now()))?;
            if ready > 0 || is_late(deadline) {
                return Ok(ready);
            }
            match fiber.io {
                IoModel::Blocking => in_slice(local.is_sole, places.fds, deadline)?,
                IoModel::NonBlocking => {
                    yield_fiber();
                }
                IoModel::Readiness | IoModel::Completion => {
                    // No descriptor was ready, and the worker collects no events while the fiber runs, so the event that makes a
                    // descriptor ready is still to come (see the module above).
                    places.enter()?;
                    Waiter::Fiber(CoreRef::clone(fiber)).block_at(Reason::Poll, deadline, at);
                }
            }
        }
    });
    inside.unwrap_or_else(|| ask(fds, deadline))
}

/// Blocks the thread until a descriptor is ready or `until` has passed, and returns the number of ready descriptors.
fn ask(fds: &mut [PollFd<'_>], until: Option<Instant>) -> io::Result<usize> {
    loop {
        #[cfg(all(test, not(loom)))]
        match super::fault::before_call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            planned => planned?,
        }
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        match rustix::event::poll(fds, timeout.as_ref()) {
            Err(Errno::INTR) => {}
            asked => return Ok(asked?),
        }
    }
}

/// Waits for at most one time slice: on this thread if it serves this fiber alone, otherwise on a thread for blocking calls.
fn in_slice(is_own: bool, fds: &mut [PollFd<'_>], deadline: Option<Instant>) -> io::Result<()> {
    let slice = Instant::now() + SLICE;
    let until = Some(deadline.map_or(slice, |deadline| deadline.min(slice)));
    if is_own {
        ask(fds, until)?;
    } else {
        blocking(|| ask(fds, until))?;
    }
    // A cancelled fiber unwinds here.
    yield_fiber();
    Ok(())
}

/// A fiber's entries in its worker's poller. They are removed when the wait ends, even by unwinding.
struct Places<'a, 'fd> {
    local: &'a Local,
    fiber: &'a CoreRef,
    fds: &'a mut [PollFd<'fd>],
    are_entered: bool,
}

impl Places<'_, '_> {
    fn enter(&mut self) -> io::Result<()> {
        let is_again = std::mem::replace(&mut self.are_entered, true);
        for fd in &*self.fds {
            self.local.with_poller(|poller| match is_again {
                true => poller.enter_again(fd.as_fd(), self.fiber),
                false => poller.enter_once(fd.as_fd(), self.fiber),
            })??;
        }
        Ok(())
    }
}

impl Drop for Places<'_, '_> {
    fn drop(&mut self) {
        if self.are_entered {
            for fd in &*self.fds {
                // An error means that there is no poller, and therefore no entry.
                let _ = self.local.with_poller(|poller| poller.leave_once(fd.as_fd(), self.fiber));
            }
        }
    }
}
