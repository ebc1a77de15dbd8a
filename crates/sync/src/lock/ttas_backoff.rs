//! Test-and-test-and-set with bounded exponential back-off.

use super::spin::Backoff;
use super::{const_new, raw_mutex};
use crate::lock::Tas;

/// Looks at the lock less and less often while it is taken.
///
/// Each look that finds it taken makes the next pause four times as long, up to some ten microseconds; from then on it yields besides. So
/// the holder works undisturbed, and the threads that are most patient are those that came first: very unfair. Otherwise like [`Ttas`](super::Ttas).
#[derive(Debug)]
pub struct TtasBackoff(Tas);

impl TtasBackoff {
    const_new!(TtasBackoff(Tas::new()));

    /// Waits until it is taken. Acquire: what the last holder did is visible.
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

    /// Takes it if it is free. Wait-free.
    #[inline]
    pub fn try_acquire(&self) -> bool {
        self.0.try_acquire()
    }

    /// Frees it.
    ///
    /// # Safety
    /// The caller has taken it.
    #[inline]
    pub unsafe fn release(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.0.release() };
    }

    /// Whether somebody has it now.
    pub fn is_taken(&self) -> bool {
        self.0.is_taken()
    }
}

raw_mutex!(TtasBackoff);
