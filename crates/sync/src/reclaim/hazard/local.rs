//! A thread's place to retire to.

use core::marker::PhantomData;

use crate::reclaim::registry::Entry;
use crate::reclaim::retired::Retired;

use super::garbage::{Garbage, give_back};
use super::shared::Shared;

/// Where one thread at a time retires objects of a [`Domain`](super::Domain).
///
/// Dropping it frees nothing: the domain's next local goes on with what it leaves, unless another one does so first, in [`flush`](Local::flush) or
/// with a batch of its own.
pub struct Local<'d> {
    shared: &'d Shared,
    garbage: &'d Entry<Garbage>,
    /// Its garbage is not shared.
    not_sync: PhantomData<core::cell::Cell<()>>,
}

impl<'d> Local<'d> {
    pub(super) fn new(shared: &'d Shared) -> Self {
        Local { shared, garbage: shared.garbage.acquire(Garbage::new), not_sync: PhantomData }
    }

    /// Frees the box behind `object` when no hazard protects it.
    ///
    /// Lock-free, amortised constant time. It pushes to a vector and frees up to two objects of an earlier batch; once a
    /// batch it also passes the domain's fence, reads all slots, and frees what one local that was dropped has left. At most
    /// `3 · max(batch, 2 · hazards) + hazards` objects of one local wait when this returns, whatever readers do, unless the operating system
    /// refuses every heavy fence: then nothing is freed. Destructors may retire: what they retire adds to this until
    /// they have returned, and none of them runs inside of another one of this local.
    ///
    /// # Safety
    /// `object` came from [`Box::into_raw`]; no shared pointer leads to it any more; it is retired once. Its destructor may
    /// run on any thread, at any later time.
    #[inline]
    pub unsafe fn retire<T>(&self, object: *mut T) {
        // SAFETY: the caller's promise.
        self.garbage.retire(self.shared, unsafe { Retired::boxed(object) });
    }

    /// Calls `free(object)` when no hazard protects `object`. As [`retire`](Local::retire), for what is not a
    /// box.
    ///
    /// # Safety
    /// No shared pointer leads to the object any more, and `free(object)` may run once, on any thread, at any later time.
    #[inline]
    pub unsafe fn retire_with(&self, object: *mut (), free: unsafe fn(*mut ())) {
        // SAFETY: the caller's promise.
        self.garbage.retire(self.shared, unsafe { Retired::with(object, free) });
    }

    /// Passes the fence now and frees everything that nobody protects, also of what locals that were dropped have left; with a quiet fence that is
    /// not passed yet, what was retired before the last batch. What destructors retire meanwhile waits for the next call.
    pub fn flush(&self) {
        self.garbage.flush(self.shared);
    }
}

impl Drop for Local<'_> {
    fn drop(&mut self) {
        give_back(self.garbage, self.shared);
    }
}
