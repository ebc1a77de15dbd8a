//! Waiting for a place and for a value: what is not worth a copy in every caller.

use std::ops::Range;
use std::time::Instant;

use super::RecvTimeoutError;
use super::shared::{Place, Shared};
use crate::sequencer::SequencerParts;
use crate::wait::Places;

impl<T, P: SequencerParts, C: SequencerParts> Shared<T, P, C> {
    /// A place for one value if there is one now.
    #[inline(always)]
    pub(super) fn claim_place(&self, hand: &P::Hand) -> Option<Place<'_, T, P>> {
        let frontier = |from| self.free_portion(from, 1);
        self.producers.claim_prepared(hand, 1, 1, frontier, |position| self.place(position)).map(|(_, place)| place)
    }

    /// Places for at most `most` values, if there are any now.
    #[inline(always)]
    pub(super) fn claim_places(&self, hand: &P::Hand, most: u64) -> Option<Range<u64>> {
        self.producers.claim(hand, 1, most, |from| self.free_portion(from, most))
    }

    /// As [`claim_place`](Self::claim_place), waiting; `None` when the deadline has passed or all receivers are gone.
    ///
    /// A position and not a place: it comes back in registers.
    #[cold]
    #[inline(never)]
    pub(super) fn wait_for_place(&self, hand: &P::Hand, deadline: Option<Instant>) -> Option<u64> {
        self.wait_for_places(hand, 1, deadline).map(|claim| claim.start)
    }

    /// As [`claim_places`](Self::claim_places), waiting; `None` when the deadline has passed or all receivers are gone.
    #[cold]
    #[inline(never)]
    pub(super) fn wait_for_places(&self, hand: &P::Hand, most: u64, deadline: Option<Instant>) -> Option<Range<u64>> {
        let completed = || self.consumers.claimed();
        self.room.wait(deadline, completed, |portion| self.places_or_closed(hand, portion, most)).flatten()
    }

    /// Whether there is a place, or no use in waiting for one.
    pub(super) fn has_room_or_closed(&self, hand: &P::Hand) -> bool {
        !self.is_open() || self.producers.available(hand, |from| self.free_until(from)) > 0
    }

    /// A claim once `portion` positions are free, or `Some(None)` if there is no use in waiting.
    pub(super) fn places_or_closed(&self, hand: &P::Hand, portion: u64, most: u64) -> Option<Option<Range<u64>>> {
        if !self.is_open() {
            return Some(None);
        }
        let enough = portion <= 1 || self.producers.available(hand, |from| self.free_until(from)) >= portion;
        if enough { self.claim_places(hand, most).map(Some) } else { None }
    }

    /// Wakes senders for the positions from `start` to before `end`, which were received.
    #[cold]
    #[inline(never)]
    pub(super) fn ring_for_room(&self, due: u64, start: u64, end: u64) {
        // Of many receivers, one that was slow says little about how far they are.
        let completed = || if C::MANY { self.consumers.claimed() } else { end };
        let places = Places { may_have_gaps: C::MANY, number: || self.freed(start, end) as usize };
        self.room.ring(due, places, completed, || self.producers.claimed());
    }

    /// Where what has come ends, all before `from` being received; lets events gather before it looks.
    #[inline(never)]
    pub(super) fn gathered_from(&self, from: u64) -> u64 {
        self.arrivals.look_again(from, self.slots.capacity(), || self.producers.completed(from))
    }

    /// Waits until there is something to claim.
    #[cold]
    #[inline(never)]
    pub(super) fn wait_for_value(&self, hand: &C::Hand, deadline: Option<Instant>) -> Result<(), RecvTimeoutError> {
        let look = || self.value_or_closed(hand);
        // Many receivers have to know how many more could take something.
        let glance = || if C::MANY { look() } else { self.first_or_closed(hand) };
        let in_vain =
            |sleeps| self.room.drained(sleeps || !P::MANY, || self.consumers.claimed(), || self.producers.claimed());
        let found = self.arrivals.wait(deadline, !C::MANY, in_vain, look, glance);
        found.unwrap_or(Err(RecvTimeoutError::Timeout))
    }

    /// Whether there is something to claim; an error if there is nothing and no sender is left.
    pub(super) fn value_or_closed(&self, hand: &C::Hand) -> Option<Result<(), RecvTimeoutError>> {
        self.found_or_closed(|| self.consumers.available(hand, |from| self.producers.completed(from)))
    }

    /// The same, looking for one value only. For who has slept: then nothing is in the caches, neither data nor code, and what it does not touch
    /// it does not wait for.
    #[inline(always)]
    fn first_or_closed(&self, hand: &C::Hand) -> Option<Result<(), RecvTimeoutError>> {
        let first = |from| from + u64::from(self.producers.has_passed(from));
        self.found_or_closed(|| self.consumers.available(hand, first))
    }

    #[inline(always)]
    fn found_or_closed(&self, available: impl Fn() -> u64) -> Option<Result<(), RecvTimeoutError>> {
        match available() {
            0 if self.has_senders() => None,
            // The last sender left after our first look, perhaps also after sending.
            0 if available() == 0 => Some(Err(RecvTimeoutError::Disconnected)),
            gathered => {
                self.arrivals.gathered(gathered, self.slots.capacity());
                if gathered > 1 && C::MANY {
                    // One of us was woken for each event, but events become visible in order: one that was
                    // completed behind a gap woke somebody who could not see it.
                    self.came(1, || ());
                }
                Some(Ok(()))
            }
        }
    }
}
