//! A counter's adder for one thread, which looks up all addresses only once.

use std::fmt;

use super::Counter;
use crate::percpu::Word;
use crate::percpu::section::{self, Here, Numbers, Outcome, Slots};

/// Adds to a [`Counter`] in a loop of one thread: like [`Counter::add`], without looking up the thread's area and the
/// counter's words on each addition.
///
/// ```
/// use millstream_sync::counter::Counter;
///
/// static BYTES: Counter = Counter::new();
///
/// let bytes = BYTES.adder();
/// for packet in [1500, 40, 1500] {
///     bytes.add(packet);
/// }
/// assert_eq!(BYTES.sum(), 3040);
/// ```
#[derive(Clone, Copy)]
pub struct Adder<'a> {
    counter: &'a Counter,
    /// The thread's area, so an adder stays with its thread.
    here: Option<Here>,
    slots: Slots,
}

impl<'a> Adder<'a> {
    pub(super) fn new(counter: &'a Counter, word: Word<'a>) -> Self {
        Adder { counter, here: Here::current(Numbers::Private), slots: word.slots() }
    }

    /// Adds one; otherwise like [`add`](Self::add).
    #[inline(always)]
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds `n`; wraps around. Progress and ordering are those of [`Counter::add`]. Takes about one and a half cycles.
    #[inline(always)]
    pub fn add(&self, n: u64) {
        if let Some(here) = self.here {
            // SAFETY: every slot holds the counter's word, and all sections on it use the same slot numbering.
            if unsafe { section::add(here, self.slots, n) } == Outcome::Done {
                return;
            }
        }
        self.otherwise(n);
    }

    #[cold]
    #[inline(never)]
    fn otherwise(&self, n: u64) {
        self.counter.add(n);
    }
}

impl fmt::Debug for Adder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Adder").field(self.counter).finish()
    }
}
