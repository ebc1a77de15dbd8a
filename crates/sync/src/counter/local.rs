//! A counter's word that one thread has for itself.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::reclaim::registry::{Entry, Registry};

/// One thread's share of a [`Counter`](super::Counter): an addition costs what it costs in a variable of one's own.
///
/// ```
/// use millstream_sync::counter::Counter;
///
/// let rows = Counter::new();
/// let mine = rows.local();
/// (0..1000).for_each(|_| mine.increment());
/// assert_eq!(rows.sum(), 1000); // others see it at once
/// drop(mine); // the word may be another thread's now
/// assert_eq!(rows.sum(), 1000);
/// ```
///
/// For a static counter it fits into a thread-local:
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
    /// One thread at a time: two would lose additions.
    _not_shared: PhantomData<Cell<()>>,
}

impl<'a> Local<'a> {
    pub(super) fn new(word: &'a Entry<AtomicU64>) -> Self {
        Local { word, _not_shared: PhantomData }
    }

    /// Adds one.
    #[inline]
    pub fn increment(&self) {
        self.add(1);
    }

    /// Adds `n`; wraps around. Wait-free, a load and a store; ordered with nothing.
    ///
    /// In a signal handler only if the interrupted thread does not use the same local.
    #[inline]
    pub fn add(&self, n: u64) {
        // Nobody else stores to this word while we have it. The one who had it before gave it back by a release, and we
        // acquired it, so we go on from its last value.
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
