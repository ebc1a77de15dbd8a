//! Tickets: future fences, for callers that continue to work until the fence has been passed.

use std::time::{Duration, Instant};

use crate::backend::Tickets;
use crate::barrierd::backend::Mark;
use crate::fence::Fence;
use crate::{choice, grace, server};

/// The time before a refused fence is tried again.
const REFUSED: Duration = Duration::from_millis(1);

/// A ticket for a heavy fence that begins after the ticket was drawn. Any heavy fence of the process, of any thread, serves all
/// tickets that were drawn before it began.
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
///     // Do other work; this loop never waits in the kernel.
///     # ticket.wait_until(Instant::now() + Duration::from_millis(1));
/// }
/// // Every thread sees CLOSED after its next light fence.
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Ticket {
    fence: Fence,
    number: u64,
    /// The moment, in the virtual time of `barrierd`, at which the ticket was drawn; `None` if the page of `barrierd` does not
    /// serve the ticket.
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

    /// Returns whether the fence has been passed. If so, it also counts as a [`heavy`](Fence::heavy) fence of the caller.
    ///
    /// Never waits for another thread. If the fence takes microseconds, and no other fence has served the ticket yet, this call
    /// passes the fence. If the fence takes longer, this call is only a load; if the page of `barrierd` serves the ticket, it is
    /// three loads for each core. If the daemon has ended, a call notices this 20 ms after the ticket was drawn, and passes a
    /// fence of another kind. If the kernel refuses every kind of fence (see [`Refused`](crate::Refused)), the ticket is not
    /// done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        // If light fences are full fences, the full fence with which the ticket was drawn was the heavy fence.
        if !self.fence.choice().backend.asymmetric || grace::has_ended(self.number) {
            return true;
        }
        match self.mark {
            Some(mark) => mark.is_done(),
            None if self.fence.choice().backend.tickets == Tickets::AtOnce => self.fence.try_heavy().is_ok(),
            None if !server::is_alive() => {
                // There is no serving thread: this is a child of fork, or no thread can be started. A fast fence is passed
                // instead.
                grace::issue(choice::fast().backend).is_ok()
            }
            None => false,
        }
    }

    /// Waits until the fence has been passed.
    ///
    /// Blocks for as long as the fence takes.
    ///
    /// # Panics
    /// Panics like [`Fence::heavy`].
    pub fn wait(&self) {
        while !self.is_done() {
            if !self.comes_by_itself() {
                return Fence::FAST.heavy();
            }
            self.sleep(None);
        }
    }

    /// Waits until the fence has been passed, at most until `deadline`. Returns whether the fence has been passed.
    ///
    /// Blocks meanwhile. A fence that takes microseconds is passed even if the deadline has passed already.
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

    /// Returns whether the fence will be passed even if this thread does not call `is_done`.
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
