//! The producer of a graph.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use thiserror::Error;

use super::claim::Claim;
use super::core::Core;
use crate::sequencer::{Multi, Sequencer};

/// Writes events in place and publishes them. In a ring for many producers it can be cloned, one clone for each thread.
///
/// When the last producer is dropped, the consumers handle the remaining published events and end.
#[derive(Debug)]
pub struct Producer<E, P: Sequencer> {
    pub(super) core: Arc<Core<E, P>>,
    producers: Arc<P>,
    hand: P::Hand,
}

/// There is no room now: the slowest consumer is a lap behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the ring is full: the slowest consumer is a lap behind")]
pub struct Full;

impl<E, P: Sequencer> Producer<E, P> {
    pub(super) fn first(core: Arc<Core<E, P>>) -> Self {
        let producers = Arc::clone(&core.producers);
        let hand = producers.hand(core.slots.capacity());
        Producer { core, producers, hand }
    }

    /// Writes one event, waiting for room as long as necessary, and publishes it.
    ///
    /// `write` gets the event with its values from the last lap. Release: consumers see everything written. If `write`
    /// panics, no event is published.
    pub fn publish(&mut self, write: impl FnOnce(&mut E)) {
        let mut claim = self.claim(1);
        write(claim.first());
        claim.publish();
    }

    /// Writes and publishes one event if there is room now. Never waits.
    ///
    /// # Errors
    /// If there is no room. `write` is then not called.
    pub fn try_publish(&mut self, write: impl FnOnce(&mut E)) -> Result<(), Full> {
        let mut claim = self.try_claim(1)?;
        write(claim.first());
        claim.publish();
        Ok(())
    }

    /// Writes and publishes `events` events, each time as many as there is room for. `write` also gets the index of
    /// each event, from 0.
    ///
    /// Events of other producers may be published between them.
    pub fn publish_many(&mut self, events: u64, mut write: impl FnMut(u64, &mut E)) {
        let mut written = 0;
        while written < events {
            let mut claim = self.claim_some(events - written);
            for event in &mut claim {
                write(written, event);
                written += 1;
            }
            claim.publish();
        }
    }

    /// Claims `events` consecutive positions, waiting for room.
    ///
    /// # Panics
    /// If `events` is zero or larger than the ring.
    pub fn claim(&mut self, events: u64) -> Claim<'_, E, P> {
        self.check(events);
        let claimed = self.claimed(events, events).or_else(|| self.wait_to_claim(events, events, None));
        self.held(claimed.expect("without a deadline only success ends the wait"))
    }

    /// Claims `events` consecutive positions, waiting for room until `deadline`.
    ///
    /// # Errors
    /// If the deadline has passed.
    ///
    /// # Panics
    /// If `events` is zero or larger than the ring.
    pub fn claim_deadline(&mut self, events: u64, deadline: Instant) -> Result<Claim<'_, E, P>, Full> {
        self.check(events);
        let claimed = self.claimed(events, events).or_else(|| self.wait_to_claim(events, events, Some(deadline)));
        claimed.map(|positions| self.held(positions)).ok_or(Full)
    }

    /// Claims `events` consecutive positions if they are free now. Never waits.
    ///
    /// # Errors
    /// If there is no room for all of them.
    ///
    /// # Panics
    /// If `events` is zero or larger than the ring.
    pub fn try_claim(&mut self, events: u64) -> Result<Claim<'_, E, P>, Full> {
        self.check(events);
        let claimed = self.claimed(events, events).ok_or(Full)?;
        Ok(self.held(claimed))
    }

    /// Claims `events` consecutive positions, waiting for room as a task.
    ///
    /// # Panics
    /// If `events` is zero or larger than the ring.
    pub async fn claim_async(&mut self, events: u64) -> Claim<'_, E, P> {
        self.check(events);
        let claimed = match self.claimed(events, events) {
            Some(claimed) => claimed,
            None => {
                let core = Arc::clone(&self.core);
                // The borrow is exclusive, so the future may move to another thread with the producer.
                let own = &mut *self;
                core.free_space.wait_async(move || own.claimed(events, events)).await
            }
        };
        self.held(claimed)
    }

    /// Whether a handler has panicked; in a pool, any member's handler. Wait-free: a load.
    ///
    /// This becomes true before the followers see any event that was not handled because of the panic. The event at
    /// which the handler panicked is an exception: it may reach the followers shortly before.
    ///
    /// ```
    /// use millstream_ring::graph::Builder;
    ///
    /// let mut ring = Builder::single(8, || 0u32);
    /// ring.handle(&[], |event, _| assert_ne!(*event, 3, "three is refused"));
    /// let (mut producer, running) = ring.start();
    /// let mut next = 0;
    /// while !producer.has_panicked() {
    ///     producer.publish(|event| *event = next);
    ///     next += 1;
    /// }
    /// drop(producer);
    /// assert_eq!(running.join().unwrap_err()[0].position, 3);
    /// ```
    #[must_use]
    pub fn has_panicked(&self) -> bool {
        self.core.has_panicked()
    }

    /// The number of slots.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.core.slots.capacity()
    }

    /// Claims as many positions as are free, from 1 to `most`; waits for the first.
    fn claim_some(&mut self, most: u64) -> Claim<'_, E, P> {
        let claimed = self.claimed(1, most).or_else(|| self.wait_to_claim(1, most, None));
        self.held(claimed.expect("without a deadline only success ends the wait"))
    }

    fn check(&self, events: u64) {
        let capacity = self.capacity();
        assert!((1..=capacity).contains(&events), "a claim has 1 to {capacity} positions, not {events}");
    }

    #[inline(always)]
    fn claimed(&self, least: u64, most: u64) -> Option<Range<u64>> {
        let core = &*self.core;
        let prepare = |claim, limit| core.fetch_ahead(claim, limit);
        let claim =
            self.producers.claim_prepared(&self.hand, least, most, |from| core.free_portion(from, most), prepare);
        claim.map(|(claim, ())| claim)
    }

    #[cold]
    #[inline(never)]
    fn wait_to_claim(&self, least: u64, most: u64, deadline: Option<Instant>) -> Option<Range<u64>> {
        self.core.free_space.wait(deadline, |portion| {
            let enough =
                portion <= least || self.producers.available(&self.hand, |from| self.core.free_until(from)) >= portion;
            if enough { self.claimed(least, most) } else { None }
        })
    }

    fn held(&mut self, positions: Range<u64>) -> Claim<'_, E, P> {
        Claim::new(&self.core, &self.producers, &mut self.hand, positions)
    }
}

impl<E> Clone for Producer<E, Multi> {
    fn clone(&self) -> Self {
        self.core.producer_joined();
        Producer { core: Arc::clone(&self.core), producers: Arc::clone(&self.producers), hand: () }
    }
}

impl<E, P: Sequencer> Drop for Producer<E, P> {
    fn drop(&mut self) {
        self.core.producer_left();
    }
}
