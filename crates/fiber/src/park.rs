//! Yielding, parking and sleeping. Outside a fiber, each acts on the thread.

use std::time::{Duration, Instant};

use crate::handle::current;
use crate::scheduler::state::Reason;
use crate::waiter::yield_fiber;

/// Lets the other ready fibers of the worker run first.
///
/// A few nanoseconds and no system call. A cancelled fiber unwinds here. Outside a fiber, yields the thread.
pub fn yield_now() {
    if !yield_fiber() {
        std::thread::yield_now();
    }
}

/// Waits until [`unpark`](crate::Fiber::unpark); returns at once if that came since the last `park`.
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

/// Waits until [`unpark`](crate::Fiber::unpark) or for `timeout`. Returns whether it was unparked.
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

/// Waits for at least `duration`. An `unpark` meanwhile is kept for the next [`park`].
///
/// A worker with other fibers to run looks at its timers every 16 turns.
#[track_caller]
pub fn sleep(duration: Duration) {
    let fiber = current();
    let deadline = deadline_after(duration);
    while deadline.is_none_or(|deadline| Instant::now() < deadline) {
        fiber.waiter().block(Reason::Sleep, deadline);
    }
}

/// The moment after `timeout`; `None`, which is never, if no clock gets that far.
pub(crate) fn deadline_after(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}
