//! The descriptor that ends a worker's sleep in its poller.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};

use crate::scheduler::bell::Alarm;

/// A counter in the kernel, created before the worker first sleeps in its poller. The poller owns it: the handle of a fiber
/// that has ended keeps its worker's post alive, but no descriptor open.
#[derive(Debug, Default)]
pub(crate) struct EventFd(Mutex<Weak<OwnedFd>>);

impl EventFd {
    /// Creates the descriptor. Only the worker calls it, whose poller watches the descriptor.
    pub(super) fn make(&self) -> io::Result<Arc<OwnedFd>> {
        let made = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        *self.0.lock() = Arc::downgrade(&made);
        Ok(made)
    }
}

impl Alarm for EventFd {
    fn sound(&self) {
        // A worker creates the descriptor before it announces that it sleeps in its poller.
        let fd = self.0.lock().upgrade();
        if let Some(fd) = fd {
            // The counter is never read: each addition is an edge of its own, and the sum stays below the limit of 2^64 - 2.
            let _ = rustix::io::write(&*fd, &1_u64.to_ne_bytes());
        }
    }
}
