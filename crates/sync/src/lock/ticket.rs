//! A queue of numbers.

use super::spin::Looks;
use super::{const_new, erratum, raw_mutex};
use crate::primitive::{AtomicU32, Ordering, spin_loop};

/// Draws a number and waits until it is served: first come, first served.
///
/// Fair: a thread waits for those before it and nobody else. That is also its weakness: if the next one in line is not running, all wait
/// for it. With more threads than cores take another one. Taking blocks, by spinning with yields; freeing is wait-free, a load and a store. Right for
/// up to 2³² threads.
#[derive(Debug)]
pub struct Ticket {
    next: AtomicU32,
    served: AtomicU32,
}

/// Pauses for each one that is before us in line.
const PAUSES_EACH: u32 = 8;

impl Ticket {
    const_new!(Ticket { next: AtomicU32::new(0), served: AtomicU32::new(0) });

    /// Waits until it is taken. Acquire: what the last holder did is visible.
    #[inline]
    pub fn acquire(&self) {
        // Nothing is read because of the number; the wait acquires.
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

    /// Takes it if nobody has it or waits for it. Wait-free.
    #[inline]
    pub fn try_acquire(&self) -> bool {
        // Acquire: if the number below is still the one that is served, the last holder's release was this value.
        let served = self.served.load(Ordering::Acquire);
        let next = served.wrapping_add(1);
        let taken = self.next.compare_exchange(served, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        erratum::after_acquisition();
        taken
    }

    /// Frees it.
    ///
    /// # Safety
    /// The caller has taken it.
    #[inline]
    pub unsafe fn release(&self) {
        // Only the holder stores here.
        let served = self.served.load(Ordering::Relaxed);
        self.served.store(served.wrapping_add(1), Ordering::Release);
    }

    /// Whether somebody has it now.
    pub fn is_taken(&self) -> bool {
        self.next.load(Ordering::Relaxed) != self.served.load(Ordering::Relaxed)
    }
}

raw_mutex!(Ticket);
