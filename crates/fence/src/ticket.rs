//! A fence to come, for callers that go on working meanwhile.

use std::time::{Duration, Instant};

use crate::backend::Tickets;
use crate::barrierd::backend::Mark;
use crate::fence::Fence;
use crate::{choice, grace, server};

/// How long to wait before a fence that was refused is tried again.
const REFUSED: Duration = Duration::from_millis(1);

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
    /// Where the page of `barrierd` tells.
    mark: Option<Mark>,
}

impl Ticket {
    pub(crate) fn new(fence: Fence) -> Self {
        let number = grace::next();
        let tickets = fence.choice().backend.tickets;
        if tickets == Tickets::ByThread {
            server::request(number);
        }
        Ticket { fence, number, mark: (tickets == Tickets::ByPage).then(Mark::draw) }
    }

    /// Whether the fence has been passed. If so, it was a [`heavy`](Fence::heavy) fence for the caller, too.
    ///
    /// Never waits for another thread. Where the fence takes microseconds, it is issued here unless somebody's has
    /// served the ticket already; otherwise this is a load, or three for each core with the page of `barrierd`. Should
    /// the daemon have ended, that is found out after 20 ms, and a fence of another kind is issued here. Where the kernel refuses every kind
    /// of fence (see [`Refused`](crate::Refused)), it is not done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        // With full fences on the light side, the one that drew the ticket was the heavy fence.
        if !self.fence.is_asymmetric() || grace::has_ended(self.number) {
            return true;
        }
        match self.mark {
            Some(mark) => mark.is_done(),
            None if self.fence.choice().backend.tickets == Tickets::AtOnce => self.fence.try_heavy().is_ok(),
            None if !server::is_alive() => {
                // A child of fork, or no thread to be had: a fence that takes microseconds serves as well.
                grace::issue(choice::fast().backend).is_ok()
            }
            None => false,
        }
    }

    /// Waits until the fence has been passed.
    ///
    /// Blocks as long as the fence takes.
    ///
    /// # Panics
    /// As [`Fence::heavy`].
    pub fn wait(&self) {
        while !self.is_done() {
            if !self.comes_by_itself() {
                return Fence::FAST.heavy();
            }
            self.sleep(None);
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
            if self.comes_by_itself() {
                self.sleep(Some(deadline));
            } else {
                std::thread::sleep(REFUSED.min(deadline.saturating_duration_since(Instant::now())));
            }
        }
        true
    }

    /// Whether something else than a look at the ticket will have the fence passed.
    fn comes_by_itself(&self) -> bool {
        match self.mark {
            Some(_) => Mark::comes_by_itself(),
            None => self.fence.choice().backend.tickets == Tickets::ByThread && server::is_alive(),
        }
    }

    fn sleep(&self, deadline: Option<Instant>) {
        match self.mark {
            Some(mark) => mark.wait(deadline),
            None => server::wait(self.number, deadline),
        }
    }
}
