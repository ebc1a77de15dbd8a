//! Private objects on their way from one thread to another of the same process.
//!
//! A parcel has a slot, as a cache has, and holds the objects in it. So, as in the rest of the slab, one store to an
//! object's word transfers the object: from a cache to the parcel when it is put in, and from the parcel to a cache
//! when it is freed or taken out. No other holder changes such a word, so neither side needs a compare-and-swap, and a
//! survivor finds the parcel of a killed process by its slot.
//!
//! Like a cache, a parcel may also keep free objects: those that were in it when it was cleared. So a parcel that goes
//! back and forth is filled with the objects that were freed in it, and no other objects move between the threads.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use crate::depot::Entry;
use crate::mapped::cache::RawCache;
use crate::mapped::error::Error;
use crate::mapped::mapping::Mapping;
use crate::mapped::private::RawPrivate;
use crate::mapped::process::Identity;
use crate::mapped::recover::Chains;
use crate::word::Word;

/// Private objects on their way to another thread of this process, which frees them or continues to use them;
/// [`Parcel`](crate::Parcel) is the typed form.
///
/// Each object in a parcel costs four bytes, a store to put it in and a store to take it out. That is the cheapest way
/// to have another thread free objects, and cheaper still if the parcel goes back and forth, [filled](RawParcel::fill)
/// on one side and [cleared](RawParcel::clear) on the other. To send objects to other processes,
/// [publish](RawPrivate::publish) them. Use parcels again and again: each takes one of the slab's
/// [caches](crate::Options::caches) while it lives. Dropping a parcel frees the objects in it; if its process dies,
/// they become orphans.
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
///         drop(parcel.pop(&cache)?); // one at a time
///         parcel.free(&cache) // all the others
///     });
///     other.join().expect("it does not panic")
/// })?;
/// assert_eq!(slab.usage().allocated(), 0);
/// # Ok::<(), millstream_slab::Error>(())
/// ```
pub struct RawParcel {
    mapping: Arc<Mapping>,
    slot: u16,
    /// The process that made the parcel.
    pid: u32,
    /// The objects in the parcel, then the free objects that it keeps.
    indices: Vec<u32>,
    /// The number of objects in the parcel.
    len: usize,
}

impl RawParcel {
    pub(crate) fn new(mapping: Arc<Mapping>) -> Result<Self, Error> {
        let slot = mapping.register()?;
        Ok(RawParcel { mapping, slot, pid: std::process::id(), indices: Vec::new(), len: 0 })
    }

    /// Sets the application's number for the user of this parcel. If the process dies, the objects in the parcel become
    /// orphans with this owner; see [`RawCache::set_owner`].
    pub fn set_owner(&self, owner: u64) {
        if self.pid == std::process::id() {
            self.mapping.slots()[usize::from(self.slot)].user.store(owner, Ordering::Release);
        }
    }

    /// The number of objects in the parcel.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the parcel holds no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of free objects that the parcel keeps for later fills.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.indices.len() - self.len
    }

    /// Puts an object in; if the parcel keeps free objects, the object's cache gets one of them in exchange. Allocates
    /// memory when the parcel holds more objects than ever before; otherwise costs a load and a store for each of the
    /// two objects, and gives a chain to the depot when the cache is full.
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
            // The space comes first: after the store the object is the parcel's, and must be in its list.
            self.indices.reserve(1);
            cache.hand_over(index, self.slot);
            std::mem::forget(object);
            self.indices.push(index as u32);
        }
        self.len += 1;
        Ok(())
    }

    /// Allocates an object straight into the parcel, and returns its bytes for writing. The object is one that the
    /// parcel [keeps](RawParcel::clear), or else comes from the cache. This usually costs a load and a store.
    ///
    /// # Errors
    /// [`Error::Foreign`] for a cache of another slab; otherwise as [`RawCache::alloc`].
    #[inline]
    pub fn alloc(&mut self, cache: &RawCache) -> Result<&mut [u8], Error> {
        self.check(cache)?;
        // Pairs with the acquire fence of a reader, as in `fill`.
        fence(Ordering::Release);
        self.add(cache)
    }

    /// Allocates `number` objects straight into the parcel; `write` receives the bytes of each, in order.
    ///
    /// # Errors
    /// As [`alloc`](RawParcel::alloc); the objects allocated before the error are in the parcel.
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
        // Pairs with the acquire fence of a reader: a reader that sees the bytes written here also sees, in the
        // object's word, that the object's last life has ended, whichever thread ended it.
        fence(Ordering::Release);
        for _ in 0..number {
            write(self.add(cache)?);
        }
        Ok(())
    }

    /// Takes out the object that was put in last; `None` from an empty parcel. Wait-free; costs a load and a store.
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
        // Pairs with the acquire fence of a reader, as in `fill`.
        fence(Ordering::Release);
        Ok(Some(RawPrivate::new(cache, index)))
    }

    /// Frees all objects in the parcel, into this cache. Costs a load and a store for each object; otherwise like
    /// [`RawCache::free`].
    ///
    /// # Errors
    /// [`Error::Foreign`] for a cache of another slab; the objects stay.
    #[inline]
    pub fn free(&mut self, cache: &RawCache) -> Result<(), Error> {
        self.check(cache)?;
        // Pairs with the acquire fence of a reader, as in `fill`: this cache will allocate the objects again.
        fence(Ordering::Release);
        self.indices.drain(..std::mem::take(&mut self.len)).for_each(|index| cache.free_held(u64::from(index)));
        Ok(())
    }

    /// Frees all objects in the parcel, and keeps the free objects for the next fill, as a cleared vector keeps its
    /// memory. Wait-free; costs a load and a store for each object.
    ///
    /// This is for parcels that go back and forth between two threads: the objects that one thread allocates and the
    /// other frees travel only inside the parcel. A parcel keeps at most as many objects as were ever in it at one time;
    /// other caches cannot allocate them until the parcel is [flushed](RawParcel::flush) or dropped.
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

    /// Gives the free objects that the parcel keeps to the depot, where all caches find them.
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
            // The space comes first: after the store the object is the parcel's, and must be in its list.
            self.indices.reserve(1);
            let index = cache.alloc_for(self.slot)? as u32;
            self.indices.push(index);
            index
        };
        self.len += 1;
        // SAFETY: the bytes are within the mapping; only the parcel reaches its objects, and it is exclusively borrowed
        // while the slice lives.
        Ok(unsafe { cache.bytes(u64::from(index)).as_mut() })
    }

    #[inline(always)]
    fn check(&self, cache: &RawCache) -> Result<(), Error> {
        cache.check_process()?;
        if self.pid != cache.pid() {
            return Err(Error::Forked { pid: self.pid });
        }
        if Arc::ptr_eq(&self.mapping, cache.mapping()) { Ok(()) } else { Err(Error::Foreign) }
    }

    /// Frees the objects in the parcel, which keeps them.
    #[inline]
    fn end(&mut self) {
        let words = self.mapping.words();
        let mut ended = 0;
        while ended < self.len {
            let word = &words[self.indices[ended] as usize];
            // Relaxed: the last writer has synchronised with this thread since it wrote.
            let generation = Word(word.load(Ordering::Relaxed)).generation();
            if let Some(next) = generation.next() {
                // Release: all accesses to the object come before those of the cache that gets it from the depot.
                word.store(next.cached(self.slot), Ordering::Release);
                ended += 1;
            } else {
                // The object's generations are used up, so no cache gets it again.
                word.store(generation.retired(), Ordering::Release);
                self.len -= 1;
                self.indices.swap(ended, self.len);
                self.indices.swap_remove(self.len);
            }
        }
        self.len = 0;
    }

    /// Gives the free objects that the parcel keeps to the depot.
    fn give(&mut self) -> Result<(), Error> {
        let mut chains = Chains::new(&self.mapping, self.slot);
        for index in self.indices.drain(self.len..).map(u64::from) {
            // Relaxed: as in `end`.
            let generation = Word(self.mapping.words()[index as usize].load(Ordering::Relaxed)).generation();
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
            // Release: the next owner of the slot finds nothing of this parcel.
            self.mapping.slots()[usize::from(self.slot)].owner.store(Identity::NONE, Ordering::Release);
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
