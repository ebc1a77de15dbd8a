//! The state that a ring's producers and consumers share.

use std::ops::Range;
use std::sync::Arc;

use super::leaves::Leaves;
use crate::Options;
use crate::padded::CachePadded;
use crate::primitive::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sequencer::{Progress, SequencerParts};
use crate::slots::Slots;
use crate::wait::{Arrivals, FreeSpace, Places};

#[derive(Debug)]
pub(super) struct Core<E, P> {
    pub(super) slots: Slots<E>,
    pub(super) producers: Arc<P>,
    pub(super) leaves: Leaves,
    pub(super) arrivals: Arrivals,
    pub(super) free_space: FreeSpace,
    /// The number of producers, including the builder's.
    open: CachePadded<AtomicUsize>,
    /// Whether a handler has panicked.
    panicked: AtomicBool,
}

impl<E, P: SequencerParts> Core<E, P> {
    pub(super) fn new(options: &Options, make: impl FnMut() -> E) -> Self {
        let slots = Slots::new(options.capacity, make);
        let capacity = slots.capacity();
        Core {
            slots,
            producers: Arc::new(P::new(capacity, capacity)),
            leaves: Leaves::new(),
            arrivals: Arrivals::new(options.strategy, capacity, options.set.clone()),
            free_space: FreeSpace::new(options.strategy, capacity),
            open: CachePadded(AtomicUsize::new(1)),
            panicked: AtomicBool::new(false),
        }
    }

    /// The position up to which producers may claim. All positions before `from` are known to be free.
    pub(super) fn free_until(&self, from: u64) -> u64 {
        let capacity = self.slots.capacity();
        self.leaves.completed(from - capacity) + capacity
    }

    /// The position up to which a producer that wants `most` positions should claim. All positions before `from` are
    /// free. Prefetches the cache lines of the free positions for writing.
    #[inline]
    pub(super) fn free_portion(&self, from: u64, most: u64) -> u64 {
        let until = self.free_until(from);
        self.producers.fetch(from..self.slots.fetch(from, until));
        if P::MANY { until } else { Slots::<E>::portion(from, until, most) }
    }

    /// Prefetches, for a producer that has claimed `claim`, the lines that it or another producer will write two
    /// portions later. All positions before `until` are free.
    #[inline(always)]
    pub(super) fn fetch_ahead(&self, claim: Range<u64>, until: u64) {
        if P::MANY {
            self.slots.fetch_ahead(claim, until, |ahead| self.producers.fetch(ahead));
        }
    }

    /// Wakes followers after a consumer has completed positions. Calls `fenced` as `Arrivals::notify` does.
    #[inline(always)]
    pub(super) fn consumed(&self, fenced: impl FnOnce()) {
        // Interchangeable waiters all wait for the producers, so this completion concerns none of them.
        self.arrivals.notify_others(fenced);
        if self.free_space.freed(|| ()) {
            self.wake_for_space();
        }
    }

    #[cold]
    #[inline(never)]
    fn wake_for_space(&self) {
        // A task may need many positions, so all tasks are woken, and each checks.
        let places = Places { may_have_gaps: false, number: || usize::MAX };
        self.free_space.wake_waiters(places);
    }

    /// Called by a consumer that has found no event for some time, because more producers may be needed.
    pub(super) fn starved(&self) {
        // This uses the position of the slowest consumer. With a faster consumer's position, slots that the slowest one
        // still uses would look free.
        self.free_space.starved(|| self.producers.claimed().saturating_sub(self.leaves.slowest()));
    }

    /// Records that a handler has panicked. The handler's consumer calls this before it leaves, or after its last
    /// event.
    pub(super) fn handler_panicked(&self) {
        // Relaxed: the flag guards no data. A thread that finds that the consumer has left also sees the flag, because
        // the consumer left with a release.
        self.panicked.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_panicked(&self) -> bool {
        self.panicked.load(Ordering::Relaxed)
    }

    pub(super) fn producer_joined(&self) {
        // Relaxed: the cloning thread has a producer, so the count is not zero.
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn producer_left(&self) {
        // Acquire and release: a thread that sees the last producer leave also sees the events of the others.
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.arrivals.notify_all(|| ());
        } else {
            self.free_space.producer_left();
        }
    }

    /// Whether there are producers. If `false`, every event ever published is visible.
    pub(super) fn has_producers(&self) -> bool {
        self.open.load(Ordering::Acquire) != 0
    }
}
