//! A counter's word that belongs to one thread at a time.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::reclaim::registry::{Entry, Registry};

/// One thread's share of a [`Counter`](super::Counter): an addition to it costs no more than an addition to a local
/// variable.
///
/// ```
/// use millstream_sync::counter::Counter;
///
/// let rows = Counter::new();
/// let mine = rows.local();
/// (0..1000).for_each(|_| mine.increment());
/// assert_eq!(rows.sum(), 1000); // visible to all threads at once
/// drop(mine); // another thread may take over the word
/// assert_eq!(rows.sum(), 1000);
/// ```
///
/// The local of a static counter fits into a thread-local:
///
/// ```
/// # use millstream_sync::counter::{Counter, Local};
/// static ROWS: Counter = Counter::new();
/// thread_local!(static MY_ROWS: Local<'static> = ROWS.local());
///
/// MY_ROWS.with(Local::increment);
/// assert_eq!(ROWS.sum(), 1);
/// ```
pub struct Local<'a> {
    word: &'a Entry<AtomicU64>,
    /// Confines the local to one thread at a time: two threads would lose additions.
    _not_shared: PhantomData<Cell<()>>,
}

impl<'a> Local<'a> {
    pub(super) fn new(word: &'a Entry<AtomicU64>) -> Self {
        Local { word, _not_shared: PhantomData }
    }

    /// Adds one; otherwise like [`add`](Self::add).
    #[inline]
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds `n`; wraps around. Wait-free, a load and a store; not ordered with any other access.
    ///
    /// A signal handler may call this only if the interrupted thread does not use the same local.
    #[inline]
    pub fn add(&self, n: u64) {
        // Relaxed: the owner is the only thread that stores to this word. The previous owner released the word and this
        // owner acquired it, so the count continues from the last value.
        self.word.store(self.word.load(Relaxed).wrapping_add(n), Relaxed);
    }
}

impl Drop for Local<'_> {
    fn drop(&mut self) {
        Registry::release(self.word);
    }
}

impl std::fmt::Debug for Local<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Local").field(&self.word.load(Relaxed)).finish()
    }
}
