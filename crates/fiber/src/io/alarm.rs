//! The descriptor that ends a worker's sleep in its poller.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};

use crate::scheduler::bell::Alarm;

/// An eventfd, created before the worker first sleeps in its poller. It is owned by the poller, not by the worker's post: the
/// handle of a fiber that has ended keeps the post alive, but must not keep a descriptor open.
#[derive(Debug, Default)]
pub(crate) struct EventFd(Mutex<Weak<OwnedFd>>);

impl EventFd {
    /// Creates the descriptor. Only the worker itself calls this; its poller watches the descriptor.
    pub(super) fn make(&self) -> io::Result<Arc<OwnedFd>> {
        let made = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        *self.0.lock() = Arc::downgrade(&made);
        Ok(made)
    }
}

impl Alarm for EventFd {
    fn sound(&self) {
        // A worker creates the descriptor before it announces a sleep in its poller, so a caller that must end such a sleep finds
        // the descriptor.
        let fd = self.0.lock().upgrade();
        if let Some(fd) = fd {
            // The counter is never read: each addition triggers a separate event, and the sum never reaches the limit of 2^64.
            // - 2.
            let _ = rustix::io::write(&*fd, &1_u64.to_ne_bytes());
        }
    }
}
