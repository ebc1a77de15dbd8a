//! What both ends of a channel have in common.

use std::mem::MaybeUninit;

use crate::Options;
use crate::padded::Padded;
use crate::primitive::atomic::{AtomicUsize, Ordering};
use crate::sequencer::SequencerParts;
use crate::slots::Slots;
use crate::wait::{Arrivals, Room};

#[derive(Debug)]
pub(super) struct Shared<T, P: SequencerParts, C: SequencerParts> {
    pub(super) slots: Slots<MaybeUninit<T>>,
    pub(super) producers: P,
    pub(super) consumers: C,
    pub(super) arrivals: Arrivals,
    pub(super) room: Room,
    ends: Padded<Ends>,
}

/// Read with every send, written when a handle is cloned or dropped.
#[derive(Debug)]
struct Ends {
    senders: AtomicUsize,
    receivers: AtomicUsize,
}

impl<T, P: SequencerParts, C: SequencerParts> Shared<T, P, C> {
    pub(super) fn new(options: &Options) -> Self {
        let slots = Slots::new(options.capacity, MaybeUninit::uninit);
        let capacity = slots.capacity();
        Shared {
            slots,
            producers: P::new(capacity, capacity),
            consumers: C::new(capacity, 0),
            arrivals: Arrivals::new(options.strategy, options.set.clone()),
            room: Room::new(options.strategy, capacity),
            ends: Padded(Ends { senders: AtomicUsize::new(1), receivers: AtomicUsize::new(1) }),
        }
    }

    /// Up to where senders may claim, all before `from` being free: a lap beyond what receivers have completed.
    #[inline(always)]
    pub(super) fn free_until(&self, from: u64) -> u64 {
        let capacity = self.slots.capacity();
        self.consumers.completed(from - capacity) + capacity
    }

    /// Positions that are sent and not yet received, those in the making included.
    pub(super) fn len(&self) -> u64 {
        let received = self.consumers.claimed();
        self.producers.claimed().saturating_sub(received).min(self.slots.capacity())
    }

    #[inline(always)]
    pub(super) fn has_receivers(&self) -> bool {
        // Relaxed: a value that is sent while the last receiver leaves is dropped with the ring.
        self.ends.receivers.load(Ordering::Relaxed) != 0
    }

    /// If false, everything that was ever sent is visible.
    pub(super) fn has_senders(&self) -> bool {
        // Acquire pairs with the release of each sender that left, which came after all it sent.
        self.ends.senders.load(Ordering::Acquire) != 0
    }

    pub(super) fn sender_came(&self) {
        // Relaxed: who clones has a handle, so the count is not zero.
        self.ends.senders.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn receiver_came(&self) {
        self.ends.receivers.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn sender_left(&self) {
        // Acquire and release: the last one passes on what the others did before.
        if self.ends.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.arrivals.changed(|| ());
        } else {
            self.room.left();
        }
    }

    pub(super) fn receiver_left(&self) {
        if self.ends.receivers.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.room.wake_all();
        }
    }
}

impl<T, P: SequencerParts, C: SequencerParts> Drop for Shared<T, P, C> {
    /// Drops what was sent and not received.
    fn drop(&mut self) {
        for position in self.consumers.claimed()..self.producers.claimed() {
            if self.producers.is_complete(position) && !self.producers.is_skipped(position) {
                // SAFETY: complete and not skipped: a sender has written a value here. Not claimed by a
                // receiver: it was not moved out. Nobody else has access any more.
                self.slots.at(position).with_mut(|slot| unsafe { (*slot).assume_init_drop() });
            }
        }
    }
}
