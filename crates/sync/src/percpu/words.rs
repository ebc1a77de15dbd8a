//! Words of which each processor has its own.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::arena;
use super::pages::processors;
use super::raw::{self, ATTEMPTS, Here, Numbers, Outcome, STRIDE, Slots};
use super::thread;

/// The most words that are next to each other.
pub const MAX_WORDS: usize = STRIDE / size_of::<u64>();

/// Some words, in one copy for each processor and as many for threads that can't use those.
///
/// A change goes to the copy of the processor that runs it, by a [section](super::raw), and after [`ATTEMPTS`] aborted
/// ones, or where the kernel has no sections, to a copy that is chosen by the thread, by an atomic instruction. Every change is in exactly
/// one copy; what the words mean together is up to you: a sum, a maximum.
///
/// All `Words` of a process share pages: one word takes eight bytes for each processor that is used, and the same again where there is
/// no rseq. A copy shares its cache lines only with other words of the same processor.
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
    /// How many copies belong to processors; as many behind them belong to threads.
    processors: u32,
}

// SAFETY: the words are changed by sections and atomic instructions only, as `Word` says.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

/// One of [`Words`].
#[derive(Debug, Clone, Copy)]
pub struct Word<'a> {
    first: &'a AtomicU64,
    processors: u32,
}

impl Words {
    /// So many words, all zero in all copies. Takes a lock, and a page for each processor every now and then.
    ///
    /// # Panics
    /// If `len` is zero or above [`MAX_WORDS`], or without memory.
    #[must_use]
    pub fn new(len: usize) -> Self {
        assert!((1..=MAX_WORDS).contains(&len), "there can be 1 to {MAX_WORDS} words, not {len}");
        Words { first: arena::take(len), len: len as u32, processors: processors() }
    }

    /// How many words there are.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "there is always one")]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// The word with this index.
    ///
    /// # Panics
    /// If there are not so many.
    #[inline]
    #[must_use]
    pub fn word(&self, index: usize) -> Word<'_> {
        assert!(index < self.len(), "word {index} of {}", self.len);
        // SAFETY: the words live as long as `self`, and this one is within.
        Word { first: unsafe { AtomicU64::from_ptr(self.first.as_ptr().add(index)) }, processors: self.processors }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        for index in 0..self.len() {
            // Only where something is: untouched pages cost no memory.
            self.word(index).atomics().filter(|copy| copy.load(Relaxed) != 0).for_each(|copy| copy.store(0, Relaxed));
        }
        arena::give_back(self.first, self.len());
    }
}

impl<'a> Word<'a> {
    /// Adds `n` to one copy; wraps around.
    ///
    /// Wait-free, also in signal handlers (but for the first call in a thread). Ordered with nothing: a statistic, not a message.
    /// About two cycles.
    #[inline]
    pub fn add(self, n: u64) {
        self.change(
            |here, slots| {
                // SAFETY: there is a word in each slot, and all sections on `Words` count slots alike.
                unsafe { raw::add(here, slots, n) == Outcome::Done }
            },
            |copy| {
                copy.fetch_add(n, Relaxed);
            },
        );
    }

    /// Makes one copy at least `value`; otherwise like [`add`](Self::add).
    #[inline]
    pub fn raise(self, value: u64) {
        self.change(
            |here, slots| {
                // SAFETY: as for `add`.
                unsafe { raw::raise(here, slots, value) == Outcome::Done }
            },
            |copy| {
                copy.fetch_max(value, Relaxed);
            },
        );
    }

    /// Stores `next(old)` in one copy, and tells what `old` was. `next` may be called several times.
    ///
    /// Lock-free: on the processor's copy at most [`ATTEMPTS`] rounds, then by compare-and-swap on the thread's.
    pub fn update(self, mut next: impl FnMut(u64) -> u64) -> u64 {
        if let Some(here) = Here::current(Numbers::Private) {
            let mut old = 0;
            for _ in 0..ATTEMPTS {
                // SAFETY: as for `add`.
                let (outcome, found) = unsafe { raw::compare_and_store(here, self.slots(), old, next(old)) };
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
    /// A caller sees each change that happened before, and never an older value of a copy after a newer one. Takes O(processors).
    pub fn copies(self) -> impl Iterator<Item = u64> + 'a {
        self.atomics().map(|copy| copy.load(Relaxed))
    }

    #[inline(always)]
    fn change(self, section: impl Fn(Here, Slots) -> bool, atomic: impl FnOnce(&AtomicU64)) {
        if let Some(here) = Here::current(Numbers::Private) {
            for _ in 0..ATTEMPTS {
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
        // SAFETY: the arena's pages are there for every number below `processors`, and only `Word` writes there.
        unsafe { Slots::new(first, self.processors) }
    }

    #[cold]
    #[inline(never)]
    fn thread_copy(self) -> &'a AtomicU64 {
        self.copy(self.processors + thread::number() % self.processors)
    }

    fn atomics(self) -> impl Iterator<Item = &'a AtomicU64> {
        (0..2 * self.processors).map(move |number| self.copy(number))
    }

    pub(super) fn copy(self, number: u32) -> &'a AtomicU64 {
        let first = self.first.as_ptr().cast::<u8>();
        // SAFETY: the arena's pages are there for twice as many numbers as there are processors.
        unsafe { AtomicU64::from_ptr(first.add(number as usize * STRIDE).cast()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr;

    #[test]
    fn threads_without_sections_keep_off_the_processors_copies() {
        let words = Words::new(1);
        let word = words.word(0);
        // More threads than copies, so that their numbers come round.
        for _ in 0..2 * word.processors + 1 {
            let copy = std::thread::scope(|scope| scope.spawn(|| ptr::from_ref(word.thread_copy()).addr()).join());
            let copy = copy.expect("nobody panics");
            assert!((0..word.processors).all(|number| ptr::from_ref(word.copy(number)).addr() != copy));
        }
    }
}
