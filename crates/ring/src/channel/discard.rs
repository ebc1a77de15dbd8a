//! Values that no receiver will take: they are dropped as soon as the last receiver has left.
//!
//! The last receiver drops what is in the channel. A sender may be in the middle of `send` meanwhile, so the receiver leaves
//! a listener on the bell of arrivals behind: whichever sender completes a place then rings, finds that no receiver is left
//! and drops what is there in the receiver's place. A `send` that does not meet this race pays nothing for it. The sender's
//! light fence between its completion and its look at the bell pairs with the heavy fence between the listener and the
//! receiver's last look, as with a receiver that falls asleep: one of the two sees the other.
//!
//! Several threads may want to drop values at once, and a destructor may use the channel it was in: it may drop the last
//! sender, or send. So no lock is held while it runs. The first thread to come takes the receivers' side over; those that
//! come meanwhile raise a number and go on, and the first looks again until the number stands still.

use std::mem;

use super::shared::Shared;
use crate::contained::Panic;
use crate::primitive::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sequencer::{Hand, SequencerParts};

/// Who drops what no receiver will take.
#[derive(Debug, Default)]
pub(super) struct Discarding {
    /// How many have asked for it since a thread began; 0 while none is at it.
    requests: AtomicUsize,
    /// Whether a listener was left on the bell.
    listens: AtomicBool,
}

impl<T, P: SequencerParts, C: SequencerParts> Shared<T, P, C> {
    /// The last receiver has left: drops what is in the channel, and has senders drop what is still to come.
    ///
    /// A panic of a destructor goes on when all of them have run.
    pub(super) fn discard_from_now_on(&self) {
        let mut panic = Panic::default();
        self.discard(&mut panic);
        if mem::needs_drop::<T>() && self.may_be_sending() {
            self.discarding.listens.store(true, Ordering::Relaxed);
            self.arrivals.bell.listen_on();
            self.discard(&mut panic);
        }
        panic.resume();
    }

    /// Whether a sender may be about to complete a place.
    fn may_be_sending(&self) -> bool {
        // Many senders' claims have ended, so those under way are known. A sole sender claims by itself.
        if P::MANY { self.producers.claimed() != self.consumers.claimed() } else { self.senders() != 0 }
    }

    /// Drops what has been sent, up to the first place in the making, whose sender comes by here. No receiver is left.
    pub(super) fn discard(&self, panic: &mut Panic) {
        // Acquire and release: one thread hands the receivers' side over to the next, and who asks shows what it completed.
        if self.discarding.requests.fetch_add(1, Ordering::AcqRel) > 0 {
            return;
        }
        let mut seen = 1;
        while let Err(more) = {
            self.discard_what_came(panic);
            self.discarding.requests.compare_exchange(seen, 0, Ordering::AcqRel, Ordering::Acquire)
        } {
            seen = more;
        }
    }

    /// Takes value by value, as a receiver does, and drops each when it is out of the channel.
    fn discard_what_came(&self, panic: &mut Panic) {
        let hand = self.consumers.hand(self.consumers.claimed());
        while let Some(claim) = self.consumers.claim(&hand, 1, 1, |from| self.producers.completed(from)) {
            // SAFETY: claimed above, for the first time, and completed as far as the claim goes.
            let value = unsafe { self.move_out(claim.start) };
            let end = claim.end;
            self.consumers.complete(claim);
            hand.has_completed(end);
            panic.contain_drop(value);
        }
    }
}

impl<T, P: SequencerParts, C: SequencerParts> Drop for Shared<T, P, C> {
    /// Drops what is left: values behind a place that was never completed, because its permit was leaked.
    fn drop(&mut self) {
        if self.discarding.listens.load(Ordering::Relaxed) {
            // The bell may be a set's.
            self.arrivals.bell.listen_no_more();
        }
        let mut panic = Panic::default();
        for position in self.consumers.claimed()..self.producers.claimed() {
            if self.producers.is_complete(position) {
                // SAFETY: complete, not claimed by a receiver, and no other thread has access any more.
                panic.contain_drop(unsafe { self.move_out(position) });
            }
        }
        panic.resume();
    }
}
