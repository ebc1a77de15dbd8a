//! The fastest path to a per-CPU word: all inputs of its section are stored side by side, ready for use.

use std::ptr::{self, NonNull};
use std::sync::atomic::{
    AtomicIsize, AtomicPtr, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

use super::section::{self, Here, Numbers, Outcome, Slots};
use super::{Area, Word};

/// The location of per-CPU words, which [`set`](Site::set) stores; unusable before.
#[derive(Debug)]
pub(crate) struct Site {
    /// The common offset of all threads' areas, or 0 before [`set`](Site::set).
    offset: AtomicIsize,
    first: AtomicPtr<u64>,
    count: AtomicU32,
}

impl Site {
    pub(crate) const fn new() -> Self {
        Site { offset: AtomicIsize::new(0), first: AtomicPtr::new(ptr::null_mut()), count: AtomicU32::new(0) }
    }

    /// Stores the location of the first word, which must live as long as the site is used. Has no effect where threads
    /// have their areas at different offsets.
    pub(crate) fn set(&self, word: Word<'_>) {
        if let Some(offset) = Area::common_offset() {
            let slots = word.slots();
            self.first.store(slots.first.as_ptr(), Relaxed);
            self.count.store(slots.count, Relaxed);
            // Release pairs with the acquire in `add`: a thread that sees the offset sees the other two fields.
            self.offset.store(offset, Release);
        }
    }

    /// Adds `n` to the word with this index, counted from the first. Returns `false` if it did not, because a section
    /// failed or the site is not set yet.
    ///
    /// # Safety
    /// There is a word with this index, counted from the word that was given to [`set`](Self::set).
    #[inline(always)]
    pub(crate) unsafe fn add(&self, index: usize, n: u64) -> bool {
        let offset = self.offset.load(Acquire);
        if offset == 0 {
            return false;
        }
        let Some(area) = Area::at_common(offset) else { return false };
        let Some(first) = NonNull::new(self.first.load(Relaxed)) else { return false };
        // SAFETY: the words live as long as the site is used, and the caller promises one with this index.
        unsafe {
            let slots = Slots::new(first.add(index), self.count.load(Relaxed));
            section::add(Here::new(area, Numbers::Private), slots, n) == Outcome::Done
        }
    }
}
