//! Completion: a worker's io_uring instance.
//!
//! A fiber puts its operation into the submission queue. When the worker has no fiber to run, it submits all queued operations
//! in one system call. The kernel may use an operation's buffer until the operation is complete, whatever happens to the fiber.
//! [`complete`] therefore does not return or unwind before the operation is complete. If the fiber is cancelled, or its
//! deadline passes, `complete` asks the kernel to cancel the operation, and then waits for the completion of the *operation*,
//! not only of the cancellation. Buffers can therefore be borrowed, even from the stack.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::panic::Location;
use std::time::Instant;

use io_uring::{IoUring, Probe, opcode, squeue, types};

use super::poller::Interest;
use super::wait::is_late;
use crate::contained::AbortOnUnwind;
use crate::scheduler::core_ref::CoreRef;
use crate::scheduler::local::Local;
use crate::scheduler::state::Reason;
use crate::waiter::{Mask, Waiter, may_unwind, yield_fiber};

/// The number of entries in the submission queue. A full queue is submitted immediately.
const ENTRIES: u32 = 256;

/// The user data of the completion that a cancellation itself produces.
const CANCELLATION: u64 = u64::MAX;

/// An operation whose result the fiber has not taken yet.
struct Operation {
    fiber: CoreRef,
    result: Option<i32>,
}

/// See the [module](self).
pub(crate) struct Ring {
    uring: IoUring,
    /// The operations. The kernel returns the index of an operation with its completion. Unused indices are in `free`.
    operations: Vec<Option<Operation>>,
    free: Vec<usize>,
    is_behind: bool,
}

/// The kinds of operations that fibers use.
const OPERATIONS: [u8; 5] =
    [opcode::Read::CODE, opcode::Write::CODE, opcode::Fsync::CODE, opcode::PollAdd::CODE, opcode::AsyncCancel::CODE];

/// Returns whether this process can have a ring that supports all operations, reads at a file's own position, and loses no
/// completion. Linux 5.6 provides such rings.
pub(super) fn is_available() -> bool {
    let Ok(uring) = IoUring::new(1) else { return false };
    let mut probe = Probe::new();
    uring.submitter().register_probe(&mut probe).is_ok()
        && OPERATIONS.iter().all(|&code| probe.is_supported(code))
        && uring.params().is_feature_rw_cur_pos()
        && uring.params().is_feature_nodrop()
}

impl Ring {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Ring { uring: IoUring::new(ENTRIES)?, operations: Vec::new(), free: Vec::new(), is_behind: false })
    }

    /// Returns the ring's descriptor, which is readable when there are completions.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the ring keeps its descriptor open, and the result borrows the ring.
        unsafe { BorrowedFd::borrow_raw(self.uring.as_raw_fd()) }
    }

    /// Returns whether a fiber waits for a completion.
    pub(super) fn is_in_use(&self) -> bool {
        self.free.len() < self.operations.len()
    }

    /// Submits the queued operations, and wakes the fibers whose operations are complete. Returns `true` if the worker should
    /// not sleep: it has woken fibers, or some operations could not be submitted yet.
    pub(super) fn turn(&mut self) -> bool {
        if self.is_behind {
            // The kernel may accept only some of the operations, or none, because it lacks memory or room for completions. The
            // other operations stay in the queue and are submitted at the next turn.
            self.is_behind = self.uring.submit().is_err() || !self.uring.submission().is_empty();
        }
        let mut woke = self.take_completions();
        if self.uring.submission().cq_overflow() {
            // Completions that did not fit into the queue stay in the kernel until the next system call.
            let _ = self.uring.submit();
            woke |= self.take_completions();
        }
        woke || self.is_behind
    }

    fn take_completions(&mut self) -> bool {
        let mut woke = false;
        for completion in self.uring.completion() {
            if completion.user_data() == CANCELLATION {
                continue;
            }
            let operation = self.operations.get_mut(completion.user_data() as usize).and_then(Option::as_mut);
            let operation = operation.expect("an operation stays until it is complete");
            operation.result = Some(completion.result());
            operation.fiber.end_wait();
            woke = true;
        }
        woke
    }

    /// Adds an operation of the fiber, and returns its number.
    ///
    /// # Safety
    /// The descriptor and the buffers of `entry` stay valid until [`take`](Self::take) has returned the result.
    unsafe fn begin(&mut self, entry: &squeue::Entry, fiber: &CoreRef) -> io::Result<usize> {
        let number = self.free.pop().unwrap_or_else(|| {
            self.operations.push(None);
            self.operations.len() - 1
        });
        // SAFETY: the caller upholds the contract of this function.
        if let Err(error) = unsafe { self.push(&entry.clone().user_data(number as u64)) } {
            self.free.push(number);
            return Err(error);
        }
        self.operations[number] = Some(Operation { fiber: CoreRef::clone(fiber), result: None });
        Ok(number)
    }

    /// Asks the kernel to cancel an operation. The operation itself still completes, usually with an error.
    fn cancel(&mut self, number: usize) -> io::Result<()> {
        let entry = opcode::AsyncCancel::new(number as u64).build().user_data(CANCELLATION);
        // SAFETY: the entry has no buffers.
        unsafe { self.push(&entry) }
    }

    /// # Safety
    /// As for [`begin`](Self::begin).
    unsafe fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: the caller upholds the contract of this function.
        if unsafe { self.uring.submission().push(entry) }.is_err() {
            self.uring.submit()?;
            // SAFETY: the caller upholds the contract of this function.
            unsafe { self.uring.submission().push(entry) }.map_err(|_| io::Error::from(io::ErrorKind::ResourceBusy))?;
        }
        self.is_behind = true;
        Ok(())
    }

    /// Returns the result of a complete operation, and frees its number.
    fn take(&mut self, number: usize) -> Option<i32> {
        let result = self.operations[number].as_ref()?.result?;
        self.operations[number] = None;
        self.free.push(number);
        Some(result)
    }
}

/// Returns an entry that completes when the descriptor is ready.
pub(super) fn poll_entry(fd: BorrowedFd<'_>, interest: Interest) -> squeue::Entry {
    let flags = match interest {
        Interest::Read => libc::POLLIN | libc::POLLRDHUP,
        Interest::Write => libc::POLLOUT,
    };
    opcode::PollAdd::new(types::Fd(fd.as_raw_fd()), flags as u32).build()
}

/// Passes an operation to the kernel, suspends the fiber until the operation is complete, and returns its result.
///
/// # Errors
/// Returns the error of the operation, or [`TimedOut`](io::ErrorKind::TimedOut) if the deadline cut it short. An interrupted
/// operation begins again.
///
/// # Panics
/// Panics outside a fiber.
///
/// # Safety
/// The descriptor and the buffers of `entry` are valid, and the buffers are not otherwise used, until this returns or unwinds.
pub(crate) unsafe fn complete(
    entry: &squeue::Entry,
    reason: Reason,
    deadline: Option<Instant>,
    at: &'static Location<'static>,
) -> io::Result<u32> {
    let inside = Local::with(|local, fiber| {
        loop {
            // SAFETY: the descriptor and the buffers are valid until this function ends, and it ends only after the operation:
            // see `wait`.
            let begun = local.with_poller(|poller| unsafe { poller.ring()?.begin(entry, fiber) })?;
            let number = match begun {
                Ok(number) => number,
                // The kernel has no room for more operations at the moment. Other fibers run, and then this one tries again.
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ResourceBusy) => {
                    yield_fiber();
                    continue;
                }
                Err(error) => return Err(error),
            };
            let (result, was_cut_short) = wait(local, fiber, number, reason, deadline, at);
            match result {
                done @ 0.. => return Ok(done as u32),
                error if error == -libc::EINTR || (error == -libc::ECANCELED && was_cut_short) => {
                    // A cancelled fiber unwinds here. If another fiber of the worker has begun to unwind meanwhile, this fiber
                    // cannot unwind, and its operation begins again.
                    yield_fiber();
                    if is_late(deadline) {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                error => return Err(io::Error::from_raw_os_error(-error)),
            }
        }
    });
    inside.expect("a completion is waited for in a fiber")
}

/// Waits for an operation's completion. If the fiber is cancelled, or its deadline passes, the operation is cancelled as well.
/// Returns the operation's result, and whether its cancellation was requested.
fn wait(
    local: &Local,
    fiber: &CoreRef,
    number: usize,
    reason: Reason,
    deadline: Option<Instant>,
    at: &'static Location<'static>,
) -> (i32, bool) {
    let is_masked = Mask::is_set();
    // Nothing may unwind as long as the kernel may use the buffers.
    let mask = Mask::new();
    let guard = AbortOnUnwind;
    let waiter = Waiter::Fiber(CoreRef::clone(fiber));
    let ring = |act: &mut dyn FnMut(&mut Ring) -> Option<i32>| {
        local.with_poller(|poller| act(poller.ring().expect("the ring is there"))).expect("the poller is there")
    };
    let mut is_cut_short = false;
    let result = loop {
        if let Some(result) = ring(&mut |ring| ring.take(number)) {
            break result;
        }
        // This is checked after each wait: while another fiber of the worker waits during its unwinding, no fiber can tell
        // whether it may unwind. `block_at` then returns soon, and the check is repeated.
        let is_ended = fiber.is_cancelled() && may_unwind(is_masked);
        if !is_cut_short && (is_late(deadline) || is_ended) {
            ring(&mut |ring| {
                is_cut_short = ring.cancel(number).is_ok();
                None
            });
        }
        waiter.block_at(reason, if is_cut_short { None } else { deadline }, at);
    };
    std::mem::forget(guard);
    drop(mask);
    (result, is_cut_short)
}
