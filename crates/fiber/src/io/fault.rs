//! Fault injection for the crate's own tests. A random sequence, generated from a seed, decides which calls are interrupted,
//! delayed, cut short, or fail.

use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

static ARE_PLANNED: AtomicBool = AtomicBool::new(false);
static STATE: AtomicU64 = AtomicU64::new(0);

/// The message of an injected failure.
pub(crate) const FAILURE: &str = "a planned failure";

/// As long as a plan exists, calls have faults drawn from its seed. There is one plan at a time.
pub(crate) struct Plan(());

impl Plan {
    pub(crate) fn begin(seed: u64) -> Self {
        STATE.store(seed, Relaxed);
        assert!(!ARE_PLANNED.swap(true, Relaxed), "one plan at a time");
        Plan(())
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        ARE_PLANNED.store(false, Relaxed);
    }
}

/// Draws the next number of the plan's sequence (SplitMix64).
fn draw() -> u64 {
    let mut x = STATE.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

thread_local! {
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// Returns the number of calls that this thread has made so far.
pub(super) fn calls() -> u64 {
    CALLS.get()
}

/// Runs before each call. May delay the call; an error means that the call fails without being made.
pub(super) fn before_call() -> io::Result<()> {
    CALLS.set(CALLS.get() + 1);
    if !ARE_PLANNED.load(Relaxed) {
        return Ok(());
    }
    match draw() % 1000 {
        0..200 => Err(io::ErrorKind::Interrupted.into()),
        200..300 => {
            std::thread::yield_now();
            Ok(())
        }
        300..302 => Err(io::Error::other(FAILURE)),
        _ => Ok(()),
    }
}

/// Returns how many of the `length` bytes of a buffer an operation may use. A plan may reduce the number.
pub(crate) fn shorten(length: usize) -> usize {
    if ARE_PLANNED.load(Relaxed) && draw().is_multiple_of(4) { length.min(1 + draw() as usize % 3) } else { length }
}
