//! Test-and-test-and-set with bounded exponential back-off.

use super::spin::Backoff;
use super::{const_new, raw_mutex};
use crate::lock::Tas;

/// Checks the lock less and less often while it is taken.
///
/// Each check that finds it taken makes the next pause four times as long, up to some ten microseconds; from then on
/// the waiter yields as well. So the holder works undisturbed, and the waiters that pause longest are those that came
/// first: very unfair. Otherwise like [`Ttas`](super::Ttas).
#[derive(Debug)]
pub struct TtasBackoff(Tas);

impl TtasBackoff {
    const_new!(TtasBackoff(Tas::new()));

    /// Waits until the lock is acquired. Acquire: everything the previous holder wrote is visible.
    #[inline]
    pub fn acquire(&self) {
        if !self.try_acquire() {
            self.wait();
        }
    }

    #[cold]
    fn wait(&self) {
        let mut backoff = Backoff::new();
        while self.is_taken() || !self.try_acquire() {
            backoff.pause();
        }
    }

    /// Takes the lock if it is free. Wait-free.
    #[inline]
    pub fn try_acquire(&self) -> bool {
        self.0.try_acquire()
    }

    /// Releases the lock.
    ///
    /// # Safety
    /// The caller holds the lock.
    #[inline]
    pub unsafe fn release(&self) {
        // SAFETY: the caller holds this lock, and with it the inner one.
        unsafe { self.0.release() };
    }

    /// Whether a thread holds the lock now.
    pub fn is_taken(&self) -> bool {
        self.0.is_taken()
    }
}

raw_mutex!(TtasBackoff);
