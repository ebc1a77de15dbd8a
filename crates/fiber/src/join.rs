//! Joins: waiting for a fiber to end.

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::error::JoinError;
use crate::handle::Fiber;
use crate::outcome::Outcome;
use crate::scheduler::core_ref::CoreRef;
use crate::scheduler::joiner::{Joiner, is_in_cycle};
use crate::scheduler::local::Local;
use crate::scheduler::state::Reason;
use crate::waiter::{ThreadWaiter, suspend};

/// An owned permission to join a fiber and take its result. Dropping the handle detaches the fiber.
pub struct JoinHandle<T> {
    fiber: Fiber,
    /// Lives as long as the fiber's control block.
    outcome: NonNull<Outcome<T>>,
    owns: PhantomData<T>,
}

// SAFETY: the handle may move the result out or drop it, and the result is `Send`. A shared handle gives no access to the result.
unsafe impl<T: Send> Send for JoinHandle<T> {}
// SAFETY: as for `Send`.
unsafe impl<T: Send> Sync for JoinHandle<T> {}

impl<T> JoinHandle<T> {
    /// # Safety
    /// `outcome` belongs to the fiber, and this is its only handle.
    pub(crate) unsafe fn new(core: CoreRef, outcome: NonNull<Outcome<T>>) -> Self {
        JoinHandle { fiber: Fiber::of(core), outcome, owns: PhantomData }
    }

    fn core(&self) -> &CoreRef {
        self.fiber.core().expect("it is the handle of a fiber")
    }

    /// Waits for the fiber to end and returns its result. The wait suspends a fiber and blocks a thread.
    ///
    /// Everything the fiber wrote is visible afterwards.
    ///
    /// # Errors
    /// Returns an error if the fiber panicked, was cancelled, or never ran because it got no stack.
    ///
    /// Also returns an error if the fiber itself waits to join the calling fiber, directly or through up to 1024 others. At least
    /// one fiber of such a cycle gets the error. Cycles through scopes, channels or threads are not detected.
    #[track_caller]
    pub fn join(self) -> Result<T, JoinError> {
        wait_for_end(self.core())?;
        // SAFETY: the fiber has ended, and this is its only handle.
        unsafe { self.outcome.as_ref().take() }
    }

    /// Returns whether the fiber has ended, so that [`join`](Self::join) returns immediately. Wait-free.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.core().joiner.has_ended()
    }

    /// Cancels the fiber and returns immediately. See [the crate's docs](crate#cancellation).
    pub fn cancel(&self) {
        self.core().cancel();
    }

    /// Returns the fiber.
    #[must_use]
    pub fn fiber(&self) -> &Fiber {
        &self.fiber
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        // SAFETY: the outcome lives as long as the reference in the handle.
        unsafe { self.outcome.as_ref() }.detach();
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").field("fiber", &self.fiber).finish_non_exhaustive()
    }
}

/// Waits for a fiber to end.
#[track_caller]
fn wait_for_end(target: &CoreRef) -> Result<(), JoinError> {
    if target.joiner.has_ended() {
        return Ok(());
    }
    let in_fiber = Local::with(|_, fiber| target.joiner.enter(fiber).then(|| is_in_cycle(fiber, target)));
    let (thread, is_entered, is_in_cycle) = match in_fiber {
        Some(entered) => (None, entered.is_some(), entered == Some(true)),
        None => {
            let thread = ThreadWaiter::current();
            let is_entered = target.joiner.enter_thread(thread.clone());
            (Some(thread), is_entered, false)
        }
    };
    if !is_entered {
        return Ok(());
    }
    let _place = Place(&target.joiner);
    if is_in_cycle {
        return Err(JoinError::Cycle);
    }
    while !target.joiner.has_ended() {
        match &thread {
            None => suspend(Reason::Join, None, std::panic::Location::caller()),
            Some(thread) => thread.block(None),
        }
    }
    Ok(())
}

/// Removes the joiner when the wait ends, even by unwinding.
struct Place<'a>(&'a Joiner);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}
