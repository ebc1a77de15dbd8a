//! The shortest way to a word of the processor: what a section needs lies side by side, ready for use.

use std::ptr::{self, NonNull};
use std::sync::atomic::{
    AtomicIsize, AtomicPtr, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

use super::raw::{self, Here, Numbers, Outcome, Slots};
use super::{Area, Word};

/// Where some words of processors are; useless until it is [told](Site::tell).
#[derive(Debug)]
pub(crate) struct Site {
    /// The offset of every thread's area, or 0.
    offset: AtomicIsize,
    first: AtomicPtr<u64>,
    count: AtomicU32,
}

impl Site {
    pub(crate) const fn new() -> Self {
        Site { offset: AtomicIsize::new(0), first: AtomicPtr::new(ptr::null_mut()), count: AtomicU32::new(0) }
    }

    /// Tells it the first word, which must live as long as it is used. In vain where threads have their areas at different offsets.
    pub(crate) fn tell(&self, word: Word<'_>) {
        if let Some(offset) = Area::common_offset() {
            let slots = word.slots();
            self.first.store(slots.first.as_ptr(), Relaxed);
            self.count.store(slots.count, Relaxed);
            // Release: whoever sees the offset sees the others.
            self.offset.store(offset, Release);
        }
    }

    /// Adds `n` to the word with this index, counted from the first. False if it did not, for one of the reasons for which a section may not,
    /// or because it does not know the word yet.
    ///
    /// # Safety
    /// There is such a word.
    #[inline(always)]
    pub(crate) unsafe fn add(&self, index: usize, n: u64) -> bool {
        let offset = self.offset.load(Acquire);
        if offset == 0 {
            return false;
        }
        let Some(area) = Area::at_common(offset) else { return false };
        let Some(first) = NonNull::new(self.first.load(Relaxed)) else { return false };
        // SAFETY: the words are there as long as this is used, and so is the one with this index.
        unsafe {
            let slots = Slots::new(first.add(index), self.count.load(Relaxed));
            raw::add(Here::new(area, Numbers::Private), slots, n) == Outcome::Done
        }
    }
}
