//! Consuming events in order, and the loop of a handler's thread.

use std::any::Any;
use std::cell::RefCell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use super::core::Core;
use super::party::{Follows, Party};
use crate::primitive::UnsafeCell;
use crate::sequencer::{Hand, Sequencer, SequencerParts};

/// The position of an event, and whether it ends a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The event's number, counted from the first event of the ring. Numbers of events that were given up are not
    /// reused.
    pub position: u64,
    /// Whether the handler may have to wait for the next event. If so, this is a good moment to flush accumulated work.
    pub ends_batch: bool,
}

/// The result of a handler's thread: if the handler panicked, the position of the event and the payload.
pub(super) type Outcome = Option<(u64, Box<dyn Any + Send>)>;

/// One member of a party of consumers. Dropping the member makes it leave.
#[derive(Debug)]
pub(super) struct Consumer<E, P: SequencerParts, C: SequencerParts> {
    core: Arc<Core<E, P>>,
    party: Arc<Party<C>>,
    /// The parties that this member follows, without those that had left at its last check.
    follows: RefCell<Follows>,
    hand: C::Hand,
    /// The maximum number of events that are completed together. The limit keeps followers from waiting for too many
    /// events at once.
    max_batch: u64,
}

/// The outcome of a wait for events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waited {
    Ready,
    TimedOut,
    /// All producers are gone, and all their events have been consumed.
    Ended,
}

impl<E, P: Sequencer, C: Sequencer> Consumer<E, P, C> {
    pub(super) fn new(core: Arc<Core<E, P>>, party: Arc<Party<C>>, follows: Follows, start: u64) -> Self {
        let hand = party.own.hand(start);
        // A pool's member takes one event at a time. So another member can take the next event, and a panic loses only
        // one event.
        let max_batch = if C::MANY { 1 } else { (core.slots.capacity() / 4).max(1) };
        Consumer { core, party, follows: RefCell::new(follows), hand, max_batch }
    }

    /// The position up to which this member may consume. The caller knows that it may consume all positions before
    /// `from`.
    fn free_until(&self, from: u64) -> u64 {
        self.follows.borrow_mut().completed_forgetting(from)
    }

    fn available(&self) -> u64 {
        self.party.own.available(&self.hand, |from| self.free_until(from))
    }

    /// Calls `handle` with the slot of each event of a batch of at most `most`; returns the number of positions,
    /// including those given up.
    ///
    /// If `handle` panics at an event, the earlier events count as consumed. In a pool, a batch is one event, which
    /// counts as consumed, too.
    pub(super) fn consume(&self, most: u64, handle: impl FnMut(&UnsafeCell<E>, Place)) -> u64 {
        self.consume_of(most, |from| self.free_until(from), handle)
    }

    /// Like [`consume`](Self::consume), for a consumer that would otherwise wait: it may first pause until several
    /// events are there.
    fn consume_gathered(&self, handle: impl FnMut(&UnsafeCell<E>, Place)) -> u64 {
        let core = &*self.core;
        let frontier = |from| core.arrivals.check_again(from, core.slots.capacity(), || self.free_until(from));
        self.consume_of(u64::MAX, frontier, handle)
    }

    /// Consumes the events that are available according to `frontier`.
    fn consume_of(
        &self,
        most: u64,
        frontier: impl Fn(u64) -> u64,
        mut handle: impl FnMut(&UnsafeCell<E>, Place),
    ) -> u64 {
        let Some(batch) = self.party.own.claim(&self.hand, 1, most.min(self.max_batch), frontier) else { return 0 };
        if batch.is_empty() {
            // There are events, but the caller asked for none.
            return 0;
        }
        let producers = &self.core.producers;
        // The last position that was not given up. If none was ever given up, the search ends at the first step.
        let last = batch.clone().rev().find(|&position| !producers.is_skipped(position)).unwrap_or(batch.start);
        let mut passing = Passing { consumer: self, at: batch.start, batch: batch.clone() };
        let mut pass = |position, ends_batch| {
            if !producers.is_skipped(position) {
                handle(self.core.slots.at(position), Place { position, ends_batch });
            }
            passing.at = position + 1;
        };
        // The last event is handled outside the loop: a check for it in every iteration would slow the loop by half.
        (batch.start..last).for_each(|position| pass(position, false));
        pass(last, true);
        passing.at = batch.end;
        batch.end - batch.start
    }

    /// Whether there is an event to consume, or the end has come; `None` if neither.
    fn check(&self) -> Option<Waited> {
        let core = &*self.core;
        match self.available() {
            0 if core.has_producers() => None,
            0 => {
                // No more events will be published. A leaked claim leaves a gap; events behind it never become visible.
                let next = self.party.own.claimed();
                match self.available() {
                    0 if core.producers.completed(next) <= next => Some(Waited::Ended),
                    0 => None,
                    _ => Some(Waited::Ready),
                }
            }
            gathered => {
                core.arrivals.gathered(gathered, core.slots.capacity());
                if gathered > 1 && C::MANY {
                    // Each event wakes one member, but events become visible in order. So an event that was completed
                    // behind a gap may have woken a member that could not see it yet. This wakes another member for
                    // that event.
                    core.arrivals.pass_on();
                }
                Some(Waited::Ready)
            }
        }
    }

    /// Waits until there is an event to consume.
    pub(super) fn wait(&self, deadline: Option<Instant>) -> Waited {
        let check = || self.check();
        self.core
            .arrivals
            .wait(deadline, false, || self.party.own.claimed(), || self.core.starved(), check, check)
            .unwrap_or(Waited::TimedOut)
    }

    /// Whether there is an event to consume, without waiting.
    pub(super) fn peek(&self) -> Waited {
        self.check().unwrap_or(Waited::TimedOut)
    }

    /// Waits as a task until there is an event to consume.
    pub(super) async fn wait_async(&mut self) -> Waited {
        let core = Arc::clone(&self.core);
        // The borrow is exclusive, so the future may move to another thread with the consumer.
        core.arrivals.notifier.wait_async(|| (), move || self.check()).await
    }

    /// Handles all events until the end or a panic of `handle`, and returns the panic. The consumer leaves before
    /// `handle` is dropped, because the destructors of the captured values may publish, or wait for a thread that
    /// publishes. That publication must not wait for this consumer. A destructor may also panic.
    pub(super) fn run(self, mut handle: impl FnMut(&UnsafeCell<E>, Place)) -> Outcome {
        let core = Arc::clone(&self.core);
        let mut at = 0;
        let handled = catch_unwind(AssertUnwindSafe(|| {
            self.consume_all(|event, place| {
                at = place.position;
                handle(event, place);
            });
        }));
        if handled.is_err() {
            core.handler_panicked();
        }
        drop(self);
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(handle)));
        if dropped.is_err() {
            core.handler_panicked();
        }
        // Of two panics, the first one is reported.
        handled.and(dropped).err().map(|panic| (at, panic))
    }

    fn consume_all(&self, mut handle: impl FnMut(&UnsafeCell<E>, Place)) {
        while self.consume_gathered(&mut handle) > 0 || self.wait(None) == Waited::Ready {}
    }
}

impl<E, P: SequencerParts, C: SequencerParts> Drop for Consumer<E, P, C> {
    /// Leaves. When its last member leaves, the party leaves, and other threads stop waiting for it.
    fn drop(&mut self) {
        if self.party.leave(self.follows.take()) {
            self.core.arrivals.notify_all(|| ());
            // This comes after the fence of `notify_all`, so tasks and threads that this call misses see that the party
            // has left.
            self.core.free_space.wake_all();
            // This comes last, because it may wait for a preempted producer. The threads woken above do not depend on
            // it: they see that the party has left.
            self.core.leaves.forget_departed();
        }
    }
}

/// A batch that is being consumed. Dropping it, even in a panic, completes the events consumed so far.
struct Passing<'a, E, P: Sequencer, C: Sequencer> {
    consumer: &'a Consumer<E, P, C>,
    batch: Range<u64>,
    at: u64,
}

impl<E, P: Sequencer, C: Sequencer> Drop for Passing<'_, E, P, C> {
    fn drop(&mut self) {
        // A pool's member must complete its claim as a whole.
        let end = if C::MANY { self.batch.end } else { self.at };
        let consumer = self.consumer;
        consumer.party.own.complete(self.batch.start..end);
        consumer.core.consumed(|| consumer.hand.has_completed(end));
    }
}
