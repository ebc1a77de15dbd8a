//! Claiming slots, and waiting for slots and values. Waiting for a slot is *useless* once all receivers are gone or the
//! channel is closed. The waits are not inlined, which keeps callers small.

use std::ops::Range;
use std::time::Instant;

use super::RecvTimeoutError;
use super::core::{Core, Place};
use crate::sequencer::SequencerParts;
use crate::wait::Places;

impl<T, P: SequencerParts, C: SequencerParts> Core<T, P, C> {
    /// A slot for one value if there is one now.
    #[inline(always)]
    pub(super) fn claim_place(&self, hand: &P::Hand) -> Option<Place<'_, T, P>> {
        let frontier = |from| self.free_portion(from, 1);
        let prepare = |claim: Range<u64>, limit| {
            let position = claim.start;
            self.fetch_ahead(claim, limit);
            self.place(position)
        };
        self.producers.claim_prepared(hand, 1, 1, frontier, prepare).map(|(_, place)| place)
    }

    /// Slots for at most `most` values, if there are any now.
    #[inline(always)]
    pub(super) fn claim_places(&self, hand: &P::Hand, most: u64) -> Option<Range<u64>> {
        let frontier = |from| self.free_portion(from, most);
        let prepare = |claim, limit| self.fetch_ahead(claim, limit);
        self.producers.claim_prepared(hand, 1, most, frontier, prepare).map(|(claim, ())| claim)
    }

    /// Like [`claim_place`](Self::claim_place), but waits; `None` if the deadline has passed or waiting is useless.
    ///
    /// Returns a position rather than a `Place`, because a position fits into registers.
    #[cold]
    #[inline(never)]
    pub(super) fn wait_for_place(&self, hand: &P::Hand, deadline: Option<Instant>) -> Option<u64> {
        self.wait_for_places(hand, 1, deadline).map(|claim| claim.start)
    }

    /// Like [`claim_places`](Self::claim_places), but waits; `None` if the deadline has passed or waiting is useless.
    #[cold]
    #[inline(never)]
    pub(super) fn wait_for_places(&self, hand: &P::Hand, most: u64, deadline: Option<Instant>) -> Option<Range<u64>> {
        self.free_space.wait(deadline, |portion| self.places_or_closed(hand, portion, most)).flatten()
    }

    /// Whether there is a free slot, or waiting for one is useless.
    pub(super) fn has_room_or_closed(&self, hand: &P::Hand) -> bool {
        !self.is_open() || self.producers.available(hand, |from| self.free_until(from)) > 0
    }

    /// A claim once `portion` positions are free, or `Some(None)` if waiting is useless.
    pub(super) fn places_or_closed(&self, hand: &P::Hand, portion: u64, most: u64) -> Option<Option<Range<u64>>> {
        if !self.is_open() {
            return Some(None);
        }
        let enough = portion <= 1 || self.producers.available(hand, |from| self.free_until(from)) >= portion;
        if enough { self.claim_places(hand, most).map(Some) } else { None }
    }

    /// Wakes senders for the positions `start..end`, which have been received.
    #[cold]
    #[inline(never)]
    pub(super) fn wake_for_space(&self, start: u64, end: u64) {
        let places = Places { may_have_gaps: C::MANY, number: || self.freed(start, end) as usize };
        self.free_space.wake_waiters(places);
    }

    /// The end of the available values, given that all positions before `from` have been received. Lets values
    /// accumulate before it checks.
    #[inline(never)]
    pub(super) fn gathered_from(&self, from: u64) -> u64 {
        self.arrivals.check_again(from, self.slots.capacity(), || self.producers.completed(from))
    }

    /// Waits until there is a value to claim.
    #[cold]
    #[inline(never)]
    pub(super) fn wait_for_value(&self, hand: &C::Hand, deadline: Option<Instant>) -> Result<(), RecvTimeoutError> {
        let check = || self.value_or_closed(hand);
        // With many receivers, the number of values decides whether another receiver must be woken, so a full check is
        // needed.
        let quick_check = || if C::MANY { check() } else { self.first_or_closed(hand) };
        let starved = || self.free_space.starved(|| self.len());
        let found = self.arrivals.wait(deadline, !C::MANY, || self.consumers.claimed(), starved, check, quick_check);
        found.unwrap_or(Err(RecvTimeoutError::Timeout))
    }

    /// Whether there is a value to claim; an error if there is none and no sender either.
    pub(super) fn value_or_closed(&self, hand: &C::Hand) -> Option<Result<(), RecvTimeoutError>> {
        self.found_or_closed(|| self.consumers.available(hand, |from| self.producers.completed(from)))
    }

    /// Like [`value_or_closed`](Self::value_or_closed), for one value only. After a sleep neither data nor code is in
    /// the caches, so a check that touches fewer lines is quicker.
    #[inline(always)]
    fn first_or_closed(&self, hand: &C::Hand) -> Option<Result<(), RecvTimeoutError>> {
        let first = |from| from + u64::from(self.producers.has_passed(from));
        self.found_or_closed(|| self.consumers.available(hand, first))
    }

    #[inline(always)]
    fn found_or_closed(&self, available: impl Fn() -> u64) -> Option<Result<(), RecvTimeoutError>> {
        match available() {
            0 if self.has_senders() => None,
            // The last sender may have sent another value after the first check, and then left.
            0 if available() == 0 => Some(Err(RecvTimeoutError::Disconnected)),
            gathered => {
                self.arrivals.gathered(gathered, self.slots.capacity());
                if gathered > 1 && C::MANY {
                    // Each event wakes one receiver, but events become visible in order. So an event that was completed
                    // behind a gap may have woken a receiver that could not see it yet. This wakes another receiver for
                    // that event.
                    self.notify(1, || ());
                }
                Some(Ok(()))
            }
        }
    }
}
