//! Containment of wakers that panic.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

/// Wakes a task and contains a panic of its waker: the panic hook has reported it, and the waking thread, which has
/// other tasks to wake and work of its own to finish, is not at fault.
pub(super) fn wake(waker: Waker) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
        // The payload's destructor may panic, too; that panic's payload is leaked.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(payload))).map_err(mem::forget);
    }
}
