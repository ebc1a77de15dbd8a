//! Handles to fibers. With a handle, any thread can identify a fiber and wake it.

use std::fmt;
use std::sync::atomic::Ordering::{Acquire, Release};

use crate::scheduler::core_ref::CoreRef;
use crate::scheduler::local::Local;
use crate::waiter::Waiter;

/// A fiber, or a thread outside fibers. Cloning is cheap, and a clone does not keep the fiber alive.
#[derive(Clone)]
pub struct Fiber {
    waiter: Waiter,
}

/// Returns the calling fiber or, outside fibers, the calling thread.
#[must_use]
pub fn current() -> Fiber {
    Fiber { waiter: Waiter::current() }
}

/// Returns whether the calling fiber is cancelled; `false` outside a fiber. Wait-free.
///
/// Call it in long computations, and in programs that abort on panic, in which a cancelled fiber cannot unwind.
#[must_use]
pub fn is_cancelled() -> bool {
    Local::with(|_, fiber| fiber.is_cancelled()) == Some(true)
}

/// Returns the depth to which the stack of the calling fiber has been touched, in bytes, rounded up to pages; `None` outside a
/// fiber. On a reused stack this includes the depth that earlier fibers reached. Makes one system call for every 256 pages of
/// the stack.
///
/// ```
/// use millstream_fiber::{Options, Runtime, stack_used_bytes};
///
/// let runtime = Runtime::start(Options::default())?;
/// let depth = runtime.spawn(stack_used_bytes).join().unwrap();
/// assert!(depth.is_some_and(|bytes| bytes >= 4096));
/// assert_eq!(stack_used_bytes(), None);
/// # Ok::<(), millstream_fiber::StartError>(())
/// ```
#[must_use]
pub fn stack_used_bytes() -> Option<usize> {
    Local::with(|local, fiber| {
        let [limit, _, top] = fiber.state.stack()?;
        Some(local.shared.pool.used_bytes((limit, top)))
    })?
}

impl Fiber {
    pub(crate) fn of(core: CoreRef) -> Self {
        Fiber { waiter: Waiter::Fiber(core) }
    }

    /// Returns the fiber; `None` if this is a thread.
    pub(crate) fn core(&self) -> Option<&CoreRef> {
        match &self.waiter {
            Waiter::Fiber(core) => Some(core),
            Waiter::Thread(_) => None,
        }
    }

    /// Returns the name given to the [builder](crate::Builder::name), or the thread's name.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match &self.waiter {
            Waiter::Fiber(core) => core.name.as_deref(),
            Waiter::Thread(thread) => thread.thread.name(),
        }
    }

    /// Returns the fiber's number, which is unique in the process; `None` for a thread.
    #[must_use]
    pub fn id(&self) -> Option<u64> {
        match &self.waiter {
            Waiter::Fiber(core) => Some(core.id),
            Waiter::Thread(_) => None,
        }
    }

    /// Sets the number of the work unit that the fiber serves, in place of the number that was set before. Dumps show the number,
    /// and so do reports of stalls and overflows. Has no effect on a thread. Wait-free.
    pub fn set_unit(&self, unit: Option<u64>) {
        if let Waiter::Fiber(core) = &self.waiter {
            core.set_unit(unit);
        }
    }

    /// Ends the fiber's [`park`](crate::park), or its next one if it is not parked. May be called from any thread.
    ///
    /// Release: everything written before this call is visible after that `park`. Lock-free; makes a system call only
    /// if the fiber's worker sleeps.
    pub fn unpark(&self) {
        let permit = match &self.waiter {
            Waiter::Fiber(core) => &core.permit,
            Waiter::Thread(thread) => &thread.permit,
        };
        // Release pairs with the acquire in `take_permit`. This is an exchange rather than a store, so that a park sees the
        // writes of every earlier unpark.
        permit.swap(true, Release);
        self.waiter.wake();
    }

    /// Consumes an unpark. Only the fiber itself may call it.
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
