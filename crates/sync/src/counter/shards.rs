//! Per-CPU words that a static can hold, allocated on first use.

use std::sync::OnceLock;

use crate::percpu::{Site, Words};

#[derive(Debug)]
pub(super) struct Shards<const WORDS: usize> {
    site: Site,
    words: OnceLock<Words>,
}

impl<const WORDS: usize> Shards<WORDS> {
    pub(super) const fn new() -> Self {
        Shards { site: Site::new(), words: OnceLock::new() }
    }

    #[inline]
    pub(super) fn words(&self) -> &Words {
        self.words.get_or_init(|| Words::new(WORDS))
    }

    /// Adds to one copy of `word`.
    ///
    /// # Panics
    /// If there is no such word.
    #[inline]
    pub(super) fn add(&self, word: usize, n: u64) {
        assert!(word < WORDS, "word {word} of {WORDS}");
        // SAFETY: `set` gave the site the first of `WORDS` words, and `word` is below that number.
        if !unsafe { self.site.add(word, n) } {
            self.add_by_words(word, n);
        }
    }

    #[cold]
    #[inline(never)]
    fn add_by_words(&self, word: usize, n: u64) {
        let words = self.words();
        self.site.set(words.word(0));
        words.word(word).add(n);
    }
}
