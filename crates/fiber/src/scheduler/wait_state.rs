//! The wait word of a fiber: it records whether the fiber sleeps, and whether a wake-up is pending.
//!
//! | value | meaning |
//! | --- | --- |
//! | `AWAKE` | The fiber runs or is in a queue. |
//! | `WOKEN` | A wake-up came while the fiber was awake; its next wait returns immediately. |
//! | `ASLEEP` | The fiber waits, or is about to leave its worker in order to wait. |
//!
//! Of the threads that wake a sleeping fiber, exactly one finds `ASLEEP`, and that thread puts the fiber into a queue. This may
//! happen before the fiber has left its worker. That does no harm: the queue belongs to that worker, which checks the queue only
//! after the fiber has left.
//!
//! A wake-up always writes the word, even if it is `WOKEN` already. Everything that the waker wrote before is therefore visible
//! when the wait returns.

use crate::primitive::{
    AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

const AWAKE: u32 = 0;
const WOKEN: u32 = 1;
const ASLEEP: u32 = 2;

/// Whether a fiber sleeps, and whether a wake-up is pending.
#[derive(Debug)]
pub(crate) struct WaitState(AtomicU32);

impl WaitState {
    pub(crate) fn new() -> Self {
        WaitState(AtomicU32::new(AWAKE))
    }

    /// Begins a wait. Returns `false` if a wake-up was pending: the call has consumed it, and the fiber must not wait. After
    /// `true`, the fiber leaves its worker, and calls [`end`](Self::end) when it runs again.
    pub(crate) fn begin(&self) -> bool {
        // Release pairs with the acquire in `wake`: a waker that finds the fiber asleep sees the fiber's worker. On failure,
        // `end` does the acquire.
        match self.0.compare_exchange(AWAKE, ASLEEP, Release, Relaxed) {
            Ok(_) => true,
            Err(_) => {
                self.end();
                false
            }
        }
    }

    /// Ends a wait, after the fiber was resumed. Consumes all wake-ups so far.
    pub(crate) fn end(&self) {
        // Acquire pairs with the release of every wake-up that this exchange consumes.
        self.0.swap(AWAKE, Acquire);
    }

    /// Wakes the fiber. Returns `true` if it was asleep: the caller, and no other thread, must then put the fiber into its
    /// worker's queue.
    pub(crate) fn wake(&self) -> bool {
        // Release pairs with the fiber's acquire in `begin` and `end`; acquire with its release in `begin`.
        self.0.swap(WOKEN, AcqRel) == ASLEEP
    }

    /// Returns whether the fiber sleeps, for a report.
    pub(crate) fn is_asleep(&self) -> bool {
        self.0.load(Relaxed) == ASLEEP
    }
}
