//! Test-and-test-and-set.

use super::spin::Looks;
use super::{const_new, raw_mutex};
use crate::lock::Tas;

/// Tries to take the lock only when it looks free.
///
/// Waiting threads only read, so the line may rest in all caches until the lock is released; then all of them try at
/// once. Otherwise like [`Tas`].
#[derive(Debug)]
pub struct Ttas(Tas);

impl Ttas {
    const_new!(Ttas(Tas::new()));

    /// Waits until the lock is acquired. Acquire: everything the previous holder wrote is visible.
    #[inline]
    pub fn acquire(&self) {
        // A check that finds the lock free decides nothing; the try decides.
        while !self.try_acquire() {
            let mut looks = Looks::new();
            while self.is_taken() {
                looks.pause();
            }
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

raw_mutex!(Ttas);
