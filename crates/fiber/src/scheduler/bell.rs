//! The bell of a worker. A ring ends the worker's sleep, in the poller or on the event count.
//!
//! A worker whose fibers wait for descriptors sleeps in its poller; any other worker sleeps on its event count. A ring
//! increments the count. If the worker sleeps in the poller, or is about to, the ring also sounds an *alarm*: a descriptor that
//! the poller watches. No ring is lost. Before the worker sleeps in the poller, it sets a flag and then compares the count with
//! its snapshot. A ring increments the count and then reads the flag. A fence on each side orders these four accesses so that
//! at least one side sees the other's write.

use std::time::Instant;

use millstream_sync::eventcount::{EventCount, Key, SpinPolicy, Waited};

use crate::primitive::{
    AtomicBool,
    Ordering::{Relaxed, SeqCst},
    fence,
};

/// Ends a sleep in the poller. If the sleep has not begun yet, it ends as soon as it begins.
pub(crate) trait Alarm {
    /// Ends the sleep. Callable by any thread.
    fn sound(&self);
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Bell<A> {
    rings: EventCount,
    in_poller: AtomicBool,
    pub(super) alarm: A,
}

impl<A: Alarm> Bell<A> {
    pub(crate) fn new(alarm: A) -> Self {
        Bell { rings: EventCount::new(), in_poller: AtomicBool::new(false), alarm }
    }

    /// Ends the worker's sleep. If the worker is awake and has taken its snapshot already, its next sleep ends immediately.
    pub(crate) fn ring(&self) {
        self.rings.increment();
        // Pairs with the fence in `sleep_in_poller`.
        fence(SeqCst);
        if self.in_poller.load(Relaxed) {
            self.alarm.sound();
        }
    }

    /// Returns a snapshot of the number of rings. A worker first takes a snapshot, then checks for work, and then sleeps with the
    /// snapshot.
    pub(crate) fn snapshot(&self) -> Key {
        self.rings.snapshot()
    }

    /// Returns whether the bell has rung since the snapshot.
    pub(crate) fn has_rung(&self, key: Key) -> bool {
        self.rings.has_changed(key)
    }

    /// Sleeps until the bell has rung since the snapshot, or until the deadline.
    pub(crate) fn sleep(&self, key: Key, deadline: Option<Instant>, policy: SpinPolicy) -> Waited {
        self.rings.wait_with(key, deadline, policy)
    }

    /// Calls `poll`, which sleeps in the poller unless its argument says that the bell has rung since the snapshot. A ring
    /// during the call sounds the alarm.
    pub(crate) fn sleep_in_poller(&self, key: Key, poll: impl FnOnce(bool)) {
        self.in_poller.store(true, Relaxed);
        // Pairs with the fence in `ring`.
        fence(SeqCst);
        poll(self.has_rung(key));
        self.in_poller.store(false, Relaxed);
    }
}
