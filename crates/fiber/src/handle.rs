//! A fiber, seen from outside: its name, its number, the way to wake it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Release};

use crate::scheduler::core::Core;
use crate::waiter::Waiter;

/// A fiber, or a thread outside fibers. Cloning is cheap; a clone does not keep the fiber from ending.
#[derive(Clone)]
pub struct Fiber {
    waiter: Waiter,
}

/// The fiber that runs this code; outside fibers, the thread.
#[must_use]
pub fn current() -> Fiber {
    Fiber { waiter: Waiter::current() }
}

/// Whether the calling fiber is cancelled. `false` outside a fiber. Wait-free.
///
/// For long computations, and for programs that abort on panic, which cannot unwind a fiber.
#[must_use]
pub fn is_cancelled() -> bool {
    match current().waiter {
        Waiter::Fiber(core) => core.is_cancelled(),
        Waiter::Thread(_) => false,
    }
}

impl Fiber {
    pub(crate) fn of(core: &Arc<Core>) -> Self {
        Fiber { waiter: Waiter::Fiber(Arc::clone(core)) }
    }

    /// The name given to the [builder](crate::Builder::name), or the thread's.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match &self.waiter {
            Waiter::Fiber(core) => core.name.as_deref(),
            Waiter::Thread(thread) => thread.thread.name(),
        }
    }

    /// The fiber's number, unique in the process; `None` for a thread.
    #[must_use]
    pub fn id(&self) -> Option<u64> {
        match &self.waiter {
            Waiter::Fiber(core) => Some(core.id),
            Waiter::Thread(_) => None,
        }
    }

    /// Ends the fiber's [`park`](crate::park), or its next one if it is not parked. From any thread.
    ///
    /// Release: everything written before is visible after that `park`. Lock-free; a system call only if the fiber's
    /// worker sleeps.
    pub fn unpark(&self) {
        let permit = match &self.waiter {
            Waiter::Fiber(core) => &core.permit,
            Waiter::Thread(thread) => &thread.permit,
        };
        // Release pairs with the acquire in `take_permit`. An exchange, so that each of two unparks is seen.
        permit.swap(true, Release);
        self.waiter.wake();
    }

    /// Consumes an unpark. For the fiber itself.
    pub(crate) fn take_permit(&self) -> bool {
        match &self.waiter {
            Waiter::Fiber(core) => core.permit.swap(false, Acquire),
            Waiter::Thread(thread) => thread.permit.swap(false, Acquire),
        }
    }

    pub(crate) fn waiter(&self) -> &Waiter {
        &self.waiter
    }
}

impl fmt::Debug for Fiber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fiber").field("id", &self.id()).field("name", &self.name()).finish()
    }
}
