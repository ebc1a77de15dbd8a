//! A gate that holds a stage's code back until the test opens it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use super::{LONG, ms};

/// A gate that is closed at first. All clones open together.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<AtomicBool>);

impl Gate {
    /// Opens the gate for good.
    pub(crate) fn open(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether the gate was opened.
    pub(crate) fn is_open(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Waits until the gate is open, but at most for `LONG`, because a stage's code that never ends would outlive its
    /// test.
    pub(crate) fn pass(&self) {
        let until = Instant::now() + LONG;
        while !self.is_open() && Instant::now() < until {
            thread::sleep(ms(1));
        }
    }
}
