//! One incrementer: the count in one word, the flag in another.

use super::kind::{Announced, Kind, SoleKind};
use super::scope::{Overlooks, Scope};
use super::sleep::Sleeping;
use super::word::{Width, Word};
use crate::primitive::{AtomicU32, Ordering};

/// The kind with one incrementer and a flag in a separate word.
///
/// The incrementer only loads and stores: it reads the flag and clears it, stores the new value, executes a light
/// fence, and reads the flag once more. A waiter sets the flag, executes a heavy fence, and lets the kernel compare the
/// value while it falls asleep.
///
/// No wake-up is lost, because one of the two fences comes first. If it is the light fence, the waiter sees the new
/// value and does not fall asleep. If it is the heavy fence, the incrementer's second read sees the flag, unless this
/// same increment cleared it before its store. In that case the first read saw a flag, so the incrementer wakes the
/// waiter, too.
///
/// An increment cannot clear the flag of a waiter for the new value. Such a waiter sets its flag after it has read the
/// new value, and the release store of that value comes after the clearing.
///
/// This is the two-word form of Paul Khuong's event counts, as in Composite's block points.
#[repr(C)]
#[derive(Debug)]
pub struct TwoWord<W: Width> {
    value: W::Atomic,
    /// 1 while there may be waiters, else 0.
    waiters: AtomicU32,
}

impl<W: Width> SoleKind for TwoWord<W> {
    type Cached = u64;

    fn cache(&self) -> u64 {
        self.value()
    }

    #[inline(always)]
    unsafe fn add_cached<S: Scope>(&self, cached: &mut u64, n: u64) -> bool {
        // Relaxed: only the incrementer changes the value, so this reads its latest one. (A loom model would explore the
        // read for nothing.)
        #[cfg(not(loom))]
        debug_assert_eq!(self.value.load(Ordering::Relaxed), Self::wrap(*cached), "the count has another incrementer");
        // Relaxed: the second read below sees a flag that this read misses.
        let waited = self.waiters.load(Ordering::Relaxed) != 0;
        // The flag belongs to waiters for the current value, so it is cleared only right before the value changes.
        if waited && Self::wrap(n) != 0 {
            // Relaxed: the release store below keeps this store before the new value.
            self.waiters.store(0, Ordering::Relaxed);
        }
        *cached = cached.wrapping_add(n);
        self.value.store(*cached, Ordering::Release);
        // Pairs with the heavy fence between a waiter's flag and its check of the value.
        S::light();
        waited | (self.waiters.load(Ordering::Relaxed) != 0)
    }
}

impl<W: Width> Kind for TwoWord<W> {
    #[cfg(not(loom))]
    const ZERO: Self = TwoWord { value: W::Atomic::ZERO, waiters: AtomicU32::new(0) };

    const OVERLOOKS: Overlooks = Overlooks::Reordered;

    fn starting_at(value: u64) -> Self {
        TwoWord { value: W::Atomic::new(value), waiters: AtomicU32::new(0) }
    }

    #[inline(always)]
    fn value(&self) -> u64 {
        self.value.load(Ordering::Acquire)
    }

    #[inline(always)]
    fn wrap(number: u64) -> u64 {
        number & (u64::MAX >> (64 - W::BITS))
    }

    #[inline(always)]
    unsafe fn add<S: Scope>(&self, n: u64) -> bool {
        // A plain load and store lose nothing: the caller ensures that no other thread increments.
        let mut value = self.value.load(Ordering::Relaxed);
        // SAFETY: the caller keeps the contract, and the value was just read.
        unsafe { self.add_cached::<S>(&mut value, n) }
    }

    unsafe fn settle(&self, most: usize, wake: impl Fn(usize) -> usize) {
        // There may be more sleepers, whose flag `add` may have cleared. Only the incrementer reads the flag, so
        // setting it again before the next increment is early enough.
        if wake(most) == most {
            self.waiters.store(1, Ordering::Relaxed);
        }
    }

    fn announce(&self, value: u64) -> Announced {
        // A flag for an earlier value would cost the incrementer a system call without helping any waiter.
        if self.value() != value {
            return Announced::Changed;
        }
        let before = self.waiters.swap(1, Ordering::Relaxed);
        match self.value() == value {
            true if before == 0 => Announced::Newly,
            true => Announced::Already,
            false => Announced::Changed,
        }
    }

    fn sleep(&self, value: u64, sleeping: &Sleeping<'_>) {
        sleeping.sleep(&self.value, value);
    }

    fn wake(&self, most: usize, sleeping: &Sleeping<'_>) -> usize {
        sleeping.wake(&self.value, most)
    }
}
