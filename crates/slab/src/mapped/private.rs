//! An object that one cache holds.

use std::ops::{Deref, DerefMut};

use crate::mapped::cache::RawCache;
use crate::mapped::handle::Handle;

/// An allocated object of raw bytes that only its holder can reach, like a `Box` in shared memory.
/// [`Private`](crate::Private) is the typed form.
///
/// Dropping it frees it. [Publishing](RawPrivate::publish) it makes it reachable by its handle. If its process dies, it
/// becomes an orphan, with its contents. If it is forgotten (`std::mem::forget`), it stays allocated; when its cache
/// has ended, the next process that opens the slab or [recovers](crate::RawSlab::recover) makes it an orphan. In the
/// child of a `fork`, the object still belongs to the parent: do not write to it there; dropping or publishing it there
/// has no effect.
///
/// ```
/// use millstream_slab::RawSlab;
///
/// let slab = RawSlab::options(16, 10).private()?;
/// let cache = slab.cache()?;
/// let mut object = cache.alloc()?;
/// object.fill(7);
/// let handle = object.publish();
///
/// let mut bytes = [0; 16];
/// slab.read(handle, &mut bytes)?;
/// assert_eq!(bytes, [7; 16]);
/// # Ok::<(), millstream_slab::Error>(())
/// ```
#[must_use = "dropped at once, it is freed at once"]
pub struct RawPrivate<'c> {
    cache: &'c RawCache,
    index: u64,
}

impl<'c> RawPrivate<'c> {
    #[inline(always)]
    pub(crate) fn new(cache: &'c RawCache, index: u64) -> Self {
        RawPrivate { cache, index }
    }

    #[inline(always)]
    pub(crate) fn cache(&self) -> &'c RawCache {
        self.cache
    }

    /// The index of the object in its slab.
    #[inline(always)]
    pub(crate) fn index(&self) -> u64 {
        self.index
    }

    /// Makes the object public: from now on any thread of any process can read, claim and free it by the handle.
    ///
    /// Wait-free: one store, which transfers the object from this process to the slab. A kill before the store leaves
    /// an orphan, a kill after it leaves a published object, and no third case exists. A thread that uses the handle
    /// sees everything written to the object before.
    ///
    /// To link the object into a structure in the slab, write its handle there after this call, or before it, with
    /// [`handle`](RawPrivate::handle). If the process dies between the two steps, the object is not published: its
    /// handle names an orphan, and is stale later, so a link can dangle but never names another object.
    #[inline]
    pub fn publish(self) -> Handle {
        let handle = self.cache.publish(self.index);
        std::mem::forget(self);
        handle
    }

    /// The handle that the object will have when it is published.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.cache.handle(self.index)
    }
}

impl Deref for RawPrivate<'_> {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        // SAFETY: the bytes are within the mapping, and while the object is private only this value reaches it.
        unsafe { self.cache.bytes(self.index).as_ref() }
    }
}

impl DerefMut for RawPrivate<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `deref`; the exclusive borrow of this value makes the access exclusive.
        unsafe { self.cache.bytes(self.index).as_mut() }
    }
}

impl Drop for RawPrivate<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.cache.free_private(self.index);
    }
}

impl std::fmt::Debug for RawPrivate<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawPrivate").field("index", &self.index).finish_non_exhaustive()
    }
}
