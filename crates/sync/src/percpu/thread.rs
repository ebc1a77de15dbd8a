//! A small number for each thread, which selects its shard where sections do not run.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Number of threads that have asked so far.
static THREADS: AtomicU32 = AtomicU32::new(0);

const UNKNOWN: u32 = u32::MAX;

thread_local! {
    static NUMBER: Cell<u32> = const { Cell::new(UNKNOWN) };
}

/// This thread's number. Threads that start together have adjacent numbers, so they share shards only if they outnumber
/// the shards.
pub(super) fn number() -> u32 {
    NUMBER.with(|number| {
        if number.get() == UNKNOWN {
            number.set(THREADS.fetch_add(1, Relaxed) % UNKNOWN);
        }
        number.get()
    })
}
