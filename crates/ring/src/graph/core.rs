//! What producers and consumers of a ring share.

use std::sync::Arc;

use super::gate::Gate;
use crate::Options;
use crate::padded::Padded;
use crate::primitive::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sequencer::{Progress, SequencerParts};
use crate::slots::Slots;
use crate::wait::{Arrivals, Places, Room};

#[derive(Debug)]
pub(super) struct Core<E, P> {
    pub(super) slots: Slots<E>,
    pub(super) producers: Arc<P>,
    pub(super) gate: Gate,
    pub(super) arrivals: Arrivals,
    pub(super) room: Room,
    /// How many producers there are; the builder has the first.
    open: Padded<AtomicUsize>,
    /// Whether a handler has.
    panicked: AtomicBool,
}

impl<E, P: SequencerParts> Core<E, P> {
    pub(super) fn new(options: &Options, make: impl FnMut() -> E) -> Self {
        let slots = Slots::new(options.capacity, make);
        let capacity = slots.capacity();
        Core {
            slots,
            producers: Arc::new(P::new(capacity, capacity)),
            gate: Gate::new(),
            arrivals: Arrivals::new(options.strategy, options.set.clone()),
            room: Room::new(options.strategy, capacity),
            open: Padded(AtomicUsize::new(1)),
            panicked: AtomicBool::new(false),
        }
    }

    /// Up to where producers may claim, all before `from` being free.
    pub(super) fn free_until(&self, from: u64) -> u64 {
        let capacity = self.slots.capacity();
        self.gate.completed(from - capacity) + capacity
    }

    /// Up to where a producer that wants `most` positions should claim them, all before `from` being free. They are fetched, to be written.
    #[inline]
    pub(super) fn free_portion(&self, from: u64, most: u64) -> u64 {
        let until = self.free_until(from);
        self.producers.fetch(from..self.slots.fetch(from, until));
        Slots::<E>::portion(from, until, most)
    }

    /// A consumer has completed positions, the last of them before `end`: whoever follows may go on. Calls `fenced` as `Arrivals::came`.
    #[inline(always)]
    pub(super) fn consumed(&self, end: u64, fenced: impl FnOnce()) {
        // Where all wait for the same, that is the producers.
        self.arrivals.came_to_others(fenced);
        if let Some(due) = self.room.freed(end, || ()) {
            self.ring_for_room(due);
        }
    }

    #[cold]
    #[inline(never)]
    fn ring_for_room(&self, due: u64) {
        // A task may want many positions, so all look.
        let places = Places { may_have_gaps: false, number: || usize::MAX };
        // Not only where this consumer is: a fast one would have the room believe that what a slow one still holds is free.
        self.room.ring(due, places, || self.gate.slowest(), || self.producers.claimed());
    }

    /// A consumer has nothing to consume: more producers may be needed.
    pub(super) fn found_nothing(&self, sleeps: bool) {
        self.room.drained(sleeps || !P::MANY, || self.gate.slowest(), || self.producers.claimed());
    }

    /// A handler has panicked; its consumer has not left yet, or is through with its last event.
    pub(super) fn handler_panicked(&self) {
        // Relaxed: a fact without data. Whoever finds that the consumer has left sees this, too, by that release.
        self.panicked.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_panicked(&self) -> bool {
        self.panicked.load(Ordering::Relaxed)
    }

    pub(super) fn producer_came(&self) {
        // Relaxed: who clones has one, so the count is not zero.
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn producer_left(&self) {
        // Acquire and release: the last one passes on what the others published.
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.arrivals.changed(|| ());
        } else {
            self.room.left();
        }
    }

    /// If false, everything that was ever published is visible.
    pub(super) fn has_producers(&self) -> bool {
        self.open.load(Ordering::Acquire) != 0
    }
}
