//! Wakers that panic.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Wakes a task. A panic of its waker ends here: the panic hook has reported it, and the thread that wakes, which has
/// other tasks to wake and work of its own to finish, is not the one at fault.
pub(super) fn wake(waker: Waker) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
        // The payload's destructor may panic, too; the payload of that panic is leaked.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(payload))).map_err(mem::forget);
    }
}
