//! A ticket lock.

use super::spin::Looks;
use super::{const_new, erratum, raw_mutex};
use crate::primitive::{AtomicU32, Ordering, spin_loop};

/// Draws a number and waits until it is served: first come, first served.
///
/// Fair: a thread waits only for the threads before it. That is also its weakness: if the next thread in line is not
/// running, all wait for it. With more threads than cores, take another lock. Acquiring blocks, by spinning with
/// yields; releasing is wait-free, a load and a store. Correct for up to 2³² threads.
#[derive(Debug)]
pub struct Ticket {
    next: AtomicU32,
    served: AtomicU32,
}

/// Pause instructions for each thread ahead in line.
const PAUSES_EACH: u32 = 8;

impl Ticket {
    const_new!(Ticket { next: AtomicU32::new(0), served: AtomicU32::new(0) });

    /// Waits until the lock is acquired. Acquire: everything the previous holder wrote is visible.
    #[inline]
    pub fn acquire(&self) {
        // Relaxed: no read depends on the number; the wait below acquires.
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut looks = Looks::new();
        loop {
            // Acquire pairs with the release in `release`.
            let before_us = number.wrapping_sub(self.served.load(Ordering::Acquire));
            if before_us == 0 {
                break;
            }
            (1..before_us).for_each(|_| (0..PAUSES_EACH).for_each(|_| spin_loop()));
            looks.pause();
        }
        erratum::after_acquisition();
    }

    /// Takes the lock if no thread holds it or waits for it. Wait-free.
    #[inline]
    pub fn try_acquire(&self) -> bool {
        // Acquire: if `served` is still the current number in the exchange below, the previous holder's release stored
        // it.
        let served = self.served.load(Ordering::Acquire);
        let next = served.wrapping_add(1);
        let taken = self.next.compare_exchange(served, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        erratum::after_acquisition();
        taken
    }

    /// Releases the lock.
    ///
    /// # Safety
    /// The caller holds the lock.
    #[inline]
    pub unsafe fn release(&self) {
        // Only the holder stores to this word.
        let served = self.served.load(Ordering::Relaxed);
        self.served.store(served.wrapping_add(1), Ordering::Release);
    }

    /// Whether a thread holds the lock now.
    pub fn is_taken(&self) -> bool {
        self.next.load(Ordering::Relaxed) != self.served.load(Ordering::Relaxed)
    }
}

raw_mutex!(Ticket);
