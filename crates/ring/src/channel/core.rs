//! The state that both ends of a channel share.

use std::mem::MaybeUninit;
use std::ops::Range;

use super::discard::Discarding;
use crate::Options;
use crate::contained::Panic;
use crate::padded::CachePadded;
use crate::primitive::atomic::{AtomicUsize, Ordering, fence};
use crate::primitive::{UnsafeCell, heavy};
use crate::sequencer::{Multi, SequencerParts};
use crate::slots::{Slots, slots_for};
use crate::wait::{Arrivals, FreeSpace};

pub(super) struct Core<T, P: SequencerParts, C: SequencerParts> {
    pub(super) slots: Slots<MaybeUninit<T>>,
    /// The number of slots that may be in use, as given by the user.
    pub(super) capacity: u64,
    pub(super) producers: P,
    pub(super) consumers: C,
    pub(super) arrivals: Arrivals,
    pub(super) free_space: FreeSpace,
    pub(super) discarding: Discarding,
    ends: CachePadded<Ends>,
}

/// A position that a sender has claimed or is about to claim, and its slot.
#[derive(Debug)]
pub(super) struct Place<'a, T, P: SequencerParts> {
    pub(super) position: u64,
    pub(super) slot: &'a UnsafeCell<MaybeUninit<T>>,
    pub(super) completion: P::Completion<'a>,
}

/// The bit of [`Ends::senders`] that says that the channel is closed.
const CLOSED: usize = 1 << (usize::BITS - 1);

/// The numbers of senders and receivers. Every send reads them; only cloning or dropping a handle writes them.
#[derive(Debug)]
struct Ends {
    /// The number of senders, plus [`CLOSED`] once the channel is closed.
    senders: AtomicUsize,
    receivers: AtomicUsize,
}

impl<T, P: SequencerParts, C: SequencerParts> Core<T, P, C> {
    pub(super) fn new(options: &Options) -> Self {
        let slots = Slots::new(slots_for(options.capacity), MaybeUninit::uninit);
        let capacity = options.capacity as u64;
        Core {
            producers: P::new(slots.capacity(), capacity),
            consumers: C::new(slots.capacity(), 0),
            slots,
            capacity,
            arrivals: Arrivals::new(options.strategy, capacity, options.set.clone()),
            free_space: FreeSpace::new(options.strategy, capacity),
            discarding: Discarding::default(),
            ends: CachePadded(Ends { senders: AtomicUsize::new(1), receivers: AtomicUsize::new(1) }),
        }
    }

    /// The position up to which senders may claim: one capacity beyond the positions that receivers have completed. All
    /// positions before `from` are known to be free.
    #[inline(always)]
    pub(super) fn free_until(&self, from: u64) -> u64 {
        self.consumers.completed(from - self.capacity) + self.capacity
    }

    /// The position up to which a sender that wants `most` positions should claim. All positions before `from` are
    /// free. Prefetches the cache lines of the free positions for writing.
    #[inline]
    pub(super) fn free_portion(&self, from: u64, most: u64) -> u64 {
        let until = self.free_until(from);
        self.producers.fetch(from..self.slots.fetch(from, until));
        if P::MANY { until } else { Slots::<MaybeUninit<T>>::portion(from, until, most) }
    }

    /// Prefetches, for a sender that has claimed `claim`, the lines that it or another sender will write two portions
    /// later. All positions before `until` are free.
    #[inline(always)]
    pub(super) fn fetch_ahead(&self, claim: Range<u64>, until: u64) {
        if P::MANY {
            self.slots.fetch_ahead(claim, until, |ahead| self.producers.fetch(ahead));
        }
    }

    /// The number of slots for which senders may be woken after a receiver has completed the positions `start..end`. It
    /// is at least the number of slots that became free. A receiver that closes a gap also frees the slots behind the
    /// gap, which other receivers have completed.
    pub(super) fn freed(&self, start: u64, end: u64) -> u64 {
        if !C::MANY {
            return end - start;
        }
        let capacity = self.slots.capacity();
        // If there is another gap before `start`, a flag of another lap may be mistaken for one of this lap, and the
        // run may be too long. That only wakes too many senders.
        let run = self.consumers.completed(start).max(end) - start;
        // If the next lap has already reached these slots, its flags cut the run short, so all slots count as freed. A
        // thread that sees such a flag also sees the claim that preceded it.
        if self.consumers.claimed() > start + capacity { capacity } else { run }
    }

    #[inline(always)]
    pub(super) fn place(&self, position: u64) -> Place<'_, T, P> {
        Place { position, slot: self.slots.at(position), completion: self.producers.completion(position) }
    }

    /// The number of positions that senders have claimed and receivers have not. Includes unfinished sends.
    pub(super) fn len(&self) -> u64 {
        let received = self.consumers.claimed();
        self.producers.claimed().saturating_sub(received).min(self.capacity)
    }

    /// Moves the value at `position` out; `None` if its sender gave up the slot.
    ///
    /// # Safety
    /// The caller has claimed the position for receiving, a sender has completed it, and no other call moves its value
    /// out.
    #[inline(always)]
    pub(super) unsafe fn move_out(&self, position: u64) -> Option<T> {
        if self.producers.is_skipped(position) {
            return None;
        }
        // SAFETY: a sender completed the position and did not skip it, so the slot holds a value. Only the caller has
        // claimed it, and this is the only call for it.
        Some(self.slots.at(position).with(|slot| unsafe { (*slot).assume_init_read() }))
    }

    #[inline(always)]
    pub(super) fn has_receivers(&self) -> bool {
        // Relaxed: a sender that misses the departure of the last receiver discards its value later, see `discard`.
        if self.ends.receivers.load(Ordering::Relaxed) != 0 {
            return true;
        }
        // Pairs with the release of each departed receiver, so this sender sees everything that the receivers did
        // before they left.
        fence(Ordering::Acquire);
        false
    }

    /// Whether values may be sent: there is a receiver, and the channel is not closed.
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

    /// Whether values may still arrive. If `false`, every value ever sent is visible.
    pub(super) fn has_senders(&self) -> bool {
        // Acquire pairs with two releases: that of each departed sender, which came after all its sends, and that of
        // `close`, after which no position is claimed.
        let senders = self.ends.senders.load(Ordering::Acquire);
        if senders & CLOSED == 0 {
            // This does not read the producers' cursor, because a waiting receiver would then take the cursor's cache
            // line away from the sender.
            return senders != 0;
        }
        // While a claimed slot is unfinished, receivers keep waiting; its sender will notify them.
        senders != CLOSED && self.producers.claimed() != self.consumers.claimed()
    }

    /// Announces that `events` have been completed. Calls `fenced` as [`Arrivals::notify`] does.
    #[inline(always)]
    pub(super) fn notify(&self, events: usize, fenced: impl FnOnce()) {
        if self.arrivals.has_waiters(fenced) {
            self.wake(events);
        }
    }

    /// Wakes a receiver for each event. In a closed channel, one receiver gets the value just completed, and the others
    /// must learn that no more will come, so this wakes them all. In a channel without receivers, this discards the
    /// value.
    ///
    /// The loads are relaxed, but they come after the light fence that follows the completion. Either they see that the
    /// channel is closed or has no receivers, or the thread that ended the channel sees the completion after its heavy
    /// fence. The increment of the event count cannot replace these fences, because it does not make visible to this
    /// thread what the sleepers have seen. A receiver that has seen the closed channel sleeps again until the last
    /// claimed slots are complete, and does not execute another fence.
    #[cold]
    #[inline(never)]
    fn wake(&self, events: usize) {
        self.arrivals.wake(events);
        if !self.has_receivers() {
            let mut panic = Panic::default();
            self.discard(&mut panic);
            panic.end();
        } else if C::MANY && self.producers.is_closed() {
            self.arrivals.notify_all(|| ());
        }
    }

    /// The number of senders.
    pub(super) fn senders(&self) -> usize {
        // Acquire pairs with the release in `sender_left`: a thread that reads 0 sees everything the last sender wrote.
        self.ends.senders.load(Ordering::Acquire) & !CLOSED
    }

    /// Whether no more values will be sent: all senders are gone, or the channel is closed.
    pub(super) fn is_sent(&self) -> bool {
        // Acquire, as in `has_senders`.
        matches!(self.ends.senders.load(Ordering::Acquire), 0 | CLOSED..)
    }

    pub(super) fn sender_joined(&self) {
        // Relaxed: the cloning thread has a handle, so the count is not zero.
        self.ends.senders.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn receiver_joined(&self) {
        self.ends.receivers.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn sender_left(&self) {
        // Acquire and release: a thread that sees the last sender leave also sees everything the other senders did.
        if self.ends.senders.fetch_sub(1, Ordering::AcqRel) & !CLOSED == 1 {
            self.arrivals.notify_all(|| ());
        } else {
            self.free_space.producer_left();
        }
    }

    pub(super) fn receiver_left(&self) {
        // Release pairs with the fence in `has_receivers`. Acquire: a thread that sees the last receiver leave also
        // sees everything the other receivers did.
        if self.ends.receivers.fetch_sub(1, Ordering::AcqRel) == 1 {
            // Claims end before values are discarded, so `may_be_sending` can tell whether a claim is unfinished.
            self.producers.close();
            self.free_space.wake_all();
            self.discard_from_now_on();
        }
    }
}

impl<T, C: SequencerParts> Core<T, Multi, C> {
    /// Closes the channel and wakes all waiters on both sides.
    pub(super) fn close(&self) {
        // Claims end first. Release pairs with the acquire in `has_senders`: a receiver that sees the channel closed
        // sees all claims. The heavy fence pairs with the light fence that follows a completion, see `wake`.
        self.producers.close();
        self.ends.senders.fetch_or(CLOSED, Ordering::Release);
        heavy();
        self.free_space.wake_all();
        self.arrivals.notify_all(|| ());
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
    fn closing_a_gap_frees_the_slots_behind_it_even_after_a_lap() {
        let core = Core::<u8, Multi, Multi>::new(&Options::new(4));
        let sent = || pass(&core.producers, &(), |from| core.free_until(from));
        let claim = || core.consumers.claim(&(), 1, 1, |from| core.producers.completed(from)).unwrap();
        (0..4).for_each(|_| sent());
        let [first, second, third, fourth] = [(); 4].map(|()| claim());
        for claim in [fourth, second, third] {
            core.consumers.complete(claim);
        }
        assert!(core.freed(1, 2) >= 3 && core.freed(3, 4) >= 1, "positions behind a gap free at least themselves");
        core.consumers.complete(first);
        assert_eq!(core.freed(0, 1), 4);
        sent();
        let next = claim();
        assert_eq!(core.freed(0, 1), 4, "a claim without a completion changed the result");
        core.consumers.complete(next);
        assert_eq!(core.freed(0, 1), 4, "the first flag belongs to the next lap");
        // No slot was ever written, so the values must not be dropped.
        std::mem::forget(core);
    }
}
