//! The receiving end.

use std::iter;
use std::ops::Range;
use std::time::{Duration, Instant};

use super::core::Core;
use super::iter::{IntoIter, Iter};
use super::{Disconnected, RecvTimeoutError, TryRecvError};
use crate::primitive::Arc;
use crate::sequencer::{Hand, Multi, Sequencer, Single};

/// Receives values from a channel; see the [module](super).
///
/// The receiver of a channel with many receivers can be cloned; each value goes to one of them.
pub struct Receiver<T, P: Sequencer = Multi, C: Sequencer = Single> {
    pub(super) core: Arc<Core<T, P, C>>,
    pub(super) hand: C::Hand,
}

impl<T, P: Sequencer, C: Sequencer> Receiver<T, P, C> {
    pub(super) fn first(core: Arc<Core<T, P, C>>) -> Self {
        let hand = core.consumers.hand(0);
        Receiver { core, hand }
    }

    /// Receives a value, waiting as long as necessary.
    ///
    /// Acquire: everything that the sender wrote before the `send` is visible.
    ///
    /// # Errors
    /// If all senders are gone and all their values have been received.
    #[inline(always)]
    pub fn recv(&self) -> Result<T, Disconnected> {
        loop {
            match self.take(self.when_gathered()) {
                Some(value) => return Ok(value),
                None => self.wait(None).map_err(|_| Disconnected)?,
            }
        }
    }

    /// Receives a value if there is one. Never waits.
    ///
    /// # Errors
    /// If the channel is empty; the error tells whether more values can arrive.
    #[inline(always)]
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        if let Some(value) = self.take(self.now()) {
            return Ok(value);
        }
        if self.core.has_senders() {
            self.core.free_space.found_nothing();
            return Err(TryRecvError::Empty);
        }
        // The last sender may have sent another value after the first check, and then left.
        self.take(self.now()).ok_or(TryRecvError::Disconnected)
    }

    /// Receives a value, waiting until `deadline`.
    ///
    /// # Errors
    /// If no value arrived in time, or no more values can arrive.
    pub fn recv_deadline(&self, deadline: Instant) -> Result<T, RecvTimeoutError> {
        self.recv_until(Some(deadline))
    }

    /// Receives a value, waiting for at most `timeout`; see [`recv_deadline`](Self::recv_deadline).
    ///
    /// # Errors
    /// If no value arrived in time, or no more values can arrive.
    pub fn recv_timeout(&self, timeout: Duration) -> Result<T, RecvTimeoutError> {
        // A deadline beyond the clock's range means no deadline.
        self.recv_until(Instant::now().checked_add(timeout))
    }

    fn recv_until(&self, deadline: Option<Instant>) -> Result<T, RecvTimeoutError> {
        loop {
            match self.take(self.when_gathered()) {
                Some(value) => return Ok(value),
                None => self.wait(deadline)?,
            }
        }
    }

    /// Waits for at least one value, then moves the available values, at most `most`, to the end of the vector; returns
    /// their number. More values may have arrived before the call returns.
    ///
    /// The slots become free for senders when all values are moved. The vector grows only as far as the values need, so
    /// `usize::MAX` means "all of them". Cost: 1 ns per small value.
    ///
    /// # Errors
    /// If all senders are gone and all their values have been received.
    ///
    /// ```
    /// let (sender, receiver) = millstream_ring::channel::mpsc(16);
    /// (0..10).for_each(|n| sender.send(n).unwrap());
    /// let mut batch = Vec::new();
    /// assert_eq!(receiver.recv_many(&mut batch, 64), Ok(10));
    /// ```
    pub fn recv_many(&self, into: &mut Vec<T>, most: usize) -> Result<usize, Disconnected> {
        self.recv_many_until(into, most, None).map_err(|_| Disconnected)
    }

    /// Waits until `deadline` for at least one value, then proceeds as [`recv_many`](Self::recv_many).
    ///
    /// # Errors
    /// If no value arrived in time, or no more values can arrive.
    ///
    /// The call returns with the first values that arrive. To wait for more, call it again with the same deadline. This
    /// example receives 64 values, or those that arrive within 10 ms:
    ///
    /// ```
    /// use std::time::{Duration, Instant};
    ///
    /// let (sender, receiver) = millstream_ring::channel::mpsc(128);
    /// # (0..64).for_each(|n| sender.send(n).unwrap());
    /// let mut batch: Vec<u32> = Vec::new();
    /// let deadline = Instant::now() + Duration::from_millis(10);
    /// while let missing @ 1.. = 64 - batch.len()
    ///     && receiver.recv_many_deadline(&mut batch, missing, deadline).is_ok()
    /// {}
    /// # assert_eq!(batch.len(), 64);
    /// ```
    pub fn recv_many_deadline(
        &self,
        into: &mut Vec<T>,
        most: usize,
        deadline: Instant,
    ) -> Result<usize, RecvTimeoutError> {
        self.recv_many_until(into, most, Some(deadline))
    }

    #[inline(always)]
    fn recv_many_until(
        &self,
        into: &mut Vec<T>,
        most: usize,
        deadline: Option<Instant>,
    ) -> Result<usize, RecvTimeoutError> {
        if most == 0 {
            return Ok(0);
        }
        loop {
            match self.take_many(into, most, self.when_gathered()) {
                0 => self.wait(deadline)?,
                received => return Ok(received),
            }
        }
    }

    /// Moves the available values, at most `most`, to the end of the vector; returns their number. Never waits. Only a
    /// result of 0 means that no more values are available.
    ///
    /// # Errors
    /// If all senders are gone and all their values have been received.
    pub fn try_recv_many(&self, into: &mut Vec<T>, most: usize) -> Result<usize, Disconnected> {
        if most == 0 {
            return Ok(0);
        }
        let received = self.take_many(into, most, self.now());
        if received > 0 {
            return Ok(received);
        }
        if self.core.has_senders() {
            self.core.free_space.found_nothing();
            return Ok(0);
        }
        match self.take_many(into, most, self.now()) {
            0 => Err(Disconnected),
            received => Ok(received),
        }
    }

    /// Whether no more values will be sent: all senders are gone, or the channel is closed. Values may still be in the
    /// channel.
    #[must_use]
    pub fn is_disconnected(&self) -> bool {
        self.core.is_sent()
    }

    /// Iterates over values until all senders are gone, waiting for each.
    pub fn iter(&self) -> Iter<'_, T, P, C> {
        Iter { receiver: self }
    }

    /// Iterates over the values that are in the channel now.
    pub fn try_iter(&self) -> impl Iterator<Item = T> {
        iter::from_fn(|| self.try_recv().ok())
    }

    #[inline(always)]
    fn claim(&self, most: u64, frontier: impl Fn(u64) -> u64) -> Option<Range<u64>> {
        self.core.consumers.claim(&self.hand, 1, most, frontier)
    }

    /// A function that finds the end of the available values, given that all positions before `from` have been
    /// received.
    #[inline(always)]
    pub(super) fn now(&self) -> impl Fn(u64) -> u64 + Copy + '_ {
        |from| {
            let until = self.core.producers.completed(from);
            if until > from + 1 {
                self.core.arrivals.unregister();
            }
            until
        }
    }

    /// Like [`now`](Self::now), for a receiver that would otherwise wait: it may first pause until several values are
    /// there.
    #[inline(always)]
    fn when_gathered(&self) -> impl Fn(u64) -> u64 + Copy + '_ {
        |from| self.core.gathered_from(from)
    }

    #[inline(always)]
    pub(super) fn take(&self, frontier: impl Fn(u64) -> u64 + Copy) -> Option<T> {
        loop {
            let claim = self.claim(1, frontier)?;
            // SAFETY: this thread alone has claimed the position, and its sender has completed it.
            let value = unsafe { self.core.move_out(claim.start) };
            self.complete(claim);
            if value.is_some() {
                return value;
            }
        }
    }

    /// Moves the available values, at most `most`, to the end of the vector, which grows only as far as necessary.
    pub(super) fn take_many(&self, into: &mut Vec<T>, most: usize, frontier: impl Fn(u64) -> u64 + Copy) -> usize {
        let before = into.len();
        let mut received = self.take_into_room(into, most, frontier);
        // If the vector is full now, it may have been too short for all values.
        while into.len() == into.capacity()
            && received < most
            && self.take_into_room(into, most - received, self.now()) > 0
        {
            received = into.len() - before;
        }
        received
    }

    /// Like [`take_many`](Self::take_many), but moves only as many values as the vector has room for. If the vector is
    /// full, it first gets room for the available values.
    fn take_into_room(&self, into: &mut Vec<T>, most: usize, frontier: impl Fn(u64) -> u64 + Copy) -> usize {
        let core = &*self.core;
        let before = into.len();
        while into.len() == before {
            // The allocation precedes the claim, because it may panic and claimed positions must be completed.
            if into.capacity() == before
                && let there @ 1.. = core.consumers.available(&self.hand, frontier) as usize
            {
                // This reserves room for one value more than are available. If the vector is not full afterwards, it
                // had room for all values, and no second check is needed.
                into.reserve(most.min(there + 1));
            }
            let most = (into.capacity() - before).min(most) as u64;
            if most == 0 {
                break;
            }
            let Some(claim) = self.claim(most, frontier) else { break };
            if core.producers.may_have_skipped() {
                // SAFETY: this thread alone has claimed the positions, and their senders have completed them.
                into.extend(claim.clone().filter_map(|position| unsafe { core.move_out(position) }));
            } else {
                // SAFETY: the vector has room for the claim. All claimed positions are complete and none is skipped, so
                // they hold values, which this thread alone has claimed and moves out once.
                unsafe {
                    core.slots.copy_out(claim.clone(), into.as_mut_ptr().add(before).cast());
                    into.set_len(before + (claim.end - claim.start) as usize);
                }
            }
            self.complete(claim);
        }
        into.len() - before
    }

    #[inline(always)]
    fn complete(&self, claim: Range<u64>) {
        let core = &*self.core;
        let Range { start, end } = claim;
        core.consumers.complete(claim);
        if core.free_space.freed(|| self.hand.has_completed(end)) {
            core.wake_for_space(start, end);
        }
    }

    #[inline(always)]
    fn wait(&self, deadline: Option<Instant>) -> Result<(), RecvTimeoutError> {
        let hand = self.hand.clone();
        let waited = self.core.wait_for_value(&hand, deadline);
        self.hand.catch_up(hand);
        waited
    }
}

impl<T, P: Sequencer> Clone for Receiver<T, P, Multi> {
    fn clone(&self) -> Self {
        self.core.receiver_joined();
        Receiver { core: Arc::clone(&self.core), hand: () }
    }
}

impl<T, P: Sequencer, C: Sequencer> Drop for Receiver<T, P, C> {
    fn drop(&mut self) {
        self.core.receiver_left();
    }
}

impl<'a, T, P: Sequencer, C: Sequencer> IntoIterator for &'a Receiver<T, P, C> {
    type Item = T;
    type IntoIter = Iter<'a, T, P, C>;

    fn into_iter(self) -> Iter<'a, T, P, C> {
        self.iter()
    }
}

impl<T, P: Sequencer, C: Sequencer> IntoIterator for Receiver<T, P, C> {
    type Item = T;
    type IntoIter = IntoIter<T, P, C>;

    fn into_iter(self) -> IntoIter<T, P, C> {
        IntoIter { receiver: self }
    }
}
