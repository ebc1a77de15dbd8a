//! The positions that a producer has claimed.

use std::marker::PhantomData;
use std::ops::Range;

use super::core::Core;
use crate::sequencer::{Hand, Sequencer};

/// Consecutive positions that a producer has claimed and not yet published.
///
/// Dropping a claim, as a panic does, gives its positions up: consumers skip them. Leaking a claim makes consumers wait
/// in front of its first position until the producers are dropped.
///
/// ```
/// use millstream_ring::graph::Builder;
///
/// let mut ring = Builder::multi(8, || 0u64);
/// let (_, mut poller) = ring.poller(&[]);
/// let (mut producer, _running) = ring.start();
/// let mut claim = producer.claim(3);
/// for (event, value) in (&mut claim).into_iter().zip([10, 20, 30]) {
///     *event = value;
/// }
/// claim.publish();
/// drop(producer.claim(2)); // consumers skip these
/// let mut seen = Vec::new();
/// let _ = poller.poll(8, |event, _| seen.push(*event));
/// let _ = poller.poll(8, |event, _| seen.push(*event));
/// assert_eq!(seen, [10, 20, 30]);
/// ```
#[derive(Debug)]
#[must_use = "dropping a claim gives its positions up"]
pub struct Claim<'a, E, P: Sequencer> {
    core: &'a Core<E, P>,
    producers: &'a P,
    hand: &'a mut P::Hand,
    positions: Range<u64>,
}

impl<'a, E, P: Sequencer> Claim<'a, E, P> {
    pub(super) fn new(core: &'a Core<E, P>, producers: &'a P, hand: &'a mut P::Hand, positions: Range<u64>) -> Self {
        Claim { core, producers, hand, positions }
    }

    /// The positions, in the order in which consumers see them.
    #[must_use]
    pub fn positions(&self) -> Range<u64> {
        self.positions.clone()
    }

    pub(super) fn first(&mut self) -> &mut E {
        // SAFETY: the positions are claimed and not published, and the claim is exclusively borrowed, so this is the
        // only reference.
        self.core.slots.at(self.positions.start).with_mut(|event| unsafe { &mut *event })
    }

    /// Publishes the events to consumers. Wait-free, except for waking sleepers.
    pub fn publish(self) {
        let claim = std::mem::ManuallyDrop::new(self);
        let Range { start, end } = claim.positions;
        claim.producers.complete(start..end);
        claim.core.arrivals.notify((end - start) as usize, || claim.hand.has_completed(end));
    }
}

impl<E, P: Sequencer> Drop for Claim<'_, E, P> {
    fn drop(&mut self) {
        self.producers.skip(self.positions.clone());
        self.core.arrivals.notify_all(|| ());
    }
}

impl<'c, E, P: Sequencer> IntoIterator for &'c mut Claim<'_, E, P> {
    type Item = &'c mut E;
    type IntoIter = EventsMut<'c, E, P>;

    fn into_iter(self) -> EventsMut<'c, E, P> {
        EventsMut { core: self.core, positions: self.positions.clone(), _claim: PhantomData }
    }
}

/// The events of a claim, to be written.
#[derive(Debug)]
pub struct EventsMut<'c, E, P: Sequencer> {
    core: &'c Core<E, P>,
    positions: Range<u64>,
    /// Keeps the claim borrowed.
    _claim: PhantomData<&'c mut E>,
}

impl<'c, E, P: Sequencer> Iterator for EventsMut<'c, E, P> {
    type Item = &'c mut E;

    fn next(&mut self) -> Option<&'c mut E> {
        let position = self.positions.next()?;
        // SAFETY: the claim is exclusively borrowed. Consumers have handled the event of the last lap, and do not see
        // the new one before it is published. The iterator returns each position once.
        Some(self.core.slots.at(position).with_mut(|event| unsafe { &mut *event }))
    }
}
