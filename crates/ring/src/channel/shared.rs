//! What both ends of a channel have in common.

use std::mem::MaybeUninit;

use super::discard::Discarding;
use crate::Options;
use crate::contained::Panic;
use crate::padded::Padded;
use crate::primitive::atomic::{AtomicUsize, Ordering, fence};
use crate::primitive::{UnsafeCell, heavy};
use crate::sequencer::{Multi, SequencerParts};
use crate::slots::{Slots, slots_for};
use crate::wait::{Arrivals, Room};

pub(super) struct Shared<T, P: SequencerParts, C: SequencerParts> {
    pub(super) slots: Slots<MaybeUninit<T>>,
    /// How many of the slots may be taken: what was asked for.
    pub(super) capacity: u64,
    pub(super) producers: P,
    pub(super) consumers: C,
    pub(super) arrivals: Arrivals,
    pub(super) room: Room,
    pub(super) discarding: Discarding,
    ends: Padded<Ends>,
}

/// One position that a sender has claimed or is about to, and where to write.
#[derive(Debug)]
pub(super) struct Place<'a, T, P: SequencerParts> {
    pub(super) position: u64,
    pub(super) slot: &'a UnsafeCell<MaybeUninit<T>>,
    pub(super) completion: P::Completion<'a>,
}

const CLOSED: usize = 1 << (usize::BITS - 1);

/// Read with every send, written when a handle is cloned or dropped.
#[derive(Debug)]
struct Ends {
    /// With [`CLOSED`] they send no more.
    senders: AtomicUsize,
    receivers: AtomicUsize,
}

impl<T, P: SequencerParts, C: SequencerParts> Shared<T, P, C> {
    pub(super) fn new(options: &Options) -> Self {
        let slots = Slots::new(slots_for(options.capacity), MaybeUninit::uninit);
        let capacity = options.capacity as u64;
        Shared {
            producers: P::new(slots.capacity(), capacity),
            consumers: C::new(slots.capacity(), 0),
            slots,
            capacity,
            arrivals: Arrivals::new(options.strategy, options.set.clone()),
            room: Room::new(options.strategy, capacity),
            discarding: Discarding::default(),
            ends: Padded(Ends { senders: AtomicUsize::new(1), receivers: AtomicUsize::new(1) }),
        }
    }

    /// Up to where senders may claim, all before `from` being free: the capacity beyond what receivers have completed.
    #[inline(always)]
    pub(super) fn free_until(&self, from: u64) -> u64 {
        self.consumers.completed(from - self.capacity) + self.capacity
    }

    /// Up to where a sender that wants `most` positions should claim them, all before `from` being free. They are fetched, to be written.
    #[inline]
    pub(super) fn free_portion(&self, from: u64, most: u64) -> u64 {
        let until = self.free_until(from);
        self.producers.fetch(from..self.slots.fetch(from, until));
        Slots::<MaybeUninit<T>>::portion(from, until, most)
    }

    /// For how many places senders may be woken when a receiver has completed the positions from `start` to before `end`: at least as many as
    /// it has made free. Of many receivers, one that closes a gap makes those free, too, that others have completed behind it.
    pub(super) fn freed(&self, start: u64, end: u64) -> u64 {
        if !C::MANY {
            return end - start;
        }
        let capacity = self.slots.capacity();
        // Where there is another gap before `start`, a flag may be taken for one of this lap, and the run be too long.
        let run = self.consumers.completed(start).max(end) - start;
        // If the next lap has got here meanwhile, its flags cut the run short. Whoever has seen such a flag sees the claim before it.
        if self.consumers.claimed() > start + capacity { capacity } else { run }
    }

    #[inline(always)]
    pub(super) fn place(&self, position: u64) -> Place<'_, T, P> {
        Place { position, slot: self.slots.at(position), completion: self.producers.completion(position) }
    }

    /// Positions that are sent and not yet received, those in the making included.
    pub(super) fn len(&self) -> u64 {
        let received = self.consumers.claimed();
        self.producers.claimed().saturating_sub(received).min(self.capacity)
    }

    /// Moves the value at `position` out; `None` if its sender gave the place up.
    ///
    /// # Safety
    /// The caller has claimed the position for receiving, producers have completed it, and this is the only call for it.
    #[inline(always)]
    pub(super) unsafe fn move_out(&self, position: u64) -> Option<T> {
        if self.producers.is_skipped(position) {
            return None;
        }
        // SAFETY: a sender completed the position and did not skip it, so there is a value; the caller alone has the
        // right to it, and uses it once.
        Some(self.slots.at(position).with(|slot| unsafe { (*slot).assume_init_read() }))
    }

    #[inline(always)]
    pub(super) fn has_receivers(&self) -> bool {
        // Relaxed: a value that is sent while the last receiver leaves is discarded by its sender, see `discard`.
        if self.ends.receivers.load(Ordering::Relaxed) != 0 {
            return true;
        }
        // Pairs with the release of each receiver that left: who is told so has seen what they did before.
        fence(Ordering::Acquire);
        false
    }

    /// Whether values may be sent: a receiver is there, and none has closed the channel.
    pub(super) fn is_open(&self) -> bool {
        if !self.has_receivers() {
            return false;
        }
        if self.producers.is_closed() {
            // Pairs with the release of `close`, as in `has_receivers`.
            fence(Ordering::Acquire);
            return false;
        }
        true
    }

    /// If false, everything that was ever sent is visible.
    pub(super) fn has_senders(&self) -> bool {
        // Acquire pairs with the release of each sender that left, which came after all it sent, and with that of `close`, after which no
        // more is claimed.
        let senders = self.ends.senders.load(Ordering::Acquire);
        if senders & CLOSED == 0 {
            // The producers' cursor is not read here: whoever waits would take its line from the sender it waits for.
            return senders != 0;
        }
        // A place in the making is claimed, so whoever waits for it goes on waiting, and its sender rings.
        senders != CLOSED && self.producers.claimed() != self.consumers.claimed()
    }

    /// `events` have been completed. Calls `fenced` as [`Arrivals::came`].
    #[inline(always)]
    pub(super) fn came(&self, events: usize, fenced: impl FnOnce()) {
        if self.arrivals.are_heard(fenced) {
            self.wake(events);
        }
    }

    /// Wakes a receiver for each event. In a closed channel one receiver gets what has just been completed, and the others
    /// wait for nothing any more; in a channel without receivers it is discarded.
    ///
    /// The loads are relaxed, but come after the light fence that follows the completion: either they see the end, or what
    /// follows the heavy fence of the end sees the completion.
    #[cold]
    #[inline(never)]
    fn wake(&self, events: usize) {
        self.arrivals.wake(events);
        if !self.has_receivers() {
            let mut panic = Panic::default();
            self.discard(&mut panic);
            panic.end();
        } else if C::MANY && self.producers.is_closed() {
            self.arrivals.changed(|| ());
        }
    }

    /// How many senders there are.
    pub(super) fn senders(&self) -> usize {
        // Acquire: what is read after a count of 0 is what the last one left.
        self.ends.senders.load(Ordering::Acquire) & !CLOSED
    }

    /// How many receivers there are.
    pub(super) fn receivers(&self) -> usize {
        self.ends.receivers.load(Ordering::Relaxed)
    }

    /// Whether nothing more will be sent: all senders are gone, or the channel is closed.
    pub(super) fn is_sent(&self) -> bool {
        // Acquire, as in `has_senders`.
        matches!(self.ends.senders.load(Ordering::Acquire), 0 | CLOSED..)
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
        if self.ends.senders.fetch_sub(1, Ordering::AcqRel) & !CLOSED == 1 {
            self.arrivals.changed(|| ());
        } else {
            self.room.left();
        }
    }

    pub(super) fn receiver_left(&self) {
        // Release pairs with the fence in `has_receivers`; acquire: the last one passes on what the others did before.
        if self.ends.receivers.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.producers.close();
            self.room.wake_all();
            self.discard_from_now_on();
        }
    }
}

impl<T, C: SequencerParts> Shared<T, Multi, C> {
    /// Ends sending, and wakes all waiters of both sides.
    pub(super) fn close(&self) {
        self.producers.close();
        self.ends.senders.fetch_or(CLOSED, Ordering::Release);
        heavy();
        self.room.wake_all();
        self.arrivals.changed(|| ());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::sequencer::Progress;

    /// Claims one position of a side and completes it.
    fn pass<C: SequencerParts>(side: &C, hand: &C::Hand, frontier: impl Fn(u64) -> u64) {
        side.complete(side.claim(hand, 1, 1, frontier).unwrap());
    }

    #[test]
    fn who_closes_a_gap_frees_what_is_behind_it_also_when_it_is_lapped_before_it_counts() {
        let shared = Shared::<u8, Multi, Multi>::new(&Options::new(4));
        let sent = || pass(&shared.producers, &(), |from| shared.free_until(from));
        let claim = || shared.consumers.claim(&(), 1, 1, |from| shared.producers.completed(from)).unwrap();
        (0..4).for_each(|_| sent());
        let [first, second, third, fourth] = [(); 4].map(|()| claim());
        for claim in [fourth, second, third] {
            shared.consumers.complete(claim);
        }
        assert!(shared.freed(1, 2) >= 3 && shared.freed(3, 4) >= 1, "these are behind a gap");
        shared.consumers.complete(first);
        assert_eq!(shared.freed(0, 1), 4);
        sent();
        let next = claim();
        assert_eq!(shared.freed(0, 1), 4, "claimed, not completed");
        shared.consumers.complete(next);
        assert_eq!(shared.freed(0, 1), 4, "the flag of the first is of the next lap");
        // Nothing was ever written.
        std::mem::forget(shared);
    }
}
