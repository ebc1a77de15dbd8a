//! A ticket lock.

use super::spin::Checks;
use super::{Lock, erratum, raw_mutex};
use crate::primitive::{AtomicU32, Ordering, const_fn, spin_loop};

/// Draws a number and waits until it is served: first come, first served.
///
/// Fair: a thread waits only for the threads before it. That is also its weakness: if the next thread in line is not
/// running, all wait for it. With more threads than cores, use another lock. Acquiring blocks, by spinning with yields;
/// trying is wait-free; releasing is wait-free, a load and a store. Acquiring is an acquire, releasing a release.
/// Correct for up to 2³² threads.
#[derive(Debug)]
pub struct Ticket {
    next: AtomicU32,
    served: AtomicU32,
}

/// Pause instructions for each thread ahead in line.
const PAUSES_EACH: u32 = 8;

impl Ticket {
    const_fn! {
        fn new() -> Self {
            Ticket { next: AtomicU32::new(0), served: AtomicU32::new(0) }
        }
    }
}

impl Lock for Ticket {
    #[inline]
    fn acquire(&self) {
        // Relaxed: no read depends on the number; the wait below acquires.
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut checks = Checks::new();
        loop {
            // Acquire pairs with the release in `release`.
            let ahead = number.wrapping_sub(self.served.load(Ordering::Acquire));
            if ahead == 0 {
                break;
            }
            (1..ahead).for_each(|_| (0..PAUSES_EACH).for_each(|_| spin_loop()));
            checks.pause();
        }
        erratum::after_acquisition();
    }

    #[inline]
    fn try_acquire(&self) -> bool {
        // Acquire: if `served` is still the current number in the exchange below, the previous holder's release stored
        // it.
        let served = self.served.load(Ordering::Acquire);
        let next = served.wrapping_add(1);
        let taken = self.next.compare_exchange(served, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        erratum::after_acquisition();
        taken
    }

    #[inline]
    unsafe fn release(&self) {
        // Relaxed: only the holder stores to this word.
        let served = self.served.load(Ordering::Relaxed);
        // Release pairs with the acquiring loads of `acquire` and `try_acquire`.
        self.served.store(served.wrapping_add(1), Ordering::Release);
    }

    fn is_taken(&self) -> bool {
        self.next.load(Ordering::Relaxed) != self.served.load(Ordering::Relaxed)
    }
}

raw_mutex!(Ticket);
