//! Private objects on their way from one thread to another of the same process.
//!
//! A parcel has a slot of its own, as a cache has, and holds what is in it. So objects change hands by one store of their word, as
//! ever: from the cache that puts them in to the parcel, and from the parcel to the cache that frees them or takes them out. Nobody
//! else changes such a word, so no compare-and-swap is needed on either side, and a parcel of a killed process is found by its slot.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::depot::Entry;
use crate::mapped::cache::RawCache;
use crate::mapped::error::Error;
use crate::mapped::private::RawPrivate;
use crate::mapped::process::Identity;
use crate::mapped::recover::Chains;
use crate::mapped::shared::Shared;
use crate::word::Word;

/// Private objects on their way to another thread of this process, which frees them or goes on with them;
/// [`Parcel`](crate::Parcel) is the typed form.
///
/// Four bytes an object, a store to put it in and a store to take it out: the cheapest way to have objects freed elsewhere. To send
/// objects to other processes, [publish](RawPrivate::publish) them. Keep parcels and use them again: each takes one of the slab's
/// [caches](crate::Options::caches) while it lives. What is in it when it is dropped is freed; if its process dies, it becomes orphans.
///
/// ```
/// use millstream_slab::RawSlab;
///
/// let slab = RawSlab::options(64, 1000).private()?;
/// let mut parcel = slab.parcel()?;
/// let cache = slab.cache()?;
/// for _ in 0..10 {
///     parcel.push(cache.alloc()?)?;
/// }
/// std::thread::scope(|scope| {
///     let other = scope.spawn(|| -> Result<(), millstream_slab::Error> {
///         let cache = slab.cache()?;
///         drop(parcel.pop(&cache)?); // one by one
///         parcel.free(&cache) // all that are left
///     });
///     other.join().expect("it does not panic")
/// })?;
/// assert_eq!(slab.usage().allocated(), 0);
/// # Ok::<(), millstream_slab::Error>(())
/// ```
pub struct RawParcel {
    shared: Arc<Shared>,
    slot: u16,
    /// The process that made it.
    pid: u32,
    /// What it holds.
    indices: Vec<u32>,
}

impl RawParcel {
    pub(crate) fn new(shared: Arc<Shared>) -> Result<Self, Error> {
        let slot = shared.register()?;
        Ok(RawParcel { shared, slot, pid: std::process::id(), indices: Vec::new() })
    }

    /// How many objects are in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// Whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// Puts an object in. Allocates when there has not been as much in it before; otherwise wait-free, a load and a store.
    ///
    /// # Errors
    /// [`Error::Foreign`] for an object of another slab, which is freed.
    #[inline]
    pub fn push(&mut self, object: RawPrivate<'_>) -> Result<(), Error> {
        self.check(object.cache())?;
        let index = object.index();
        // Room first: from the store on the object is the parcel's, and must be in it.
        self.indices.reserve(1);
        object.cache().hand_over(index, self.slot);
        self.indices.push(index as u32);
        std::mem::forget(object);
        Ok(())
    }

    /// Takes out the object that was put in last; `None` if nothing is left. Wait-free, a load and a store.
    ///
    /// # Errors
    /// [`Error::Foreign`] for a cache of another slab; the object stays.
    #[inline]
    pub fn pop<'c>(&mut self, cache: &'c RawCache) -> Result<Option<RawPrivate<'c>>, Error> {
        self.check(cache)?;
        let Some(index) = self.indices.pop() else { return Ok(None) };
        cache.take_over(u64::from(index));
        Ok(Some(RawPrivate::new(cache, u64::from(index))))
    }

    /// Frees everything in it, into this cache. A load and a store for each object; otherwise as [`RawCache::free`].
    ///
    /// # Errors
    /// [`Error::Foreign`] for a cache of another slab; the objects stay.
    #[inline]
    pub fn free(&mut self, cache: &RawCache) -> Result<(), Error> {
        self.check(cache)?;
        self.indices.drain(..).for_each(|index| cache.free_held(u64::from(index)));
        Ok(())
    }

    #[inline(always)]
    fn check(&self, cache: &RawCache) -> Result<(), Error> {
        // In the child of a `fork` the parcel is a copy: what it lists is in the parent's.
        let is_ours = Arc::ptr_eq(&self.shared, cache.shared()) && self.pid == cache.pid();
        if is_ours { Ok(()) } else { Err(Error::Foreign) }
    }

    /// Frees everything in it, into the depot.
    fn give(&mut self) -> Result<(), Error> {
        let mut chains = Chains::new(&self.shared, self.slot);
        for index in self.indices.drain(..).map(u64::from) {
            let word = &self.shared.words()[index as usize];
            // Relaxed, as in a cache: written by whoever had the parcel, and nobody else.
            let generation = Word(word.load(Ordering::Relaxed)).generation();
            let Some(next) = generation.next() else {
                word.store(generation.retired(), Ordering::Release);
                continue;
            };
            word.store(next.cached(self.slot), Ordering::Release);
            chains.push(Entry { generation: next, index })?;
        }
        chains.finish()
    }
}

impl Drop for RawParcel {
    fn drop(&mut self) {
        // A copy that `fork` made in a child leaves the parent's parcel alone.
        if self.pid == std::process::id() && self.give().is_ok() {
            // Release: whoever has the slot next finds nothing of this parcel.
            self.shared.slots()[usize::from(self.slot)].owner.store(Identity::NOBODY, Ordering::Release);
        }
    }
}

impl std::fmt::Debug for RawParcel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawParcel").field("slot", &self.slot).field("len", &self.len()).finish_non_exhaustive()
    }
}
