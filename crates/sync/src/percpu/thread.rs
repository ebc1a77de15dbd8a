//! A small number for each thread: which shard it takes where sections do not run.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The threads that asked so far.
static THREADS: AtomicU32 = AtomicU32::new(0);

const UNKNOWN: u32 = u32::MAX;

thread_local! {
    static NUMBER: Cell<u32> = const { Cell::new(UNKNOWN) };
}

/// Neighbours in time have neighbouring numbers, so threads that start together share shards only if they are more than
/// there are shards.
pub(super) fn number() -> u32 {
    NUMBER.with(|number| {
        if number.get() == UNKNOWN {
            number.set(THREADS.fetch_add(1, Relaxed) % UNKNOWN);
        }
        number.get()
    })
}
