//! The descriptor that ends a worker's sleep in its poller.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use rustix::event::{EventfdFlags, eventfd};

use crate::scheduler::bell::Alarm;

/// A counter of the kernel's, made before the worker first sleeps in its poller.
#[derive(Debug, Default)]
pub(crate) struct EventFd(OnceLock<OwnedFd>);

impl EventFd {
    /// The descriptor. For the worker, whose poller watches it.
    pub(super) fn make(&self) -> io::Result<BorrowedFd<'_>> {
        if self.0.get().is_none() {
            let made = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            let _ = self.0.set(made);
        }
        Ok(self.0.get().expect("it was made above").as_fd())
    }
}

impl Alarm for EventFd {
    fn sound(&self) {
        // A worker that sleeps in its poller has made the descriptor before it said so.
        if let Some(fd) = self.0.get() {
            // It is never read: each addition is an edge of its own, and the sum stays below the limit of 2^64 - 2.
            let _ = rustix::io::write(fd, &1_u64.to_ne_bytes());
        }
    }
}
