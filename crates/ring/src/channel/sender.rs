//! The sending end.

use std::ops::Range;
use std::time::{Duration, Instant};

use super::batch::Batch;
use super::core::{Core, Place};
use super::{Disconnected, SendError, SendTimeoutError, TrySendError};
use crate::primitive::Arc;
use crate::sequencer::{Hand, Multi, Sequencer, Single};

/// Sends values into a channel; see the [module](super).
///
/// The sender of a channel with many senders can be cloned. One clone for each thread is best, but threads may also
/// share one.
pub struct Sender<T, P: Sequencer = Multi, C: Sequencer = Single> {
    pub(super) core: Arc<Core<T, P, C>>,
    pub(super) hand: P::Hand,
}

impl<T, P: Sequencer, C: Sequencer> Sender<T, P, C> {
    pub(super) fn first(core: Arc<Core<T, P, C>>) -> Self {
        let hand = core.producers.hand(core.capacity);
        Sender { core, hand }
    }

    /// Sends a value, waiting for room as long as necessary.
    ///
    /// Release: the receiver sees everything that this thread wrote before. Cost without waiting: 2 to 4 ns.
    ///
    /// # Errors
    /// If all receivers are gone or the channel is closed.
    #[inline(always)]
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        if !self.core.has_receivers() {
            return Err(SendError(value));
        }
        match self.core.claim_place(&self.hand) {
            Some(place) => self.fill(place, value),
            None => match self.wait_for_place(None) {
                Some(place) => self.fill(place, value),
                None => return Err(SendError(value)),
            },
        }
        Ok(())
    }

    /// Sends a value if there is room now. Never waits.
    ///
    /// # Errors
    /// If the channel is full or closed, or all receivers are gone.
    #[inline(always)]
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        if !self.core.has_receivers() {
            return Err(TrySendError::Disconnected(value));
        }
        match self.core.claim_place(&self.hand) {
            Some(place) => self.fill(place, value),
            None if self.core.is_open() => return Err(TrySendError::Full(value)),
            None => return Err(TrySendError::Disconnected(value)),
        }
        Ok(())
    }

    /// Sends a value, waiting for room until `deadline`.
    ///
    /// # Errors
    /// If the deadline has passed, all receivers are gone, or the channel is closed.
    pub fn send_deadline(&self, value: T, deadline: Instant) -> Result<(), SendTimeoutError<T>> {
        self.send_until(value, Some(deadline))
    }

    /// Sends a value, waiting for room for at most `timeout`; see [`send_deadline`](Self::send_deadline).
    ///
    /// # Errors
    /// If the time is up, all receivers are gone, or the channel is closed.
    pub fn send_timeout(&self, value: T, timeout: Duration) -> Result<(), SendTimeoutError<T>> {
        // A deadline beyond the clock's range means no deadline.
        self.send_until(value, Instant::now().checked_add(timeout))
    }

    fn send_until(&self, value: T, deadline: Option<Instant>) -> Result<(), SendTimeoutError<T>> {
        let core = &*self.core;
        let claim = || core.claim_place(&self.hand).or_else(|| self.wait_for_place(deadline));
        match if core.has_receivers() { claim() } else { None } {
            Some(place) => self.fill(place, value),
            None if self.core.is_open() => return Err(SendTimeoutError::Timeout(value)),
            None => return Err(SendTimeoutError::Disconnected(value)),
        }
        Ok(())
    }

    /// Sends all values in order, each time as many as there is room for. Each value leaves the vector when it is sent.
    ///
    /// Values of other senders may arrive between them. Cost: one claim per run of free positions, and 1 ns per small
    /// value.
    ///
    /// # Errors
    /// If all receivers are gone or the channel is closed: the vector holds the values not sent.
    ///
    /// ```
    /// let (sender, receiver) = millstream_ring::channel::mpsc(16);
    /// let mut batch = vec![1, 2, 3];
    /// sender.send_many(&mut batch).unwrap();
    /// assert!(batch.is_empty());
    /// assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [1, 2, 3]);
    /// ```
    pub fn send_many(&self, values: &mut Vec<T>) -> Result<(), Disconnected> {
        self.send_many_until(values, None).map_err(|_| Disconnected)
    }

    /// Sends all values, waiting for room until `deadline`; otherwise like [`send_many`](Self::send_many).
    ///
    /// # Errors
    /// If the deadline has passed, all receivers are gone, or the channel is closed. The values not sent stay in the
    /// vector; the error contains no value.
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    /// use millstream_ring::channel::{self, SendTimeoutError};
    ///
    /// let (sender, receiver) = channel::mpsc(2);
    /// let mut batch = vec![1, 2, 3];
    /// let soon = Instant::now() + Duration::from_millis(1);
    /// assert_eq!(sender.send_many_deadline(&mut batch, soon), Err(SendTimeoutError::Timeout(())));
    /// assert_eq!(batch, [3]);
    /// # drop(receiver);
    /// ```
    pub fn send_many_deadline(&self, values: &mut Vec<T>, deadline: Instant) -> Result<(), SendTimeoutError<()>> {
        self.send_many_until(values, Some(deadline))
    }

    #[inline(always)]
    fn send_many_until(&self, values: &mut Vec<T>, deadline: Option<Instant>) -> Result<(), SendTimeoutError<()>> {
        let mut batch = Batch::of(values);
        while batch.left() > 0 {
            if !self.core.has_receivers() {
                return Err(SendTimeoutError::Disconnected(()));
            }
            let most = batch.left() as u64;
            let core = &*self.core;
            let wait = || core.wait_for_places(&self.hand, most, deadline);
            match core.claim_places(&self.hand, most).or_else(wait) {
                Some(claim) => self.fill_many(claim, &mut batch),
                None if core.is_open() => return Err(SendTimeoutError::Timeout(())),
                None => return Err(SendTimeoutError::Disconnected(())),
            };
        }
        Ok(())
    }

    /// Sends as many values from the front of the vector as there is room for now; returns their number. Never waits.
    ///
    /// # Errors
    /// If all receivers are gone or the channel is closed.
    pub fn try_send_many(&self, values: &mut Vec<T>) -> Result<usize, Disconnected> {
        if !self.core.has_receivers() {
            return Err(Disconnected);
        }
        let mut batch = Batch::of(values);
        let mut sent = 0;
        while batch.left() > 0
            && let Some(claim) = self.core.claim_places(&self.hand, batch.left() as u64)
        {
            sent += self.fill_many(claim, &mut batch);
        }
        if sent == 0 && batch.left() > 0 && !self.core.is_open() {
            return Err(Disconnected);
        }
        Ok(sent)
    }

    /// Claims a slot, waiting for room. The returned permit fills the slot later. Until the permit is used or dropped,
    /// receivers get no value from any slot that was claimed later.
    ///
    /// # Errors
    /// If all receivers are gone or the channel is closed.
    ///
    /// ```
    /// let (mut sender, receiver) = millstream_ring::channel::mpsc(4);
    /// let permit = sender.reserve().unwrap();
    /// permit.send("made after there was room for it");
    /// drop(sender.reserve().unwrap()); // unused: receivers skip the slot
    /// drop(sender);
    /// assert_eq!(receiver.iter().count(), 1);
    /// ```
    pub fn reserve(&mut self) -> Result<Permit<'_, T, P, C>, Disconnected> {
        if !self.core.has_receivers() {
            return Err(Disconnected);
        }
        let claim = self.core.claim_place(&self.hand).or_else(|| self.wait_for_place(None));
        let position = claim.ok_or(Disconnected)?.position;
        Ok(Permit { position, sender: self })
    }

    /// Claims a slot if one is free now; see [`reserve`](Self::reserve). Never waits.
    ///
    /// # Errors
    /// If the channel is full or closed, or all receivers are gone.
    pub fn try_reserve(&mut self) -> Result<Permit<'_, T, P, C>, TrySendError<()>> {
        let core = &*self.core;
        let claim = if core.has_receivers() { core.claim_place(&self.hand) } else { None };
        match claim.map(|place| place.position) {
            Some(position) => Ok(Permit { position, sender: self }),
            None if core.is_open() => Err(TrySendError::Full(())),
            None => Err(TrySendError::Disconnected(())),
        }
    }

    /// Whether no more values can be sent: all receivers are gone, or the channel is closed.
    #[must_use]
    pub fn is_disconnected(&self) -> bool {
        !self.core.is_open()
    }

    #[inline(always)]
    fn wait_for_place(&self, deadline: Option<Instant>) -> Option<Place<'_, T, P>> {
        let hand = self.hand.clone();
        let position = self.core.wait_for_place(&hand, deadline);
        self.hand.catch_up(hand);
        position.map(|position| self.core.place(position))
    }

    #[inline(always)]
    pub(super) fn fill(&self, Place { position, slot, completion }: Place<'_, T, P>, value: T) {
        let core = &*self.core;
        slot.with_mut(|slot| {
            // SAFETY: until it completes the position, this sender alone has claimed it. The slot is empty: it was
            // never filled, its last value was moved out, or its last position was skipped.
            unsafe { (*slot).write(value) };
        });
        core.producers.complete_one(completion);
        core.notify(1, || self.hand.has_completed(position + 1));
    }

    /// Moves values from the front of the batch into the claimed slots; returns their number. The batch must have
    /// enough values.
    pub(super) fn fill_many(&self, claim: Range<u64>, batch: &mut Batch<'_, T>) -> usize {
        let core = &*self.core;
        let sent = (claim.end - claim.start) as usize;
        // SAFETY: this sender alone has claimed the positions, whose slots are empty, and the batch no longer owns the
        // values.
        unsafe { core.slots.copy_in(claim.clone(), batch.give_up(sent).cast()) };
        let end = claim.end;
        core.producers.complete(claim);
        core.notify(sent, || self.hand.has_completed(end));
        sent
    }

    pub(super) fn give_up(&self, position: u64) {
        self.core.producers.skip(position..position + 1);
        self.core.notify(1, || ());
    }
}

impl<T, C: Sequencer> Clone for Sender<T, Multi, C> {
    fn clone(&self) -> Self {
        self.core.sender_joined();
        Sender { core: Arc::clone(&self.core), hand: () }
    }
}

impl<T, P: Sequencer, C: Sequencer> Drop for Sender<T, P, C> {
    fn drop(&mut self) {
        self.core.sender_left();
    }
}

/// A claimed slot of the channel, which the permit's owner may fill.
#[must_use = "dropping a permit gives its slot up"]
pub struct Permit<'a, T, P: Sequencer = Multi, C: Sequencer = Single> {
    sender: &'a mut Sender<T, P, C>,
    position: u64,
}

impl<T, P: Sequencer, C: Sequencer> Permit<'_, T, P, C> {
    /// Fills the slot. Never waits.
    pub fn send(self, value: T) {
        let permit = std::mem::ManuallyDrop::new(self);
        permit.sender.fill(permit.sender.core.place(permit.position), value);
    }
}

impl<T, P: Sequencer, C: Sequencer> Drop for Permit<'_, T, P, C> {
    fn drop(&mut self) {
        self.sender.give_up(self.position);
    }
}
