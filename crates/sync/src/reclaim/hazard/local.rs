//! The local to which a thread retires.

use core::marker::PhantomData;

use crate::reclaim::registry::Entry;
use crate::reclaim::retired::Retired;

use super::garbage::{Garbage, give_back};
use super::shared::Shared;

/// The place where one thread at a time retires objects of a [`Domain`](super::Domain).
///
/// Dropping it frees no object: the domain's next local takes over the garbage, unless another local frees it first, in
/// [`flush`](Local::flush) or with a batch of its own.
pub struct Local<'d> {
    shared: &'d Shared,
    garbage: &'d Entry<Garbage>,
    /// Confines the local to one thread at a time, since its garbage is not synchronized.
    not_sync: PhantomData<core::cell::Cell<()>>,
}

impl<'d> Local<'d> {
    pub(super) fn new(shared: &'d Shared) -> Self {
        Local { shared, garbage: shared.garbage.acquire(Garbage::new), not_sync: PhantomData }
    }

    /// Frees the box behind `object` when no hazard protects it.
    ///
    /// Lock-free, amortised constant time. It pushes to a vector and frees up to two objects of an earlier batch; once
    /// per batch it also passes the domain's fence, reads all slots, and frees the garbage of one dropped local. At
    /// most `3 · max(batch, 2 · hazards) + hazards` objects of one local wait when this returns, whatever readers do,
    /// unless the operating system refuses every heavy fence: then no object is freed. Destructors may retire: their
    /// objects add to this bound until they have returned, and no destructor runs inside another one of this local.
    ///
    /// # Safety
    /// `object` came from [`Box::into_raw`], no shared pointer leads to it, and it is retired once. Its destructor may
    /// run on any thread, at any later time.
    #[inline]
    pub unsafe fn retire<T>(&self, object: *mut T) {
        // SAFETY: this function has the contract of `Retired::boxed`.
        self.garbage.retire(self.shared, unsafe { Retired::boxed(object) });
    }

    /// Calls `free(object)` when no hazard protects `object`. Like [`retire`](Local::retire), for objects that are not
    /// boxes.
    ///
    /// # Safety
    /// No shared pointer leads to the object, and `free(object)` may run once, on any thread, at any later time.
    #[inline]
    pub unsafe fn retire_with(&self, object: *mut (), free: unsafe fn(*mut ())) {
        // SAFETY: this function has the contract of `Retired::with`.
        self.garbage.retire(self.shared, unsafe { Retired::with(object, free) });
    }

    /// Passes the fence now and frees all objects that no hazard protects, including the garbage of dropped locals.
    /// With a quiet fence that has not been passed yet, it frees the objects retired before the last batch. Objects
    /// that destructors retire meanwhile wait for the next call.
    pub fn flush(&self) {
        self.garbage.flush(self.shared);
    }
}

impl Drop for Local<'_> {
    fn drop(&mut self) {
        give_back(self.garbage, self.shared);
    }
}
