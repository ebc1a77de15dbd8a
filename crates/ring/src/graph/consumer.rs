//! Taking events in order, and the loop of a handler's thread.

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

/// Where an event stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Its number, counted from the first event of the ring. Numbers of events that were given up are not used again.
    pub position: u64,
    /// Whether the handler may have to wait for the next event: a good moment to flush what it has gathered.
    pub ends_batch: bool,
}

/// How a handler's thread ended: at which event it panicked, and with what.
pub(super) type Outcome = Option<(u64, Box<dyn Any + Send>)>;

/// One member of a consuming party. It leaves when it is dropped.
#[derive(Debug)]
pub(super) struct Consumer<E, P: SequencerParts, C: SequencerParts> {
    core: Arc<Core<E, P>>,
    party: Arc<Party<C>>,
    /// Without those that had left when it looked last.
    follows: RefCell<Follows>,
    hand: C::Hand,
    /// The most events that are completed together: those behind should not wait for too many.
    batch_most: u64,
}

/// How a wait for events ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waited {
    Ready,
    TimedOut,
    /// There are no producers any more, and everything they published was consumed.
    Ended,
}

impl<E, P: Sequencer, C: Sequencer> Consumer<E, P, C> {
    pub(super) fn new(core: Arc<Core<E, P>>, party: Arc<Party<C>>, follows: Follows, start: u64) -> Self {
        let hand = party.own.hand(start);
        // A pool's member takes events one by one: another can have the next, and a panic loses no more than one.
        let batch_most = if C::MANY { 1 } else { (core.slots.capacity() / 4).max(1) };
        Consumer { core, party, follows: RefCell::new(follows), hand, batch_most }
    }

    /// Up to where it may consume, all before `from` being free.
    fn free_until(&self, from: u64) -> u64 {
        self.follows.borrow_mut().completed_forgetting(from)
    }

    fn available(&self) -> u64 {
        self.party.own.available(&self.hand, |from| self.free_until(from))
    }

    /// Calls `handle` with the slot of each event of a batch, `most` at most; returns how many there were, given-up ones included.
    ///
    /// If `handle` panics, the events before count as consumed; of a pool also the one it panicked at, which is a batch by itself.
    pub(super) fn consume(&self, most: u64, handle: impl FnMut(&UnsafeCell<E>, Place)) -> u64 {
        self.consume_of(most, |from| self.free_until(from), handle)
    }

    /// As [`consume`](Self::consume), for who would wait anyway and may as well let events gather before it looks for more.
    fn consume_gathered(&self, handle: impl FnMut(&UnsafeCell<E>, Place)) -> u64 {
        let core = &*self.core;
        let look = |from| core.arrivals.look_again(from, core.slots.capacity(), || self.free_until(from));
        self.consume_of(u64::MAX, look, handle)
    }

    /// Consumes what `look` finds.
    fn consume_of(&self, most: u64, look: impl Fn(u64) -> u64, mut handle: impl FnMut(&UnsafeCell<E>, Place)) -> u64 {
        let Some(batch) = self.party.own.claim(&self.hand, 1, most.min(self.batch_most), look) else { return 0 };
        if batch.is_empty() {
            // Of events that are there none was asked for.
            return 0;
        }
        let producers = &self.core.producers;
        // The last event that was not given up: the last of all, which takes no search, if none ever was.
        let last = batch.clone().rev().find(|&position| !producers.is_skipped(position)).unwrap_or(batch.start);
        let mut passing = Passing { consumer: self, at: batch.start, batch: batch.clone() };
        let mut pass = |position, ends_batch| {
            if !producers.is_skipped(position) {
                handle(self.core.slots.at(position), Place { position, ends_batch });
            }
            passing.at = position + 1;
        };
        // The last one apart: a loop whose every turn asks whether it is the last takes half as long again.
        (batch.start..last).for_each(|position| pass(position, false));
        pass(last, true);
        passing.at = batch.end;
        batch.end - batch.start
    }

    /// Whether there is something to consume; `None` if not yet.
    fn look(&self) -> Option<Waited> {
        let core = &*self.core;
        match self.available() {
            0 if core.has_producers() => None,
            0 => {
                // Everything is published now. What is behind a gap, left by a claim that was leaked, never comes.
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
                    // One of us was woken for each event, but events become visible in order: one that was
                    // completed behind a gap woke somebody who could not see it.
                    core.arrivals.pass_on();
                }
                Some(Waited::Ready)
            }
        }
    }

    /// Waits until there is something to consume.
    pub(super) fn wait(&self, deadline: Option<Instant>) -> Waited {
        let look = || self.look();
        self.core
            .arrivals
            .wait(deadline, false, |sleeps| self.core.found_nothing(sleeps), look, look)
            .unwrap_or(Waited::TimedOut)
    }

    /// Whether there is something to consume, without waiting.
    pub(super) fn peek(&self) -> Waited {
        self.look().unwrap_or(Waited::TimedOut)
    }

    /// Waits as a task until there is something to consume.
    pub(super) async fn wait_async(&mut self) -> Waited {
        let core = Arc::clone(&self.core);
        // Exclusive, for the future may go to another thread with it.
        core.arrivals.bell.wait_async(|| (), move || self.look()).await
    }

    /// Handles all events to the end, or to a panic of `handle`; returns where and what that was. Leaves, and drops `handle` after
    /// that: what it has captured may publish, or wait for somebody who does, and then nobody must wait for us. It may panic, too.
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
        // Of two panics the first says why.
        handled.and(dropped).err().map(|panic| (at, panic))
    }

    fn consume_all(&self, mut handle: impl FnMut(&UnsafeCell<E>, Place)) {
        while self.consume_gathered(&mut handle) > 0 || self.wait(None) == Waited::Ready {}
    }
}

impl<E, P: SequencerParts, C: SequencerParts> Drop for Consumer<E, P, C> {
    /// Leaves. If nobody of its party is left, nobody waits for that any more.
    fn drop(&mut self) {
        if self.party.leave(self.follows.take()) {
            self.core.arrivals.changed(|| ());
            // The fence of that has come before, so tasks and threads that are missed here see that we have left.
            self.core.room.wake_all();
            // Last: it may wait for a producer that is preempted. Who was woken need not, for it is the party that says that it has left.
            self.core.gate.forget_who_left();
        }
    }
}

/// A batch that is being consumed; completes what was when it is dropped, also by a panic.
struct Passing<'a, E, P: Sequencer, C: Sequencer> {
    consumer: &'a Consumer<E, P, C>,
    batch: Range<u64>,
    at: u64,
}

impl<E, P: Sequencer, C: Sequencer> Drop for Passing<'_, E, P, C> {
    fn drop(&mut self) {
        // A claim of one among many must be completed as a whole.
        let end = if C::MANY { self.batch.end } else { self.at };
        let consumer = self.consumer;
        consumer.party.own.complete(self.batch.start..end);
        consumer.core.consumed(end, || consumer.hand.has_completed(end));
    }
}
