//! Test-and-test-and-set.

use super::spin::Looks;
use super::{const_new, raw_mutex};
use crate::lock::Tas;

/// Tries to take the lock only when it looks free.
///
/// Waiting threads read, so the line may rest in all caches until it is freed; then all of them try at once. Otherwise like [`Tas`].
#[derive(Debug)]
pub struct Ttas(Tas);

impl Ttas {
    const_new!(Ttas(Tas::new()));

    /// Waits until it is taken. Acquire: what the last holder did is visible.
    #[inline]
    pub fn acquire(&self) {
        // That the first look found it free says nothing by itself: the try decides.
        while !self.try_acquire() {
            let mut looks = Looks::new();
            while self.is_taken() {
                looks.pause();
            }
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

raw_mutex!(Ttas);
