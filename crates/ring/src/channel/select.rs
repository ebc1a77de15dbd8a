//! Waiting until one of several channels is ready to receive from or to send to.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use millstream_sync::eventcount::Waited;

use super::{Receiver, Sender};
use crate::sequencer::Sequencer;

/// The number of checks, with a yield after each, before the thread sleeps.
const CHECKS: u32 = 16;

/// A set of operations, each on one end of a channel. It waits until one of the operations is ready.
///
/// An operation is *ready* when it would not wait: a receive when there is a value, a send when there is room, and both
/// when the other side is gone. The caller then performs the operation with a `try_` method. If another thread that
/// shares the end is quicker, the caller waits again. Channels need no preparation, the set may change between two
/// calls, and an end may be in several sets.
///
/// Of several ready operations, each is picked with equal probability; a set made by [`new_biased`](Self::new_biased)
/// picks the first. A wait checks and yields for some µs, then sleeps. A check takes a few ns per operation; for a
/// sleep, each operation makes one allocation and briefly takes a lock.
///
/// Tasks need no such set: `recv_async` and `send_async` may be dropped while they wait, so they work with the
/// `select!` of any async library.
///
/// ```
/// use std::time::Duration;
/// use millstream_ring::channel::{self, Select};
///
/// let (orders, orders_rx) = channel::mpsc::<u32>(8);
/// let (replies, replies_rx) = channel::mpsc::<u32>(1);
/// orders.send(7).unwrap();
///
/// let mut select = Select::new();
/// let receives = select.recv(&orders_rx);
/// let replies_are_wanted = select.send(&replies);
/// let mut backlog = Vec::new();
/// while let Some(ready) = select.ready_timeout(Duration::from_millis(1)) {
///     if ready == receives {
///         backlog.extend(orders_rx.try_recv());
///     } else if let Some(order) = backlog.pop() {
///         replies.try_send(order).unwrap();
///     } else {
///         select.remove(replies_are_wanted); // no order to send for now
///     }
///     # if replies_rx.try_recv().is_ok() { break }
/// }
/// ```
#[derive(Clone, Default)]
pub struct Select<'a> {
    operations: Vec<(usize, &'a dyn Operation)>,
    next: usize,
    biased: bool,
}

/// One end of a channel, and the event for which it waits.
trait Operation {
    fn is_ready(&self) -> bool;

    /// Waits until the operation may be ready. Then wakes another waiter for the same event.
    fn wait(&self) -> Pin<Box<dyn Future<Output = ()> + '_>>;
}

impl<T, P: Sequencer, C: Sequencer> Operation for Receiver<T, P, C> {
    fn is_ready(&self) -> bool {
        self.core.value_or_closed(&self.hand).is_some()
    }

    fn wait(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(async {
            _ = self.core.wait_for_value_async(&self.hand).await;
            // The caller may not receive the value, and no other receiver was woken for it. So this wakes another one.
            if C::MANY {
                self.core.arrivals.pass_on();
            }
        })
    }
}

impl<T, P: Sequencer, C: Sequencer> Operation for Sender<T, P, C> {
    fn is_ready(&self) -> bool {
        self.core.has_room_or_closed(&self.hand)
    }

    fn wait(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
        Box::pin(async {
            self.core.wait_for_room_async(&self.hand).await;
            // The caller may not use the slot, and no other sender was woken for it. So this wakes another one.
            if P::MANY {
                self.core.free_space.pass_on();
            }
        })
    }
}

impl<'a> Select<'a> {
    /// An empty set.
    #[must_use]
    pub fn new() -> Self {
        Select::default()
    }

    /// An empty set that prefers operations added earlier.
    #[must_use]
    pub fn new_biased() -> Self {
        Select { biased: true, ..Select::default() }
    }

    /// Adds a receive from a channel; returns the operation's index. No index is used twice.
    pub fn recv<T, P: Sequencer, C: Sequencer>(&mut self, receiver: &'a Receiver<T, P, C>) -> usize {
        self.add(receiver)
    }

    /// Adds a send to a channel; returns the operation's index.
    pub fn send<T, P: Sequencer, C: Sequencer>(&mut self, sender: &'a Sender<T, P, C>) -> usize {
        self.add(sender)
    }

    fn add(&mut self, operation: &'a dyn Operation) -> usize {
        let index = self.next;
        self.next += 1;
        self.operations.push((index, operation));
        index
    }

    /// Removes an operation.
    ///
    /// # Panics
    /// If no operation has this index.
    pub fn remove(&mut self, index: usize) {
        let place = self.operations.iter().position(|(own, _)| *own == index);
        self.operations.remove(place.unwrap_or_else(|| panic!("no operation of this set has the index {index}")));
    }

    /// An operation that is ready now, if there is one. Never waits.
    #[must_use]
    pub fn try_ready(&self) -> Option<usize> {
        let mut ready = self.operations.iter().filter(|(_, operation)| operation.is_ready()).map(|(index, _)| *index);
        if self.biased {
            return ready.next();
        }
        // The nth ready operation replaces the earlier choice with probability 1/n, so all are equally likely.
        ready.enumerate().filter(|(before, _)| random().is_multiple_of(before + 1)).map(|(_, index)| index).last()
    }

    /// Waits until an operation is ready.
    ///
    /// # Panics
    /// If the set is empty: the wait would not end.
    #[must_use]
    pub fn ready(&self) -> usize {
        assert!(!self.operations.is_empty(), "a set without operations is never ready");
        self.wait(None).expect("without a deadline only readiness ends the wait")
    }

    /// Waits until an operation is ready, for at most `timeout`; see [`ready_deadline`](Self::ready_deadline).
    #[must_use]
    pub fn ready_timeout(&self, timeout: Duration) -> Option<usize> {
        // A deadline beyond the clock's range means no deadline.
        match Instant::now().checked_add(timeout) {
            Some(deadline) => self.ready_deadline(deadline),
            None => self.wait(None),
        }
    }

    /// Waits until an operation is ready or the deadline has passed; `None` if none is ready by then.
    #[must_use]
    pub fn ready_deadline(&self, deadline: Instant) -> Option<usize> {
        self.wait(Some(deadline))
    }

    fn wait(&self, deadline: Option<Instant>) -> Option<usize> {
        loop {
            for _ in 0..CHECKS {
                if let Some(ready) = self.try_ready() {
                    return Some(ready);
                }
                thread::yield_now();
            }
            let has_passed = || deadline.is_some_and(|deadline| deadline <= Instant::now());
            // Another thread may have been quicker and taken the value or the slot, any number of times.
            if self.sleep(deadline) == Waited::TimedOut || has_passed() {
                return self.try_ready();
            }
        }
    }

    /// Waits for all operations as a task whose waker unparks this thread.
    fn sleep(&self, deadline: Option<Instant>) -> Waited {
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut context = Context::from_waker(&waker);
        let mut waits: Vec<_> = self.operations.iter().map(|(_, operation)| operation.wait()).collect();
        loop {
            // A wait that was woken but not polled passes its wake-up on when it is dropped.
            if waits.iter_mut().any(|wait| wait.as_mut().poll(&mut context).is_ready()) {
                return Waited::Changed;
            }
            match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                None => thread::park(),
                Some(Duration::ZERO) => return Waited::TimedOut,
                Some(left) => thread::park_timeout(left),
            }
        }
    }
}

impl fmt::Debug for Select<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let indices: Vec<_> = self.operations.iter().map(|(index, _)| index).collect();
        f.debug_struct("Select").field("indices", &indices).field("biased", &self.biased).finish()
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The next number of this thread's pseudo-random sequence (xorshift), which is good enough for fairness.
fn random() -> usize {
    thread_local!(static STATE: Cell<u32> = const { Cell::new(0x9E37_79B9) });
    STATE.with(|state| {
        let mut next = state.get();
        next ^= next << 13;
        next ^= next >> 17;
        next ^= next << 5;
        state.set(next);
        next as usize
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// An operation that is woken for values that other threads always receive first.
    struct AlwaysTooLate;

    impl Operation for AlwaysTooLate {
        fn is_ready(&self) -> bool {
            false
        }

        fn wait(&self) -> Pin<Box<dyn Future<Output = ()> + '_>> {
            Box::pin(std::future::ready(()))
        }
    }

    #[test]
    fn a_deadline_ends_a_wait_whose_wake_ups_come_too_late() {
        let mut select = Select::new();
        select.add(&AlwaysTooLate);
        assert_eq!(select.ready_timeout(Duration::from_millis(1)), None);
    }
}
