//! The list of all records of one kind: readers write theirs, who reclaims reads all.

use alloc::boxed::Box;
use core::iter;
use core::ops::Deref;
use core::ptr;

use crate::primitive::{AtomicBool, AtomicPtr, Ordering};

/// Grows, never shrinks while it lives; records that were given back are taken again. Lock-free.
pub(crate) struct Registry<R> {
    newest: AtomicPtr<Entry<R>>,
}

/// A record and its place in the list, on cache lines of its own (two, since processors fetch pairs).
#[repr(align(128))]
pub(crate) struct Entry<R> {
    record: R,
    taken: AtomicBool,
    /// Written before the entry is published, never again.
    older: *const Entry<R>,
}

// SAFETY: entries are shared by all threads; `older` points to another entry of the same list.
unsafe impl<R: Sync> Sync for Entry<R> {}

impl<R> Registry<R> {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Registry { newest: AtomicPtr::new(ptr::null_mut()) }
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Registry { newest: AtomicPtr::new(ptr::null_mut()) }
    }

    /// An entry for the caller alone until it calls [`release`](Registry::release).
    pub(crate) fn acquire(&self, make: impl FnOnce() -> R) -> &Entry<R> {
        let reused = self.iter().find(|entry| entry.try_acquire());
        reused.unwrap_or_else(|| self.add(make()))
    }

    fn add(&self, record: R) -> &Entry<R> {
        let mut newest = self.newest.load(Ordering::Relaxed);
        let entry = Box::into_raw(Box::new(Entry { record, taken: AtomicBool::new(true), older: newest }));
        // Release: pairs with the acquire in `iter`.
        while let Err(found) = self.newest.compare_exchange(newest, entry, Ordering::Release, Ordering::Relaxed) {
            newest = found;
            // SAFETY: not published yet, so it is still ours alone.
            unsafe { (*entry).older = newest };
        }
        // SAFETY: entries live as long as the list.
        unsafe { &*entry }
    }

    /// Idle entries whose record is wanted, each acquired when it is reached: for the caller alone until it releases it.
    pub(crate) fn acquire_idle(&self, is_wanted: impl Fn(&R) -> bool) -> impl Iterator<Item = &Entry<R>> {
        self.iter().filter(move |entry| is_wanted(&entry.record) && entry.try_acquire())
    }

    /// Gives the entry back. What its owner did to the record is visible to the next one.
    pub(crate) fn release(entry: &Entry<R>) {
        entry.taken.store(false, Ordering::Release);
    }

    /// All entries, also those that nobody has. An entry that is added meanwhile may be missed; see the schemes for why
    /// that is no harm.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry<R>> {
        // SAFETY: entries live as long as the list, and were filled before they were published.
        let entry = |entry: *const Entry<R>| unsafe { entry.as_ref() };
        iter::successors(entry(self.newest.load(Ordering::Acquire)), move |newer| entry(newer.older))
    }
}

impl<R> Entry<R> {
    fn try_acquire(&self) -> bool {
        // Acquire: pairs with `release`, so that we see the record as its last owner left it.
        !self.taken.load(Ordering::Relaxed)
            && self.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
}

#[cfg(feature = "std")]
impl<R> Entry<R> {
    /// Whether somebody has it.
    pub(crate) fn is_taken(&self) -> bool {
        self.taken.load(Ordering::Relaxed)
    }
}

impl<R> Deref for Entry<R> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.record
    }
}

impl<R> Drop for Registry<R> {
    fn drop(&mut self) {
        let mut entry = self.newest.load(Ordering::Relaxed).cast_const();
        while !entry.is_null() {
            // SAFETY: made by `Box::into_raw` in `add`, and the list is ours alone now.
            entry = unsafe { Box::from_raw(entry.cast_mut()) }.older;
        }
    }
}
