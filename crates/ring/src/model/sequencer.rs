//! Models of [`Multi`] alone, without a channel or waits whose orderings could hide a missing one.
//!
//! Only parity tells laps apart, so a thread that asks about a position must have seen the flags of the lap before. The
//! ring has one slot, so an old flag looks like one of the second lap.

use std::ops::Range;
use std::sync::Arc;

use loom::thread;

use super::explore;
use crate::sequencer::{Multi, Progress, SequencerParts};

struct Sides {
    producers: Multi,
    consumers: Multi,
}

impl Sides {
    fn new() -> Self {
        Sides { producers: Multi::new(1, 1), consumers: Multi::new(1, 0) }
    }

    /// The end of the available events; at most one event is ever published.
    fn events_until(&self, from: u64) -> u64 {
        let until = self.producers.completed(from);
        assert!(until <= 1, "asked from {from}, an event is available that no producer published");
        until
    }

    /// The end of the free positions; at most one event is ever consumed.
    fn free_until(&self, from: u64) -> u64 {
        let until = self.consumers.completed(from - 1) + 1;
        assert!(until <= 2, "asked from {from}, a position is free that no consumer freed");
        until
    }

    fn produce(&self) -> Option<Range<u64>> {
        self.producers.claim(&(), 1, 1, |from| self.free_until(from))
    }

    fn consume(&self) -> Option<Range<u64>> {
        self.consumers.claim(&(), 1, 1, |from| self.events_until(from))
    }

    /// Passes one event through the ring and claims the next position.
    fn pass_one(&self) {
        let Some(first) = self.produce() else { return };
        self.producers.complete(first);
        let Some(first) = self.consume() else { return };
        self.consumers.complete(first);
        let _ = self.produce();
    }
}

fn next_to_a_thread_that_passes_one_event(look: impl Fn(&Sides) + Send + Sync + 'static) {
    explore(3, move || {
        let sides = Arc::new(Sides::new());
        let others = Arc::clone(&sides);
        let other = thread::spawn(move || others.pass_one());
        look(&sides);
        other.join().unwrap();
    });
}

#[test]
fn no_event_is_available_that_is_not_published() {
    next_to_a_thread_that_passes_one_event(|sides| {
        sides.consumers.available(&(), |from| sides.events_until(from));
    });
}

#[test]
fn no_position_is_available_that_is_not_free() {
    next_to_a_thread_that_passes_one_event(|sides| {
        sides.producers.available(&(), |from| sides.free_until(from));
    });
}

#[test]
fn no_event_is_claimed_that_is_not_published() {
    next_to_a_thread_that_passes_one_event(|sides| {
        sides.consume();
    });
}

#[test]
fn no_position_is_claimed_that_is_not_free() {
    next_to_a_thread_that_passes_one_event(|sides| {
        sides.produce();
    });
}
