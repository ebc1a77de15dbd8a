//! Yield, park and sleep. Outside a fiber, each of them acts on the calling thread.

use std::time::{Duration, Instant};

use crate::handle::current;
use crate::scheduler::state::Reason;
use crate::waiter::yield_fiber;

/// Lets the worker's other ready fibers run first.
///
/// Takes a few nanoseconds and makes no system call. A cancelled fiber unwinds here. Outside a fiber, yields the
/// thread.
#[inline]
pub fn yield_now() {
    if !yield_fiber() {
        std::thread::yield_now();
    }
}

/// Waits for an [`unpark`](crate::Fiber::unpark). Returns immediately if there has been one since the last `park`.
///
/// Acquire: everything written before the `unpark` is visible afterwards. There are no spurious returns.
///
/// ```
/// use millstream_fiber::{Options, Runtime, Threads, park};
///
/// let runtime = Runtime::start(Options::new(Threads::One))?;
/// let parked = runtime.spawn(|| park());
/// parked.fiber().unpark();
/// parked.join().unwrap();
/// # Ok::<(), millstream_fiber::StartError>(())
/// ```
#[track_caller]
pub fn park() {
    park_until(None);
}

/// Waits for an [`unpark`](crate::Fiber::unpark), for at most `timeout`. Returns whether the fiber was unparked.
#[track_caller]
pub fn park_timeout(timeout: Duration) -> bool {
    park_until(deadline_after(timeout))
}

#[track_caller]
fn park_until(deadline: Option<Instant>) -> bool {
    let fiber = current();
    loop {
        if fiber.take_permit() {
            return true;
        }
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return false;
        }
        fiber.waiter().block(Reason::Park, deadline);
    }
}

/// Waits for at least `duration`. An `unpark` during the sleep does not end it, but makes the next [`park`] return immediately.
///
/// A worker with other fibers to run checks its timers after every 16 turns of its fibers. While a fiber of the worker waits
/// for a descriptor, timers are late by up to a millisecond more.
#[track_caller]
pub fn sleep(duration: Duration) {
    let fiber = current();
    let deadline = deadline_after(duration);
    while deadline.is_none_or(|deadline| Instant::now() < deadline) {
        fiber.waiter().block(Reason::Sleep, deadline);
    }
}

/// Returns the deadline that is `timeout` from now. If the clock cannot represent it, returns `None`, which means no deadline.
pub(crate) fn deadline_after(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}
