//! Values that no receiver will take: they are dropped as soon as the last receiver has left.
//!
//! The last receiver drops the values in the channel. A sender may be in the middle of `send` meanwhile, so the
//! receiver leaves a waiter registered with the arrivals' notifier: a sender that completes a place then sees a waiter,
//! finds that there is no receiver, and drops the values instead. A `send` that does not meet this race pays nothing
//! for it. The sender's light fence between its completion and its check of the notifier pairs with the heavy fence
//! between the registration and the receiver's last look, as with a receiver that falls asleep: one of the two sees the
//! other.
//!
//! Several threads may want to drop values at once, and a destructor may use the channel its value was in: it may drop
//! the last sender, or send. So no lock is held while it runs. The first thread takes over the receivers' side; threads
//! that come meanwhile increment a number and go on, and the first thread looks again until the number stands still.

use std::mem;

use super::core::Core;
use crate::contained::Panic;
use crate::primitive::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sequencer::{Hand, SequencerParts};

/// The discarding of values that no receiver will take.
#[derive(Debug, Default)]
pub(super) struct Discarding {
    /// The number of threads that have asked for it since one began; 0 while no thread discards.
    requests: AtomicUsize,
    /// Whether the last receiver left a waiter registered with the notifier.
    registered: AtomicBool,
}

impl<T, P: SequencerParts, C: SequencerParts> Core<T, P, C> {
    /// Drops the values in the channel, and has senders drop the values still to come; called by the last receiver when
    /// it has left.
    ///
    /// A panic of a destructor resumes once all destructors have run.
    pub(super) fn discard_from_now_on(&self) {
        let mut panic = Panic::default();
        self.discard(&mut panic);
        if mem::needs_drop::<T>() && self.may_be_sending() {
            self.discarding.registered.store(true, Ordering::Relaxed);
            self.arrivals.notifier.stay_registered();
            self.discard(&mut panic);
        }
        panic.resume();
    }

    /// Whether a sender may be about to complete a place.
    fn may_be_sending(&self) -> bool {
        // For many senders, claims have ended, so the unfinished ones are known. The claim of a sole sender is not
        // visible, so it counts as sending while it exists.
        if P::MANY { self.producers.claimed() != self.consumers.claimed() } else { self.senders() != 0 }
    }

    /// Drops the values sent so far, up to the first unfinished place, whose sender will call this as well. There are
    /// no receivers.
    pub(super) fn discard(&self, panic: &mut Panic) {
        // Acquire and release: one thread hands the receivers' side over to the next, and a thread that only asks makes
        // its completion visible to the discarding thread.
        if self.discarding.requests.fetch_add(1, Ordering::AcqRel) > 0 {
            return;
        }
        let mut seen = 1;
        while let Err(more) = {
            self.discard_arrivals(panic);
            self.discarding.requests.compare_exchange(seen, 0, Ordering::AcqRel, Ordering::Acquire)
        } {
            seen = more;
        }
    }

    /// Takes value by value, as a receiver does, and drops each once it is out of the channel.
    fn discard_arrivals(&self, panic: &mut Panic) {
        let hand = self.consumers.hand(self.consumers.claimed());
        while let Some(claim) = self.consumers.claim(&hand, 1, 1, |from| self.producers.completed(from)) {
            // SAFETY: this thread alone has claimed the position, and its sender has completed it.
            let value = unsafe { self.move_out(claim.start) };
            let end = claim.end;
            self.consumers.complete(claim);
            hand.has_completed(end);
            panic.contain_drop(value);
        }
    }
}

impl<T, P: SequencerParts, C: SequencerParts> Drop for Core<T, P, C> {
    /// Drops the remaining values, which lie behind a place that was never completed because its permit was leaked.
    fn drop(&mut self) {
        if self.discarding.registered.load(Ordering::Relaxed) {
            // The notifier may belong to a set, which outlives the channel.
            self.arrivals.notifier.unregister();
        }
        let mut panic = Panic::default();
        for position in self.consumers.claimed()..self.producers.claimed() {
            if self.producers.is_complete(position) {
                // SAFETY: the position is complete, no receiver claimed it, and `drop` has exclusive access.
                panic.contain_drop(unsafe { self.move_out(position) });
            }
        }
        panic.resume();
    }
}
