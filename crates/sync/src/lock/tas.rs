//! Test-and-set.

use super::spin::Looks;
use super::{const_new, erratum, raw_mutex};
use crate::primitive::{AtomicBool, Ordering};

/// Tries to take the lock, again and again.
///
/// The textbook's first lock. Every try writes, so while a thread waits the cache line never rests, not even in the
/// holder's cache. Acquiring blocks, by spinning with yields; releasing is wait-free, one store. Unfair.
#[derive(Debug)]
pub struct Tas(AtomicBool);

impl Tas {
    const_new!(Tas(AtomicBool::new(false)));

    /// Waits until the lock is acquired. Acquire: everything the previous holder wrote is visible.
    #[inline]
    pub fn acquire(&self) {
        let mut looks = Looks::new();
        while !self.try_acquire() {
            looks.pause();
        }
    }

    /// Takes the lock if it is free. Wait-free.
    #[inline]
    pub fn try_acquire(&self) -> bool {
        // Acquire pairs with the release in `release`.
        let taken = !self.0.swap(true, Ordering::Acquire);
        erratum::after_acquisition();
        taken
    }

    /// Releases the lock.
    ///
    /// # Safety
    /// The caller holds the lock.
    #[inline]
    pub unsafe fn release(&self) {
        #[cfg(not(loom))]
        self.0.store(false, Ordering::Release);
        // Loom does not know that a failed swap comes directly after the value it read, and orders it after this store.
        #[cfg(loom)]
        self.0.swap(false, Ordering::Release);
    }

    /// Whether a thread holds the lock now.
    pub fn is_taken(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

raw_mutex!(Tas);
