//! The promises of reclamation, step by step.
#![cfg(all(feature = "std", not(loom)))]

#[path = "../../../fence/tests/support/again.rs"]
mod again;

mod destructors;
mod epochs;
mod hazards;
mod structures;
mod threads;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use millstream_sync::reclaim::{Fence, Settings, epoch, hazard};

/// Counts its living instances.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn boxed(alive: &Arc<AtomicUsize>) -> *mut Counted {
        alive.fetch_add(1, Relaxed);
        Box::into_raw(Box::new(Counted(Arc::clone(alive))))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

fn alive() -> Arc<AtomicUsize> {
    Arc::new(AtomicUsize::new(0))
}

/// Waits until `is_so` returns true: other tests pin for a while, but not forever.
#[track_caller]
fn until_freed(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(120), "an object was not freed within two minutes");
        epoch::flush();
        hazard::flush();
        thread::yield_now();
    }
}

const FENCES: [Fence; 2] = [Fence::FAST, Fence::QUIET];

fn small_batches(fence: Fence) -> Settings {
    Settings { batch: 8, fence }
}
