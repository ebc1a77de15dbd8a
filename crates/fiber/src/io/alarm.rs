//! The descriptor that ends a worker's sleep in its poller.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};

use crate::scheduler::bell::Alarm;

/// A counter of the kernel's, made before the worker first sleeps in its poller. The poller owns it: a handle of a fiber that
/// has ended keeps its worker's post, and no descriptor.
#[derive(Debug, Default)]
pub(crate) struct EventFd(Mutex<Weak<OwnedFd>>);

impl EventFd {
    /// Makes the descriptor. For the worker, whose poller watches it.
    pub(super) fn make(&self) -> io::Result<Arc<OwnedFd>> {
        let made = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        *self.0.lock() = Arc::downgrade(&made);
        Ok(made)
    }
}

impl Alarm for EventFd {
    fn sound(&self) {
        // A worker that sleeps in its poller has made the descriptor before it said so.
        let fd = self.0.lock().upgrade();
        if let Some(fd) = fd {
            // It is never read: each addition is an edge of its own, and the sum stays below the limit of 2^64 - 2.
            let _ = rustix::io::write(&*fd, &1_u64.to_ne_bytes());
        }
    }
}
