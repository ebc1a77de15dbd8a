//! Waiting for several rings at once.

use std::sync::Arc;
use std::time::Instant;

use super::notifier::{Notifier, SharedNotifier};

/// One event count for the arrivals of several rings.
///
/// An event in any ring that was made with the set wakes the set's waiters. There is no list of rings to go through:
/// `check` asks the rings of interest to the caller, in the order that the caller prefers.
///
/// Its limits:
/// - It has no strategy, and ignores those of its rings: its waiters sleep at once. An event takes a few µs to reach
///   its receiver, and waiting takes no CPU.
/// - It wakes for events, not for room: a thread that waits to *send* to one of several rings cannot use it.
/// - A ring is in the set with which it was [made](crate::Options::wait_set), or in none, for its whole life.
/// - An event wakes all waiters of the set, because their rings may differ. If one ring has many receivers, it is
///   better not to use a set.
///
/// ```
/// use millstream_ring::{Options, WaitSet, channel};
///
/// let set = WaitSet::new();
/// let (urgent, urgent_rx) = channel::mpsc(Options::new(16).wait_set(&set));
/// let (normal, normal_rx) = channel::mpsc(Options::new(16).wait_set(&set));
/// normal.send("later").unwrap();
/// urgent.send("now").unwrap();
/// let next = || set.wait(|| urgent_rx.try_recv().or_else(|_| normal_rx.try_recv()).ok());
/// assert_eq!((next(), next()), ("now", "later"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct WaitSet {
    pub(crate) notifier: SharedNotifier,
}

impl WaitSet {
    /// A new set, to which no ring belongs yet.
    #[must_use]
    pub fn new() -> Self {
        WaitSet { notifier: Arc::new(Notifier::new()) }
    }

    /// Sleeps until `check` returns a value; calls it again after each arrival.
    ///
    /// Blocks, and uses no CPU while nothing arrives. An arrival in any of the rings after a check ends the sleep. `check`
    /// is also called when a ring is disconnected, and should notice that.
    pub fn wait<R>(&self, check: impl FnMut() -> Option<R>) -> R {
        self.notifier.wait(None, check).expect("without a deadline only success ends the wait")
    }

    /// Sleeps until `check` returns a value or the deadline has passed; `None` if it has returned no value by then.
    pub fn wait_deadline<R>(&self, deadline: Instant, check: impl FnMut() -> Option<R>) -> Option<R> {
        self.notifier.wait(Some(deadline), check)
    }

    /// Waits as a task until `check` returns a value.
    pub async fn wait_async<R>(&self, check: impl FnMut() -> Option<R>) -> R {
        self.notifier.wait_async(|| (), check).await
    }
}
