//! Private objects on their way from one thread to another of the same process.
//!
//! A parcel has a slot of its own, as a cache has, and holds what is in it. So objects change hands by one store of their word, as
//! ever: from the cache that puts them in to the parcel, and from the parcel to the cache that frees them or takes them out. Nobody
//! else changes such a word, so no compare-and-swap is needed on either side, and a parcel of a killed process is found by its slot.
//!
//! Like a cache, a parcel may also have free objects in its hands: those that were in it when it was cleared. So a parcel that goes to
//! and fro is filled with the objects that were freed in it, and nothing but the parcel goes from one thread to the other.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

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
/// Four bytes an object, a store to put it in and a store to take it out: the cheapest way to have objects freed elsewhere; cheaper still if
/// the parcel goes to and fro, [filled](RawParcel::fill) here and [cleared](RawParcel::clear) there. To send
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
    /// What is in it, and then the free objects that it keeps.
    indices: Vec<u32>,
    /// How many are in it.
    len: usize,
}

impl RawParcel {
    pub(crate) fn new(shared: Arc<Shared>) -> Result<Self, Error> {
        let slot = shared.register()?;
        Ok(RawParcel { shared, slot, pid: std::process::id(), indices: Vec::new(), len: 0 })
    }

    /// What the application calls who uses this parcel: whose orphans what is in it will be if the process dies; see
    /// [`RawCache::set_owner`].
    pub fn set_owner(&self, owner: u64) {
        if self.pid == std::process::id() {
            self.shared.slots()[usize::from(self.slot)].user.store(owner, Ordering::Release);
        }
    }

    /// How many objects are in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many free objects it keeps for what will be in it.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.indices.len() - self.len
    }

    /// Puts an object in; if the parcel keeps free ones, the object's cache gets one of them for it. Allocates memory when there has
    /// not been as much in it before; otherwise a load and a store for each of the two, and what the cache does when it is full.
    ///
    /// # Errors
    /// [`Error::Foreign`] for an object of another slab, which is freed.
    #[inline]
    pub fn push(&mut self, object: RawPrivate<'_>) -> Result<(), Error> {
        let cache = object.cache();
        self.check(cache)?;
        let index = object.index();
        if let Some(place) = self.indices.get_mut(self.len) {
            let free = std::mem::replace(place, index as u32);
            cache.hand_over(index, self.slot);
            std::mem::forget(object);
            cache.take_free(u64::from(free));
        } else {
            // Room first: from the store on the object is the parcel's, and must be in it.
            self.indices.reserve(1);
            cache.hand_over(index, self.slot);
            std::mem::forget(object);
            self.indices.push(index as u32);
        }
        self.len += 1;
        Ok(())
    }

    /// Allocates an object straight into the parcel, and gives its bytes, to be written: one of those that the parcel
    /// [keeps](RawParcel::clear), or else one of the cache's. A load and a store, as a rule.
    ///
    /// # Errors
    /// [`Error::Foreign`] for a cache of another slab; otherwise as [`RawCache::alloc`].
    #[inline]
    pub fn alloc(&mut self, cache: &RawCache) -> Result<&mut [u8], Error> {
        self.check(cache)?;
        // Pairs with the fence of a reader, as in `fill`.
        fence(Ordering::Release);
        self.add(cache)
    }

    /// Allocates so many objects straight into the parcel; `write` is given the bytes of each, in order.
    ///
    /// # Errors
    /// As [`alloc`](RawParcel::alloc); what was allocated before is in the parcel.
    ///
    /// ```
    /// use millstream_slab::RawSlab;
    ///
    /// let slab = RawSlab::options(64, 1000).private()?;
    /// let (mut parcel, cache) = (slab.parcel()?, slab.cache()?);
    /// parcel.fill(&cache, 256, |object| object[0] = 1)?;
    /// assert_eq!(parcel.len(), 256);
    /// # Ok::<(), millstream_slab::Error>(())
    /// ```
    #[inline]
    pub fn fill(&mut self, cache: &RawCache, number: usize, mut write: impl FnMut(&mut [u8])) -> Result<(), Error> {
        self.check(cache)?;
        // Pairs with the fence of a reader: one that sees what is written here sees in the object's word that its last life has
        // ended, whichever thread has ended it.
        fence(Ordering::Release);
        for _ in 0..number {
            write(self.add(cache)?);
        }
        Ok(())
    }

    /// Takes out the object that was put in last; `None` if nothing is left. Wait-free, a load and a store.
    ///
    /// # Errors
    /// [`Error::Foreign`] for a cache of another slab; the object stays.
    #[inline]
    pub fn pop<'c>(&mut self, cache: &'c RawCache) -> Result<Option<RawPrivate<'c>>, Error> {
        self.check(cache)?;
        let Some(last) = self.len.checked_sub(1) else { return Ok(None) };
        self.len = last;
        let index = u64::from(self.indices.swap_remove(last));
        cache.take_over(index);
        // Pairs with the fence of a reader, as in `fill`.
        fence(Ordering::Release);
        Ok(Some(RawPrivate::new(cache, index)))
    }

    /// Frees everything in it, into this cache. A load and a store for each object; otherwise as [`RawCache::free`].
    ///
    /// # Errors
    /// [`Error::Foreign`] for a cache of another slab; the objects stay.
    #[inline]
    pub fn free(&mut self, cache: &RawCache) -> Result<(), Error> {
        self.check(cache)?;
        // Pairs with the fence of a reader, as in `fill`: this cache hands them out again.
        fence(Ordering::Release);
        self.indices.drain(..std::mem::take(&mut self.len)).for_each(|index| cache.free_held(u64::from(index)));
        Ok(())
    }

    /// Frees everything in it, and keeps the free objects for what will be in it next: as a vector that is cleared keeps its
    /// memory. Wait-free, a load and a store for each object.
    ///
    /// For parcels that go to and fro between two threads: what the one allocates and the other frees goes no way but the parcel's. A parcel
    /// keeps no more than were in it at once; others can't allocate what it keeps, until it is [flushed](RawParcel::flush) or dropped.
    ///
    /// # Errors
    /// [`Error::Foreign`] for a cache of another slab; the objects stay.
    ///
    /// ```
    /// use millstream_slab::RawSlab;
    ///
    /// let slab = RawSlab::options(64, 1000).private()?;
    /// let (mut parcel, cache) = (slab.parcel()?, slab.cache()?);
    /// parcel.fill(&cache, 10, |object| object[0] = 1)?;
    /// // In another thread, with its own cache:
    /// parcel.clear(&cache)?;
    /// assert_eq!((slab.usage().allocated(), parcel.kept()), (0, 10));
    /// // In this one again:
    /// parcel.fill(&cache, 10, |object| object[0] = 2)?;
    /// assert_eq!((slab.usage().allocated(), parcel.kept()), (10, 0));
    /// # Ok::<(), millstream_slab::Error>(())
    /// ```
    #[inline]
    pub fn clear(&mut self, cache: &RawCache) -> Result<(), Error> {
        self.check(cache)?;
        self.end();
        Ok(())
    }

    /// Gives the free objects that it keeps to the depot, where all caches find them.
    ///
    /// # Errors
    /// [`Error::Foreign`] for a cache of another slab; [`Error::Damaged`].
    pub fn flush(&mut self, cache: &RawCache) -> Result<(), Error> {
        self.check(cache)?;
        self.give()
    }

    /// Allocates an object into the parcel; the cache is of the same slab.
    #[inline(always)]
    fn add(&mut self, cache: &RawCache) -> Result<&mut [u8], Error> {
        let index = if let Some(&kept) = self.indices.get(self.len) {
            cache.hand_over(u64::from(kept), self.slot);
            kept
        } else {
            // Room first: from the store on the object is the parcel's, and must be in it.
            self.indices.reserve(1);
            let index = cache.alloc_for(self.slot)? as u32;
            self.indices.push(index);
            index
        };
        self.len += 1;
        // SAFETY: within the mapping; what is in the parcel nobody else may reach, and the parcel is borrowed as long.
        Ok(unsafe { cache.bytes(u64::from(index)).as_mut() })
    }

    #[inline(always)]
    fn check(&self, cache: &RawCache) -> Result<(), Error> {
        cache.check_process()?;
        if self.pid != cache.pid() {
            return Err(Error::Forked { pid: self.pid });
        }
        if Arc::ptr_eq(&self.shared, cache.shared()) { Ok(()) } else { Err(Error::Foreign) }
    }

    /// Ends the lives of what is in it. The objects are free, and in its hands as before.
    #[inline]
    fn end(&mut self) {
        let words = self.shared.words();
        let mut ended = 0;
        while ended < self.len {
            let word = &words[self.indices[ended] as usize];
            // Relaxed: whoever wrote it last has synchronised with this thread since.
            let generation = Word(word.load(Ordering::Relaxed)).generation();
            if let Some(next) = generation.next() {
                // Release: what was done to the object comes before, for whoever gets it from the depot.
                word.store(next.cached(self.slot), Ordering::Release);
                ended += 1;
            } else {
                // Its generations are used up: nobody gets it any more.
                word.store(generation.retired(), Ordering::Release);
                self.len -= 1;
                self.indices.swap(ended, self.len);
                self.indices.swap_remove(self.len);
            }
        }
        self.len = 0;
    }

    /// Gives the free objects that it keeps to the depot.
    fn give(&mut self) -> Result<(), Error> {
        let mut chains = Chains::new(&self.shared, self.slot);
        for index in self.indices.drain(self.len..).map(u64::from) {
            // Relaxed: as above.
            let generation = Word(self.shared.words()[index as usize].load(Ordering::Relaxed)).generation();
            chains.push(Entry { generation, index })?;
        }
        chains.finish()
    }
}

impl Drop for RawParcel {
    fn drop(&mut self) {
        // A copy that `fork` made in a child leaves the parent's parcel alone.
        if self.pid != std::process::id() {
            return;
        }
        self.end();
        if self.give().is_ok() {
            // Release: whoever has the slot next finds nothing of this parcel.
            self.shared.slots()[usize::from(self.slot)].owner.store(Identity::NOBODY, Ordering::Release);
        }
    }
}

impl std::fmt::Debug for RawParcel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawParcel")
            .field("slot", &self.slot)
            .field("len", &self.len)
            .field("kept", &self.kept())
            .finish_non_exhaustive()
    }
}
