//! A future fence, for callers that go on working meanwhile.

use std::time::{Duration, Instant};

use crate::backend::Tickets;
use crate::barrierd::backend::Mark;
use crate::fence::Fence;
use crate::{choice, grace, server};

/// Time to wait before retrying a fence that was refused.
const REFUSED: Duration = Duration::from_millis(1);

/// Stands for a heavy fence that begins after the ticket was drawn. Every heavy fence serves all tickets of the process
/// drawn before it began, whichever thread issues it.
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
    /// The moment in `barrierd`'s virtual time, if its page serves the ticket.
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
    /// Never waits for another thread. Where the fence takes microseconds, this issues it unless another thread's fence
    /// has served the ticket already; otherwise this is a load, or three for each core with the page of `barrierd`. If
    /// the daemon has ended, this finds out after 20 ms, and issues a fence of another kind. Where the kernel refuses
    /// every kind of fence (see [`Refused`](crate::Refused)), the ticket is not done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        // With full fences on the light side, the full fence that drew the ticket was the heavy fence.
        if !self.fence.choice().backend.asymmetric || grace::has_ended(self.number) {
            return true;
        }
        match self.mark {
            Some(mark) => mark.is_done(),
            None if self.fence.choice().backend.tickets == Tickets::AtOnce => self.fence.try_heavy().is_ok(),
            None if !server::is_alive() => {
                // This is a child of fork, or no thread can be started: a fence that takes microseconds serves as well.
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
    /// Like [`Fence::heavy`].
    pub fn wait(&self) {
        while !self.is_done() {
            if !self.comes_by_itself() {
                return Fence::FAST.heavy();
            }
            self.sleep(None);
        }
    }

    /// Waits until the fence has been passed or `deadline` has; returns whether the fence was passed.
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

    /// Whether the fence will be passed without a call to `is_done`.
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
