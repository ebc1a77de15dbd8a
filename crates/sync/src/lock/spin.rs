//! What a thread does between two looks at a lock.

use crate::primitive::spin_loop;

/// After so many looks a spinning thread yields: the holder may be waiting for just this core.
const LOOKS_BEFORE_YIELD: u32 = 100;
/// The first back-off, in pause instructions, and how many times as long the next one is.
const FIRST: u32 = 8;
const GROWTH: u32 = 4;
/// The longest back-off, in pause instructions: some ten microseconds.
const LONGEST: u32 = 512;
/// How many of the longest it takes to run out of patience: whoever sleeps and is woken costs everybody some microseconds, so
/// that should happen every two hundred at most.
#[cfg(not(loom))]
const PATIENCE: u32 = 20;

/// Looks that follow each other closely.
pub(super) struct Looks(u32);

impl Looks {
    pub(super) fn new() -> Self {
        Looks(0)
    }

    /// Until the next look: a pause instruction, or every now and then a yield.
    pub(super) fn pause(&mut self) {
        self.0 = self.0.wrapping_add(1);
        if self.0.is_multiple_of(LOOKS_BEFORE_YIELD) {
            yield_now();
        } else {
            pause();
        }
    }
}

/// Looks that are further and further apart, up to a bound: while one thread stays away, the other has the cache line to itself. They
/// grow fast, for each look takes the line from the holder.
pub(super) struct Backoff {
    pauses: u32,
    longest: u32,
}

impl Backoff {
    pub(super) fn new() -> Self {
        Backoff { pauses: FIRST, longest: 0 }
    }

    /// Whether it has waited for long.
    #[cfg(not(loom))]
    pub(super) fn is_out_of_patience(&self) -> bool {
        self.longest >= PATIENCE
    }

    /// Until the next look: longer than before. At the bound, a yield besides.
    pub(super) fn pause(&mut self) {
        if self.pauses == LONGEST {
            self.longest = self.longest.saturating_add(1);
            yield_now();
        }
        (0..self.pauses).for_each(|_| pause());
        self.pauses = LONGEST.min(GROWTH * self.pauses);
    }
}

#[cfg(not(loom))]
use std::thread::yield_now;

#[cfg(loom)]
use loom::thread::yield_now;

/// In a model the others have to get on, and no time passes.
fn pause() {
    spin_loop();
    #[cfg(loom)]
    yield_now();
}
