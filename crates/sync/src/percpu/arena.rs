//! The memory of [`Words`](super::Words): pages that are allocated word by word.

use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::pages::{Pages, processors};
use super::words::MAX_WORDS;

/// A page for each processor, and as many further pages for threads that cannot run sections. Chunks are never freed;
/// returned words are reused.
struct Chunk {
    pages: Pages,
    taken: [bool; MAX_WORDS],
}

static CHUNKS: Mutex<Vec<Chunk>> = Mutex::new(Vec::new());

fn chunks() -> MutexGuard<'static, Vec<Chunk>> {
    // Poison is harmless: an allocation that fails adds no chunk and leaves the others intact.
    CHUNKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first of `len` adjacent free words, which are zero in all copies.
pub(super) fn take(len: usize) -> NonNull<u64> {
    let mut chunks = chunks();
    if let Some(first) = chunks.iter_mut().find_map(|chunk| chunk.take(len)) {
        return first;
    }
    let mut chunk = Chunk { pages: Pages::new(2 * processors() as usize), taken: [false; MAX_WORDS] };
    let first = chunk.take(len).expect("a new chunk has room for the largest number of words");
    chunks.push(chunk);
    first
}

/// Returns words that [`take`] allocated. All their copies must be zero again.
pub(super) fn give_back(first: NonNull<u64>, len: usize) {
    let mut chunks = chunks();
    let places = chunks.iter_mut().find_map(|chunk| chunk.places(first, len));
    places.expect("words come from a chunk").fill(false);
}

impl Chunk {
    fn take(&mut self, len: usize) -> Option<NonNull<u64>> {
        let start = self.taken.windows(len).position(|places| places.iter().all(|taken| !taken))?;
        self.taken[start..start + len].fill(true);
        // SAFETY: `start` is within `taken`, which has one entry per word of the first page.
        Some(unsafe { self.pages.first().cast::<u64>().add(start) })
    }

    fn places(&mut self, first: NonNull<u64>, len: usize) -> Option<&mut [bool]> {
        let distance = first.as_ptr().addr().checked_sub(self.pages.first().as_ptr().addr())?;
        let start = distance / size_of::<u64>();
        self.taken.get_mut(start..start + len)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Words;

    #[test]
    fn words_do_not_overlap_and_are_zero_when_reused() {
        let mut all: Vec<Words> = (0..1000).map(|i| Words::new(1 + i % 7)).collect();
        for words in &all {
            for i in 0..words.len() {
                words.word(i).add(1);
            }
        }
        assert!(all.iter().all(|words| (0..words.len()).all(|i| words.word(i).copies().sum::<u64>() == 1)));
        all.clear();
        let again: Vec<Words> = (0..1000).map(|_| Words::new(5)).collect();
        assert!(again.iter().all(|words| (0..words.len()).all(|i| words.word(i).copies().sum::<u64>() == 0)));
    }
}
