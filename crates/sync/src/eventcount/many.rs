//! Many incrementers: the count and its flag in one word, changed by atomic read-modify-writes only.

use super::kind::{Announced, Kind};
use super::scope::{Overlooks, Scope};
use super::sleep::Sleeping;
use super::word::{Width, Word};
use crate::primitive::Ordering;

/// The lowest bit, set while there may be waiters. The rest of the word is the value.
const FLAG: u64 = 1;

/// The kind with many incrementers.
///
/// The word is `value << 1 | flag`. Waiters set the flag by compare-and-swap, which succeeds only if the word still has
/// the value they wait on. Incrementers add 2, and the fetched word tells them whether there are waiters.
///
/// All changes to one word are totally ordered by its modification order, and that alone proves that no wake-up is
/// lost. If a waiter's flag comes before an increment in this order, the increment fetches it and wakes the waiter. If
/// it comes after, the compare-and-swap finds another value. The flag is cleared before the wake-up: a waiter that fell
/// asleep before the clearing is woken, and a waiter that tries later finds a word without the flag and does not fall
/// asleep. So the orderings only have to carry the user's data: release on the increment, acquire where the value is
/// read.
#[repr(transparent)]
#[derive(Debug)]
pub struct Many<W: Width>(W::Atomic);

impl<W: Width> Kind for Many<W> {
    #[cfg(not(loom))]
    const ZERO: Self = Many(W::Atomic::ZERO);

    const OVERLOOKS: Overlooks = Overlooks::Nothing;

    fn starting_at(value: u64) -> Self {
        Many(W::Atomic::new(value << 1))
    }

    #[inline(always)]
    fn value(&self) -> u64 {
        // Acquire pairs with the release of `add`: everything written before the counted increments is visible.
        self.0.load(Ordering::Acquire) >> 1
    }

    #[inline(always)]
    fn wrap(number: u64) -> u64 {
        number & (u64::MAX >> (65 - W::BITS))
    }

    #[inline(always)]
    unsafe fn add<S: Scope>(&self, n: u64) -> bool {
        // Release: a thread that reads the new value, even through later increments, sees everything written before.
        self.0.fetch_add(n << 1, Ordering::Release) & FLAG != 0
    }

    unsafe fn settle(&self, most: usize, wake: impl Fn(usize) -> usize) {
        if most < usize::MAX && wake(most) == most {
            // There may be more sleepers, so the flag stays.
            return;
        }
        // The clearing comes before the wake-up: a waiter that announces itself later sets the flag again. A waiter
        // that announced itself earlier is asleep and will be woken, or finds the word changed.
        self.0.fetch_and(!FLAG, Ordering::Relaxed);
        wake(usize::MAX);
    }

    fn announce(&self, value: u64) -> Announced {
        let (quiet, flagged) = (value << 1, value << 1 | FLAG);
        // Acquire on failure: the caller reports the changed value as seen. On success there is no new value to see.
        match self.0.compare_exchange(quiet, flagged, Ordering::Relaxed, Ordering::Acquire) {
            Ok(_) => Announced::Newly,
            Err(found) if found == flagged => Announced::Already,
            Err(_) => Announced::Changed,
        }
    }

    fn sleep(&self, value: u64, sleeping: &Sleeping<'_>) {
        sleeping.sleep(&self.0, value << 1 | FLAG);
    }

    fn wake(&self, most: usize, sleeping: &Sleeping<'_>) -> usize {
        sleeping.wake(&self.0, most)
    }
}
