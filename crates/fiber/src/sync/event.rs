//! An event: a flag that fibers and threads can wait for.

use std::fmt;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};
use std::time::{Duration, Instant};

use super::wait_list::{Place, WaitList};
use crate::park::deadline_after;
use crate::scheduler::state::Reason;
use crate::waiter::Waiter;

/// A flag that fibers and threads can wait for. As long as the flag is set, waits return immediately.
///
/// ```
/// use std::sync::Arc;
/// use millstream_fiber::{Options, Runtime, Threads};
/// use millstream_fiber::sync::Event;
///
/// let runtime = Runtime::start(Options::new(Threads::One))?;
/// let ready = Arc::new(Event::new());
/// let waiters = [(); 3].map(|()| {
///     let ready = Arc::clone(&ready);
///     runtime.spawn(move || ready.wait())
/// });
/// ready.set();
/// waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
/// # Ok::<(), millstream_fiber::StartError>(())
/// ```
pub struct Event {
    is_set: AtomicBool,
    waiters: WaitList,
}

impl Event {
    /// Returns an event that is not set.
    #[must_use]
    pub const fn new() -> Self {
        Event { is_set: AtomicBool::new(false), waiters: WaitList::new() }
    }

    /// Sets the event and wakes all waiters. Release: waiters see everything written before. Locks a mutex briefly.
    pub fn set(&self) {
        self.is_set.store(true, Release);
        self.waiters.wake_all();
    }

    /// Resets the event. A waiter that [`set`](Self::set) has woken may see the reset before it returns, and then continues to
    /// wait.
    pub fn reset(&self) {
        self.is_set.store(false, Release);
    }

    /// Returns whether the event is set. Acquire; wait-free.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.is_set.load(Acquire)
    }

    /// Waits until the event is set.
    #[track_caller]
    pub fn wait(&self) {
        self.wait_until(None);
    }

    /// Waits until the event is set, for at most `timeout`. Returns whether it was set.
    #[track_caller]
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        self.wait_until(deadline_after(timeout))
    }

    #[track_caller]
    fn wait_until(&self, deadline: Option<Instant>) -> bool {
        if self.is_set() {
            return true;
        }
        let waiter = Waiter::current();
        let mut place = Place::new(&self.waiters);
        while !place.enter_unless(&waiter, || self.is_set()) {
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return false;
            }
            waiter.block(Reason::Event, deadline);
        }
        true
    }
}

impl Default for Event {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event").field("is_set", &self.is_set()).finish()
    }
}
