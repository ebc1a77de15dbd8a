//! Test-and-set.

use super::spin::Looks;
use super::{const_new, erratum, raw_mutex};
use crate::primitive::{AtomicBool, Ordering};

/// Tries to take the lock, again and again.
///
/// The textbook's first lock. Every try writes, so the cache line never rests while somebody waits, not even in the
/// holder's cache. Taking blocks, by spinning with yields; freeing is wait-free, one store. Unfair.
#[derive(Debug)]
pub struct Tas(AtomicBool);

impl Tas {
    const_new!(Tas(AtomicBool::new(false)));

    /// Waits until it is taken. Acquire: what the last holder did is visible.
    #[inline]
    pub fn acquire(&self) {
        let mut looks = Looks::new();
        while !self.try_acquire() {
            looks.pause();
        }
    }

    /// Takes it if it is free. Wait-free.
    #[inline]
    pub fn try_acquire(&self) -> bool {
        // Acquire pairs with the release in `release`.
        let taken = !self.0.swap(true, Ordering::Acquire);
        erratum::after_acquisition();
        taken
    }

    /// Frees it.
    ///
    /// # Safety
    /// The caller has taken it.
    #[inline]
    pub unsafe fn release(&self) {
        #[cfg(not(loom))]
        self.0.store(false, Ordering::Release);
        // Loom does not know that a failed swap stands right behind what it read, and takes it for newer than this store.
        #[cfg(loom)]
        self.0.swap(false, Ordering::Release);
    }

    /// Whether somebody has it now.
    pub fn is_taken(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

raw_mutex!(Tas);
