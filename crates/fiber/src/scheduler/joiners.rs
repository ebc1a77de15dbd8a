//! Joiners: the waiters for a fiber's end.

use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};

use parking_lot::Mutex;

use crate::waiter::Waiter;

/// Records whether a fiber has ended, and the waiters to wake when it does.
#[derive(Default)]
pub(crate) struct Joiners {
    ended: AtomicBool,
    waiters: Mutex<Vec<Waiter>>,
}

impl Joiners {
    /// Returns whether the fiber has ended. If so, everything it wrote is visible.
    pub(crate) fn has_ended(&self) -> bool {
        // Acquire pairs with the release in `end`.
        self.ended.load(Acquire)
    }

    /// Adds a waiter, or returns `false` if the fiber has ended.
    pub(crate) fn add(&self, waiter: Waiter) -> bool {
        let mut waiters = self.waiters.lock();
        // `end` sets the flag under the mutex: either it sees this waiter, or this check sees the flag.
        if self.has_ended() {
            return false;
        }
        waiters.push(waiter);
        true
    }

    /// Marks the end and wakes the waiters.
    pub(crate) fn end(&self) {
        let waiters = {
            let mut waiters = self.waiters.lock();
            self.ended.store(true, Release);
            std::mem::take(&mut *waiters)
        };
        waiters.iter().for_each(Waiter::wake);
    }
}
