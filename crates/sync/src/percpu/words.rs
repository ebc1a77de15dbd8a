//! Words with a copy for each processor.

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use super::arena;
use super::pages::processors;
use super::section::{self, Here, MAX_ATTEMPTS, Numbers, Outcome, STRIDE, Slots};

/// The largest number of adjacent words: as many as a page holds.
pub(super) const MAX_WORDS: usize = STRIDE / size_of::<u64>();

/// Some words, with one copy for each processor, and as many further copies for changes outside sections.
///
/// A [section](super) applies a change to the copy of the processor on which it runs. After four aborted sections, or
/// where the kernel has no sections, an atomic instruction changes a copy that the thread's number selects. Every
/// change is in exactly one copy; the caller decides how the copies combine: a sum, a maximum.
///
/// All `Words` of a process share pages: one word takes eight bytes for each processor in use, and twice as many where
/// there is no rseq. A copy shares its cache lines only with other words of the same processor.
///
/// ```
/// use millstream_sync::percpu::Words;
///
/// let traffic = Words::new(2);
/// traffic.word(0).add(1500); // bytes
/// traffic.word(1).add(1); // packets
/// assert_eq!(traffic.word(0).copies().sum::<u64>(), 1500);
/// ```
#[derive(Debug)]
pub struct Words {
    first: NonNull<u64>,
    len: u32,
    /// The number of copies that belong to processors. As many further copies follow, which belong to threads.
    processors: u32,
}

// SAFETY: all changes of the words are sections and atomic instructions, which any thread may perform.
unsafe impl Send for Words {}
// SAFETY: all changes of the words are sections and atomic instructions, which any number of threads may perform at
// once.
unsafe impl Sync for Words {}

/// One word of [`Words`].
#[derive(Debug, Clone, Copy)]
pub struct Word<'a> {
    first: &'a AtomicU64,
    processors: u32,
}

impl Words {
    /// `len` words, all zero in all copies. Takes a lock, and every now and then allocates a page for each processor.
    ///
    /// # Panics
    /// If `len` is zero or above 512, or if there is no memory.
    #[must_use]
    pub fn new(len: usize) -> Self {
        assert!((1..=MAX_WORDS).contains(&len), "there can be 1 to {MAX_WORDS} words, not {len}");
        Words { first: arena::take(len), len: len as u32, processors: processors() }
    }

    /// The number of words.
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// The word with this index. Wait-free.
    ///
    /// # Panics
    /// If there is no such word.
    #[inline]
    #[must_use]
    pub fn word(&self, index: usize) -> Word<'_> {
        assert!(index < self.len(), "word {index} of {}", self.len);
        // SAFETY: the words live as long as `self`, and the assertion keeps the index within them.
        Word { first: unsafe { AtomicU64::from_ptr(self.first.as_ptr().add(index)) }, processors: self.processors }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        for index in 0..self.len() {
            // Only copies that are not zero are written: untouched pages cost no memory.
            self.word(index).atomics().filter(|copy| copy.load(Relaxed) != 0).for_each(|copy| copy.store(0, Relaxed));
        }
        arena::give_back(self.first, self.len());
    }
}

impl<'a> Word<'a> {
    /// Adds `n` to one copy; wraps around.
    ///
    /// Wait-free, also in signal handlers (except for a thread's first call). Not ordered with any other access: a
    /// statistic, not a message. About two cycles.
    #[inline]
    pub fn add(self, n: u64) {
        self.change(
            |here, slots| {
                // SAFETY: there is a word in each slot, and all sections on `Words` use the same slot numbering.
                unsafe { section::add(here, slots, n) == Outcome::Done }
            },
            |copy| {
                copy.fetch_add(n, Relaxed);
            },
        );
    }

    /// Makes one copy at least `value`; otherwise like [`add`](Self::add).
    ///
    /// ```
    /// use millstream_sync::percpu::Words;
    ///
    /// let longest_ns = Words::new(1);
    /// longest_ns.word(0).raise(310);
    /// longest_ns.word(0).raise(290);
    /// assert_eq!(longest_ns.word(0).copies().max(), Some(310));
    /// ```
    #[inline]
    pub fn raise(self, value: u64) {
        self.change(
            |here, slots| {
                // SAFETY: there is a word in each slot, and all sections on `Words` use the same slot numbering.
                unsafe { section::raise(here, slots, value) == Outcome::Done }
            },
            |copy| {
                copy.fetch_max(value, Relaxed);
            },
        );
    }

    /// Stores `next(old)` in one copy, and returns `old`. `next` may be called several times.
    ///
    /// Lock-free: makes at most four attempts on the processor's copy, and then changes the thread's copy by
    /// compare-and-swap. Not ordered with any other access.
    ///
    /// ```
    /// use millstream_sync::percpu::Words;
    ///
    /// let bits = Words::new(1);
    /// assert_eq!(bits.word(0).update(|old| old | 4), 0);
    /// assert_eq!(bits.word(0).copies().fold(0, |all, copy| all | copy), 4);
    /// ```
    pub fn update(self, mut next: impl FnMut(u64) -> u64) -> u64 {
        if let Some(here) = Here::current(Numbers::Private) {
            let mut old = 0;
            for _ in 0..MAX_ATTEMPTS {
                // SAFETY: there is a word in each slot, and all sections on `Words` use the same slot numbering.
                let (outcome, found) = unsafe { section::compare_and_store(here, self.slots(), old, next(old)) };
                match outcome {
                    Outcome::Done => return old,
                    Outcome::Different => old = found,
                    _ => {}
                }
            }
        }
        let (Ok(old) | Err(old)) = self.thread_copy().fetch_update(Relaxed, Relaxed, |old| Some(next(old)));
        old
    }

    /// The values of all copies at about this moment.
    ///
    /// The reader sees each change that happened before, and never an older value of a copy after a newer one.
    /// Wait-free; takes O(processors).
    pub fn copies(self) -> impl Iterator<Item = u64> + 'a {
        self.atomics().map(|copy| copy.load(Relaxed))
    }

    #[inline(always)]
    fn change(self, section: impl Fn(Here, Slots) -> bool, atomic: impl FnOnce(&AtomicU64)) {
        if let Some(here) = Here::current(Numbers::Private) {
            for _ in 0..MAX_ATTEMPTS {
                if section(here, self.slots()) {
                    return;
                }
            }
        }
        atomic(self.thread_copy());
    }

    #[inline(always)]
    pub(crate) fn slots(self) -> Slots {
        let first = NonNull::from(self.first).cast();
        // SAFETY: the arena has a page for every number below `processors`, and only `Word` writes there.
        unsafe { Slots::new(first, self.processors) }
    }

    #[cold]
    #[inline(never)]
    fn thread_copy(self) -> &'a AtomicU64 {
        self.copy(self.processors + thread_number() % self.processors)
    }

    fn atomics(self) -> impl Iterator<Item = &'a AtomicU64> {
        (0..2 * self.processors).map(move |number| self.copy(number))
    }

    pub(super) fn copy(self, number: u32) -> &'a AtomicU64 {
        let first = self.first.as_ptr().cast::<u8>();
        // SAFETY: the arena has pages for twice as many numbers as there are processors, and every caller's number is
        // below that.
        unsafe { AtomicU64::from_ptr(first.add(number as usize * STRIDE).cast()) }
    }
}

/// A small number assigned to the calling thread, which selects its copy where sections do not run. Threads that start
/// together have adjacent numbers, so they share copies only if there are more threads than copies.
fn thread_number() -> u32 {
    const UNKNOWN: u32 = u32::MAX;
    /// The number of threads that have asked for a number so far.
    static THREADS: AtomicU32 = AtomicU32::new(0);
    thread_local! {
        static NUMBER: Cell<u32> = const { Cell::new(UNKNOWN) };
    }
    NUMBER.with(|number| {
        if number.get() == UNKNOWN {
            number.set(THREADS.fetch_add(1, Relaxed) % UNKNOWN);
        }
        number.get()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr;

    #[test]
    fn threads_without_sections_keep_off_the_processors_copies() {
        let words = Words::new(1);
        let word = words.word(0);
        // There are more threads than copies, so their numbers wrap around.
        for _ in 0..2 * word.processors + 1 {
            let copy = std::thread::scope(|scope| scope.spawn(|| ptr::from_ref(word.thread_copy()).addr()).join());
            let copy = copy.expect("the thread does not panic");
            assert!((0..word.processors).all(|number| ptr::from_ref(word.copy(number)).addr() != copy));
        }
    }
}
