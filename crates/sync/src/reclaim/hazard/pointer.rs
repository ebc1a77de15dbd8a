//! A hazard pointer and the object it protects.

use core::marker::PhantomData;
use core::ops::Deref;

use crate::primitive::AtomicPtr;
use crate::reclaim::registry::{Entry, Registry};

use super::slot::Slot;

/// A slot that protects one object after another. A hazard is long-lived: keep it with the thread's other state.
///
/// Dropping it releases the slot.
pub struct Hazard<'d> {
    slot: &'d Entry<Slot>,
    /// Confines the hazard to one thread at a time, which writes the slot.
    not_sync: PhantomData<core::cell::Cell<()>>,
}

impl<'d> Hazard<'d> {
    pub(super) fn new(slots: &'d Registry<Slot>) -> Self {
        Hazard { slot: slots.acquire(Slot::new), not_sync: PhantomData }
    }

    /// Protects the object to which `source` points until the result is dropped; `None` for null.
    ///
    /// Lock-free: it takes another round only if `source` has changed in between. An acquiring load. Cost: two loads, a
    /// store, a [light fence](millstream_fence::light) and a comparison, plus a store when the result is dropped.
    ///
    /// # Safety
    /// Every value of `source` is null or points to a `T` that is retired to this hazard's domain, and only once no
    /// shared pointer leads to it.
    #[inline(always)]
    pub unsafe fn protect<'h, T>(&'h mut self, source: &AtomicPtr<T>) -> Option<Protected<'h, T>> {
        let object = self.slot.protect(source);
        // SAFETY: the object is null or protected, as `slot` proves for objects that are retired as the caller
        // promises.
        let object = unsafe { object.as_ref() }?;
        Some(Protected { object, slot: self.slot })
    }

    /// Like [`protect`](Self::protect), for callers that clear the slot by other means, or leave it set until they
    /// protect the next object.
    #[cfg(feature = "std")]
    #[inline(always)]
    pub(in crate::reclaim) fn protect_raw<T>(&self, source: &AtomicPtr<T>) -> *mut T {
        self.slot.protect(source)
    }

    #[cfg(feature = "std")]
    #[inline(always)]
    pub(in crate::reclaim) fn clear(&self) {
        self.slot.clear();
    }
}

#[cfg(all(test, feature = "std", not(loom)))]
impl Hazard<'_> {
    pub(super) fn is_set(&self) -> bool {
        !self.slot.protected().is_null()
    }
}

impl Drop for Hazard<'_> {
    fn drop(&mut self) {
        self.slot.clear();
        Registry::release(self.slot);
    }
}

/// An object that is not freed as long as this value lives.
pub struct Protected<'h, T> {
    object: &'h T,
    slot: &'h Slot,
}

impl<T> Deref for Protected<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        self.object
    }
}

impl<T> Drop for Protected<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.slot.clear();
    }
}
