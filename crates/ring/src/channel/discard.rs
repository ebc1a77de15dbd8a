//! Dropping the values that no receiver will take, as soon as the last receiver has left.
//!
//! The last receiver drops the values in the channel. A sender may be in the middle of `send` at that time, so the
//! receiver leaves a waiter registered with the arrivals' notifier. A sender that completes a slot then sees a waiter,
//! finds that there is no receiver, and drops the values itself. This costs all other sends nothing. The sender's light
//! fence, between its completion and its check of the notifier, pairs with the heavy fence between the registration and
//! the receiver's last check. So the sender sees the waiter, or the receiver sees the completed slot.
//!
//! Several threads may want to drop values at once, and a destructor may use the channel that its value was in: the
//! destructor may drop the last sender, or send a value. So no lock is held while it runs. The first thread acts as the
//! only receiver. A thread that arrives in the meantime only adds 1 to the number of requests, and returns. The first
//! thread repeats its work until that number no longer changes.

use std::mem;

use super::core::Core;
use crate::contained::Panic;
use crate::primitive::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sequencer::{Hand, SequencerParts};

/// The state of the threads that discard values that no receiver will take.
#[derive(Debug, Default)]
pub(super) struct Discarding {
    /// The number of requests since a thread began to discard; 0 while no thread discards.
    requests: AtomicUsize,
    /// Whether the last receiver left a waiter registered with the notifier.
    registered: AtomicBool,
}

impl<T, P: SequencerParts, C: SequencerParts> Core<T, P, C> {
    /// Drops the values in the channel, and makes senders drop the values still to come. The last receiver calls this
    /// after it has left.
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

    /// Whether a sender may be about to complete a slot.
    fn may_be_sending(&self) -> bool {
        // With many senders, claims have ended, so the unfinished claims are known. The claim of a sole sender is not
        // visible, so that sender counts as sending for as long as it exists.
        if P::MANY { self.producers.claimed() != self.consumers.claimed() } else { self.senders() != 0 }
    }

    /// Drops the values sent so far, up to the first unfinished slot. The sender of that slot will call this, too.
    /// There are no receivers.
    pub(super) fn discard(&self, panic: &mut Panic) {
        // Acquire and release: each discarding thread sees the work of its predecessor, and also the completions of all
        // threads that only added a request.
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

    /// Receives value by value, and drops each one after it has left the channel.
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
    /// Drops the remaining values, which are behind a slot that was never completed because its permit was leaked.
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
