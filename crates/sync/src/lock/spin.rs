//! The pauses of a waiter between two checks of a lock.

use crate::primitive::spin_loop;

/// The number of checks after which a spinning thread yields: the holder may be waiting for this very core.
const CHECKS_PER_YIELD: u32 = 100;
/// The shortest back-off, in pause instructions.
const MIN_PAUSES: u32 = 8;
/// The longest back-off, which takes some ten microseconds.
const MAX_PAUSES: u32 = 512;
/// The factor by which the back-off grows.
const GROWTH: u32 = 4;
/// The number of back-offs of maximum length before a waiter sleeps. A sleep and its wake-up cost all threads involved
/// some microseconds, so they should happen at most once in two hundred microseconds.
#[cfg(not(loom))]
const MAX_BACKOFFS: u32 = 20;

/// A spin policy of closely spaced checks.
pub(super) struct Checks(u32);

impl Checks {
    pub(super) fn new() -> Self {
        Checks(0)
    }

    /// Pauses until the next check: a pause instruction, or every now and then a yield.
    pub(super) fn pause(&mut self) {
        self.0 = self.0.wrapping_add(1);
        if self.0.is_multiple_of(CHECKS_PER_YIELD) {
            yield_now();
        } else {
            pause();
        }
    }
}

/// A spin policy with exponential back-off up to a bound: during a pause, the holder has the cache line to itself. The
/// pauses grow fast, because each check takes the line from the holder.
pub(super) struct Backoff {
    pauses: u32,
    /// The number of back-offs of maximum length so far.
    longest: u32,
}

impl Backoff {
    pub(super) fn new() -> Self {
        Backoff { pauses: MIN_PAUSES, longest: 0 }
    }

    /// Whether the waiter has spun for long enough to go to sleep.
    #[cfg(not(loom))]
    pub(super) fn is_spent(&self) -> bool {
        self.longest >= MAX_BACKOFFS
    }

    /// Pauses until the next check, for longer than before. At the bound, it yields as well.
    pub(super) fn pause(&mut self) {
        if self.pauses == MAX_PAUSES {
            self.longest = self.longest.saturating_add(1);
            yield_now();
        }
        (0..self.pauses).for_each(|_| pause());
        self.pauses = MAX_PAUSES.min(GROWTH * self.pauses);
    }
}

#[cfg(not(loom))]
use std::thread::yield_now;

#[cfg(loom)]
use loom::thread::yield_now;

/// Pauses for one instruction. In a model no time passes, and the other threads must get a chance to run.
fn pause() {
    spin_loop();
    #[cfg(loom)]
    yield_now();
}
