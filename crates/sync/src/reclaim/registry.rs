//! The list of all records of one kind: each reader writes its own record, and the reclaimer reads all records.

use alloc::boxed::Box;
use core::iter;
use core::ops::Deref;
use core::ptr;

use crate::primitive::{AtomicBool, AtomicPtr, Ordering, const_fn};

/// A list of records that only grows as long as it lives; released records are reused. Lock-free.
pub(crate) struct Registry<R> {
    newest: AtomicPtr<Entry<R>>,
}

/// A record and its link in the list, on cache lines of their own (two, because processors fetch pairs).
#[repr(align(128))]
pub(crate) struct Entry<R> {
    record: R,
    taken: AtomicBool,
    /// The next entry. It is written before this entry is published, and does not change afterwards.
    older: *const Entry<R>,
}

// SAFETY: shared access gives `&R`, which `R: Sync` allows; `older` is constant and points to an entry of the same
// list.
unsafe impl<R: Sync> Sync for Entry<R> {}

impl<R> Registry<R> {
    const_fn! {
        pub(crate) fn new() -> Self {
            Registry { newest: AtomicPtr::new(ptr::null_mut()) }
        }
    }

    /// An entry that belongs to the caller alone until it calls [`release`](Registry::release).
    pub(crate) fn acquire(&self, make: impl FnOnce() -> R) -> &Entry<R> {
        let reused = self.iter().find(|entry| entry.try_acquire());
        reused.unwrap_or_else(|| self.add(make()))
    }

    fn add(&self, record: R) -> &Entry<R> {
        let mut newest = self.newest.load(Ordering::Relaxed);
        let entry = Box::into_raw(Box::new(Entry { record, taken: AtomicBool::new(true), older: newest }));
        // Release pairs with the acquire in `iter`, which finds the entry initialized.
        while let Err(found) = self.newest.compare_exchange(newest, entry, Ordering::Release, Ordering::Relaxed) {
            newest = found;
            // SAFETY: the entry is not published yet, so this thread is the only one that has it.
            unsafe { (*entry).older = newest };
        }
        // SAFETY: entries live as long as the list, which `self` borrows, and nothing changes the links of a published
        // one.
        unsafe { &*entry }
    }

    /// The idle entries whose records are wanted. Each is acquired when the iterator reaches it, and belongs to the
    /// caller alone until the caller releases it.
    pub(crate) fn acquire_idle(&self, is_wanted: impl Fn(&R) -> bool) -> impl Iterator<Item = &Entry<R>> {
        self.iter().filter(move |entry| is_wanted(&entry.record) && entry.try_acquire())
    }

    /// Releases the entry. The next owner sees everything that this owner did to the record.
    pub(crate) fn release(entry: &Entry<R>) {
        entry.taken.store(false, Ordering::Release);
    }

    /// All entries, including idle ones. An entry that is added during the iteration may be missed; the schemes show
    /// why that is harmless.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry<R>> {
        // SAFETY: entries live as long as the list, and are initialized before they are published.
        let entry = |entry: *const Entry<R>| unsafe { entry.as_ref() };
        iter::successors(entry(self.newest.load(Ordering::Acquire)), move |newer| entry(newer.older))
    }
}

impl<R> Entry<R> {
    fn try_acquire(&self) -> bool {
        // Acquire pairs with `release`: the new owner sees the record as the previous owner left it.
        !self.taken.load(Ordering::Relaxed)
            && self.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
}

#[cfg(feature = "std")]
impl<R> Entry<R> {
    /// Whether a thread owns the entry.
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
            // SAFETY: `add` made the entry by `Box::into_raw`, and `drop` has the only reference to the list.
            entry = unsafe { Box::from_raw(entry.cast_mut()) }.older;
        }
    }
}
