//! A fence to come, for callers that go on working meanwhile.

use std::time::Instant;

use crate::fence::Fence;
use crate::{choice, grace, server};

/// Stands for a heavy fence that begins after the ticket was drawn. Every ticket of the process is served by every
/// heavy fence that begins after it, whoever issues it.
///
/// ```
/// use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
/// use std::time::{Duration, Instant};
/// use millstream_fence::Fence;
///
/// static CLOSED: AtomicBool = AtomicBool::new(false);
///
/// CLOSED.store(true, Relaxed);
/// let ticket = Fence::QUIET.ticket();
/// while !ticket.is_done() {
///     // Do something else; this loop never waits in the kernel.
///     # ticket.wait_until(Instant::now() + Duration::from_millis(1));
/// }
/// // Every thread sees CLOSED after its next light fence.
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Ticket {
    fence: Fence,
    number: u64,
}

impl Ticket {
    pub(crate) fn new(fence: Fence) -> Self {
        let ticket = Ticket { fence, number: grace::next() };
        if !ticket.is_prompt() {
            server::request(ticket.number);
        }
        ticket
    }

    /// Whether the fence has been passed. If so, it was a [`heavy`](Fence::heavy) fence for the caller, too.
    ///
    /// Never waits for another thread. Where the fence takes microseconds, it is issued here unless somebody's has
    /// served the ticket already; otherwise this is a load.
    #[must_use]
    pub fn is_done(&self) -> bool {
        // With full fences on the light side, the one that drew the ticket was the heavy fence.
        if !self.fence.is_asymmetric() || grace::has_ended(self.number) {
            return true;
        }
        if self.is_prompt() {
            self.fence.heavy();
            return true;
        }
        if !server::is_alive() {
            // A child of fork, or no thread to be had: a fence that takes microseconds serves as well.
            grace::issue(choice::fast().backend);
            return true;
        }
        false
    }

    /// Waits until the fence has been passed.
    ///
    /// Blocks as long as the fence takes.
    pub fn wait(&self) {
        while !self.is_done() {
            server::wait(self.number, None);
        }
    }

    /// Waits until the fence has been passed or the time has come; tells whether it was passed.
    ///
    /// Blocks until then. A fence that takes microseconds is issued even if the deadline is past.
    #[must_use]
    pub fn wait_until(&self, deadline: Instant) -> bool {
        while !self.is_done() {
            if Instant::now() >= deadline {
                return false;
            }
            server::wait(self.number, Some(deadline));
        }
        true
    }

    fn is_prompt(&self) -> bool {
        self.fence.choice().backend.prompt
    }
}
