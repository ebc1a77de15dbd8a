//! What a stage's code waits for until the test lets it go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use super::{LONG, ms};

/// Closed at first; its clones open together.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<AtomicBool>);

impl Gate {
    /// Lets everybody pass from now on.
    pub(crate) fn open(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether it was opened.
    pub(crate) fn is_open(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Waits until it is open, or for `LONG`: code that is held for ever would outlive its test.
    pub(crate) fn pass(&self) {
        let until = Instant::now() + LONG;
        while !self.is_open() && Instant::now() < until {
            thread::sleep(ms(1));
        }
    }
}
