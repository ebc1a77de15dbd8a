//! Tests of the sections themselves, which only this crate can reach, with every kind of rseq area.

#[path = "../../../tests/support/sources.rs"]
mod sources;

mod preempted;
mod sections;
mod stepped;

use std::ptr::NonNull;

use super::processors;
use super::section::{STRIDE, Slots};

#[test]
fn with_other_areas() {
    sources::again_with_other_areas("with_other_areas", "percpu::");
}

/// A slot. Its size must equal the distance between slots.
#[derive(Clone)]
#[repr(align(4096))]
struct Page([u64; STRIDE / 8]);

/// Slots for all processors, with as many words as fit.
struct Memory(Vec<Page>);

// SAFETY: only sections change the memory until all threads of a test are done.
unsafe impl Sync for Memory {}

impl Memory {
    fn new() -> Self {
        Memory(vec![Page([0; STRIDE / 8]); processors() as usize])
    }

    /// The slots that begin with the word at this index of each page. Each test uses one kind of number.
    fn slots(&self, word: usize) -> Slots {
        let first = NonNull::from(&self.0[0].0[word]);
        // SAFETY: the vector has a page for each slot, and outlives all sections of its test.
        unsafe { Slots::new(first, self.0.len() as u32) }
    }

    /// The sum of the words at this index over all pages.
    fn sum(&self, word: usize) -> u64 {
        self.0.iter().map(|page| page.0[word]).sum()
    }
}
