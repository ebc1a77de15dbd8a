//! A thread's cache, which allocates and frees objects without atomic read-modify-writes.
//!
//! A cache has a magazine of free objects in the memory of its process. Each object's word says that this cache has the
//! object, and only this cache changes such a word. So an allocation pops the magazine and stores one word. For a
//! survivor, too, that store is the moment of the allocation: no other data in shared memory needs to agree with it.
//! The same is true of the free of a private object.
//!
//! A full magazine gives a chain to the depot, and an empty magazine takes a chain from it.

use std::cell::Cell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use crate::depot::Entry;
use crate::mapped::error::Error;
use crate::mapped::fork;
use crate::mapped::handle::Handle;
use crate::mapped::live;
use crate::mapped::mapping::Mapping;
use crate::mapped::private::RawPrivate;
use crate::mapped::process::Identity;
#[cfg(doc)]
use crate::mapped::raw::RawSlab;
use crate::primitive::AtomicU64;
use crate::word::{Generation, State, Word};

/// A thread's access to a slab of raw bytes; [`Cache`](crate::Cache) is the typed form.
///
/// Make a cache for each thread, and keep it. A cache may move to another thread. In the child of a `fork`, the copy of
/// a cache returns [`Error::Forked`]; the child makes a cache of its own. While the cache lives it keeps up to two
/// chains of free objects to itself ([`chain`](crate::Options::chain)); when it is dropped it returns them. If its
/// process dies, a survivor returns them.
pub struct RawCache {
    mapping: Arc<Mapping>,
    /// The objects' words.
    words: NonNull<AtomicU64>,
    objects: NonNull<u8>,
    object_bytes: usize,
    /// The application's number for each object's last holder, if the slab keeps owners.
    owners: Option<NonNull<AtomicU64>>,
    slot: u16,
    /// The process that made the cache.
    pid: u32,
    /// The number of forks that led to the process that made the cache. Comparing this number takes no system call.
    born: u32,
    /// The number of entries of the magazine in use.
    count: Cell<usize>,
    /// Indices of free objects, the one freed last at the end. Their generations are in their words.
    magazine: Box<[Cell<u32>]>,
}

// SAFETY: the pointers lead into the mapping, which `mapping` keeps alive and which belongs to no thread.
unsafe impl Send for RawCache {}

impl RawCache {
    pub(crate) fn new(mapping: Arc<Mapping>) -> Result<Self, Error> {
        let born = fork::watch()?;
        let slot = mapping.register()?;
        let geometry = mapping.header.geometry;
        Ok(RawCache {
            words: NonNull::from(mapping.words()).cast(),
            objects: mapping.object(0),
            owners: mapping.owners().map(|owners| NonNull::from(owners).cast()),
            object_bytes: geometry.object_bytes as usize,
            slot,
            pid: std::process::id(),
            born,
            count: Cell::new(0),
            magazine: vec![Cell::new(0); 2 * geometry.chain as usize].into(),
            mapping,
        })
    }

    /// Allocates an object, private to this cache until it is [published](RawPrivate::publish).
    ///
    /// Its bytes are those that the last holder left, or zero. Wait-free while the magazine has objects: a load and two
    /// stores. Otherwise lock-free; but when no object is left, the allocation checks for dead processes, which takes
    /// system calls.
    ///
    /// # Errors
    /// [`Error::Full`]; [`Error::Forked`]; [`Error::Damaged`]; [`Error::System`] when no object is left and the check
    /// for dead processes fails, or when no space can be reserved to grow.
    ///
    /// ```
    /// use millstream_slab::RawSlab;
    ///
    /// let slab = RawSlab::options(64, 1000).private()?;
    /// let cache = slab.cache()?;
    /// let mut object = cache.alloc()?;
    /// object[..5].copy_from_slice(b"hello");
    /// # Ok::<(), millstream_slab::Error>(())
    /// ```
    #[inline]
    pub fn alloc(&self) -> Result<RawPrivate<'_>, Error> {
        let index = self.pop()?;
        let word = self.word(index);
        // Relaxed: this cache wrote the word last.
        let cached = Word(word.load(Ordering::Relaxed));
        // Release, for a survivor: this store comes after all earlier stores of this cache. Other caches do not read
        // the word.
        word.store(cached.allocated(), Ordering::Release);
        Ok(RawPrivate::new(self, index))
    }

    /// Frees a published object, or an orphan, whichever process allocated it.
    ///
    /// Linearizable at its compare-and-swap: of several threads that free one object, one succeeds. Lock-free.
    ///
    /// # Errors
    /// [`Error::Stale`] for a double free; [`Error::Foreign`]; [`Error::Forked`]; [`Error::Held`] while another cache
    /// has claimed it; [`Error::Damaged`].
    ///
    /// ```
    /// use millstream_slab::{Error, RawSlab};
    ///
    /// let slab = RawSlab::options(64, 1000).private()?;
    /// let cache = slab.cache()?;
    /// let handle = cache.alloc()?.publish();
    /// cache.free(handle)?;
    /// assert!(matches!(cache.free(handle), Err(Error::Stale { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    #[inline]
    pub fn free(&self, handle: Handle) -> Result<(), Error> {
        self.check_process()?;
        let word = self.mapping.look_up(handle)?;
        let generation = handle.in_place();
        // An object whose generations are used up is never allocated again.
        let Some(next) = generation.next() else { return self.change(handle, generation.retired()) };
        // AcqRel: all accesses to the object come before, and those of its next holder come after.
        let published = generation.published();
        if word.compare_exchange(published, next.cached(self.slot), Ordering::AcqRel, Ordering::Relaxed).is_err() {
            self.change(handle, next.cached(self.slot))?;
        }
        // Pairs with the acquire fence of a reader: a reader that sees what the next holder writes sees this word.
        fence(Ordering::Release);
        self.push(handle.index());
        Ok(())
    }

    /// Makes a published object, or an orphan, private to this cache, so that its contents can be changed. Its handles
    /// stay valid, but calls with them return [`Error::Held`] until the object is published again.
    ///
    /// Linearizable at its compare-and-swap. Lock-free.
    ///
    /// # Errors
    /// As [`free`](RawCache::free).
    #[inline]
    pub fn claim(&self, handle: Handle) -> Result<RawPrivate<'_>, Error> {
        self.check_process()?;
        let word = self.mapping.look_up(handle)?;
        let generation = handle.in_place();
        let held = generation.held(self.slot);
        // Acquire: pairs with the release of the store that published it.
        if word.compare_exchange(generation.published(), held, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            self.change(handle, held)?;
        }
        // As in `free`: a reader that sees what is written from now on sees that the object was claimed.
        fence(Ordering::Release);
        Ok(RawPrivate::new(self, handle.index()))
    }

    /// Sets the application's number for the user of this cache: a worker, a job, a connection. Objects that this cache
    /// publishes from now on have this [owner](RawSlab::owner), and so have the objects that it holds when its process
    /// dies. This call has no effect where the slab keeps no [owners](crate::Options::owners).
    pub fn set_owner(&self, owner: u64) {
        if !self.is_ours() {
            return;
        }
        self.mapping.slots()[usize::from(self.slot)].user.store(owner, Ordering::Release);
    }

    /// The number of objects that can be allocated without the depot.
    #[must_use]
    pub fn cached(&self) -> usize {
        self.count.get()
    }

    /// Gives all objects in the magazine to the depot, where other caches find them.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn flush(&self) -> Result<(), Error> {
        self.check_process()?;
        while self.count.get() > 0 {
            self.give(self.count.get().min(self.magazine.len() / 2))?;
        }
        Ok(())
    }

    /// Changes the word of a published or orphaned object, given its handle; returns an error if the object has another
    /// state.
    #[cold]
    fn change(&self, handle: Handle, new: u64) -> Result<(), Error> {
        let word = self.mapping.look_up(handle)?;
        let generation = handle.in_place();
        let mut found = word.load(Ordering::Relaxed);
        while found == generation.published() || found == generation.orphan() {
            match word.compare_exchange(found, new, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                // Meanwhile another cache claimed the object and published it again, or freed it.
                Err(now) => found = now,
            }
        }
        Err(self.mapping.refusal(handle, Word(found)))
    }

    #[inline(always)]
    fn word(&self, index: u64) -> &AtomicU64 {
        // SAFETY: `words` has an entry for every index of the slab, and the magazine and private objects have only
        // indices of the slab.
        unsafe { self.words.add(index as usize).as_ref() }
    }

    #[inline(always)]
    fn pop(&self) -> Result<u64, Error> {
        if self.count.get() == 0 || !self.is_ours() {
            self.refill()?;
        }
        let count = self.count.get() - 1;
        self.count.set(count);
        // SAFETY: the magazine had more than `count` entries in use before the decrement, and never has more than its
        // length.
        Ok(u64::from(unsafe { self.magazine.get_unchecked(count) }.get()))
    }

    #[inline(always)]
    fn push(&self, index: u64) {
        if self.count.get() == self.magazine.len() {
            self.spill();
        }
        let count = self.count.get();
        // SAFETY: `spill` has made room if the magazine was full, so `count` is below its length.
        unsafe { self.magazine.get_unchecked(count) }.set(index as u32);
        self.count.set(count + 1);
    }

    /// Takes objects from the depot, or unused objects, or free objects of dead processes.
    #[cold]
    #[inline(never)]
    fn refill(&self) -> Result<(), Error> {
        self.check_process()?;
        if self.fetch()? || (self.mapping.try_recover()?.freed > 0 && self.fetch()?) {
            return Ok(());
        }
        Err(Error::Full { objects: self.mapping.header.geometry.max_objects })
    }

    fn fetch(&self) -> Result<bool, Error> {
        Ok(self.mapping.depot().take(self.slot, |entry| self.push(entry.index))? > 0 || self.fetch_fresh()?)
    }

    /// Takes objects that were never used, up to a chain of them.
    ///
    /// Each object is taken by a compare-and-swap of its word, so after a kill half-way each object either belongs to
    /// this cache or is unused.
    fn fetch_fresh(&self) -> Result<bool, Error> {
        let mapping = &self.mapping;
        loop {
            let from = mapping.fresh().load(Ordering::Acquire);
            let until = from.saturating_add(mapping.header.geometry.chain).min(mapping.capacity());
            if from >= until {
                if !mapping.grow()? {
                    return Ok(false);
                }
                continue;
            }
            for index in from..until {
                let ours = Generation::FIRST.cached(self.slot);
                if self.word(index).compare_exchange(0, ours, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                    self.push(index);
                }
            }
            // The number of fresh objects rises after the words have changed, so a cache has taken every object below
            // it.
            mapping.fresh().fetch_max(until, Ordering::AcqRel);
            if self.count.get() > 0 {
                return Ok(true);
            }
        }
    }

    /// Makes room in a full magazine.
    #[cold]
    #[inline(never)]
    fn spill(&self) {
        // A damaged depot cannot take the objects. Then they are no longer in this magazine, but their words still name
        // this cache, and the next process that opens the slab while no other uses it finds them.
        drop(self.give(self.magazine.len() / 2));
    }

    /// Gives the oldest `number` entries to the depot. The newest entries stay, because their objects are the most
    /// likely to be in the processor's caches.
    fn give(&self, number: usize) -> Result<(), Error> {
        let count = self.count.get();
        let entry = |index: &Cell<u32>| {
            let index = u64::from(index.get());
            Entry { generation: Word(self.word(index).load(Ordering::Relaxed)).generation(), index }
        };
        let chain: Vec<Entry> = self.magazine[..number].iter().map(entry).collect();
        for index in number..count {
            self.magazine[index - number].set(self.magazine[index].get());
        }
        self.count.set(count - number);
        Ok(self.mapping.depot().give(self.slot, &chain)?)
    }

    /// Ends the life of a private object.
    #[inline(always)]
    pub(crate) fn free_private(&self, index: u64) {
        // In the child of a `fork`, the object is the parent's to free.
        if !self.is_ours() {
            return;
        }
        let word = self.word(index);
        // Relaxed, here and below: this cache wrote the word last.
        let held = Word(word.load(Ordering::Relaxed));
        let Some(cached) = held.freed() else {
            return word.store(held.generation().retired(), Ordering::Release);
        };
        // Release: all accesses to the object come before those of the cache that gets it from the depot.
        word.store(cached, Ordering::Release);
        self.push(index);
    }

    /// Frees an object that its holder passes to this cache.
    #[inline(always)]
    pub(crate) fn free_held(&self, index: u64) {
        let word = self.word(index);
        // Relaxed: the last writer has synchronised with this thread since it wrote. Release: as in `free_private`.
        let generation = Word(word.load(Ordering::Relaxed)).generation();
        let Some(next) = generation.next() else { return word.store(generation.retired(), Ordering::Release) };
        word.store(next.cached(self.slot), Ordering::Release);
        self.push(index);
    }

    /// Allocates an object for the holder with this slot, by one store. Before the store, the object is free and
    /// belongs to this cache. After the store, it is allocated and belongs to that holder.
    #[inline(always)]
    pub(crate) fn alloc_for(&self, slot: u16) -> Result<u64, Error> {
        let index = self.pop()?;
        self.hand_over(index, slot);
        Ok(index)
    }

    /// Passes an object of this cache to the holder with this slot, by one store. Before the store, the object belongs
    /// to this cache; after the store, to that holder.
    #[inline(always)]
    pub(crate) fn hand_over(&self, index: u64, slot: u16) {
        let word = self.word(index);
        let generation = Word(word.load(Ordering::Relaxed)).generation();
        // Release: for a survivor, all accesses to the object come before this store.
        word.store(generation.held(slot), Ordering::Release);
    }

    /// Takes over a free object from another holder, by one store as in `hand_over`.
    #[inline(always)]
    pub(crate) fn take_free(&self, index: u64) {
        let word = self.word(index);
        let generation = Word(word.load(Ordering::Relaxed)).generation();
        // Release: as in `hand_over`.
        word.store(generation.cached(self.slot), Ordering::Release);
        // Pairs with the fence of a reader, as in `free`.
        fence(Ordering::Release);
        self.push(index);
    }

    /// Takes over an object that its holder passes to this cache, by one store as in `hand_over`.
    #[inline(always)]
    pub(crate) fn take_over(&self, index: u64) {
        self.hand_over(index, self.slot);
    }

    /// Whether this process made the cache, rather than a process that forked this one.
    #[inline(always)]
    pub(crate) fn is_ours(&self) -> bool {
        self.born == fork::generation()
    }

    #[inline(always)]
    pub(crate) fn check_process(&self) -> Result<(), Error> {
        if self.is_ours() { Ok(()) } else { Err(Error::Forked { pid: self.pid }) }
    }

    /// The process that made the cache.
    #[inline(always)]
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    #[inline(always)]
    pub(crate) fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    /// Makes a private object public, by one store. Before the store, the object belongs to this cache; after the
    /// store, to every process.
    #[inline(always)]
    pub(crate) fn publish(&self, index: u64) -> Handle {
        // In the child of a `fork`, the object is the parent's to publish.
        if !self.is_ours() {
            return self.handle(index);
        }
        if let Some(owners) = self.owners {
            let user = self.mapping.slots()[usize::from(self.slot)].user.load(Ordering::Relaxed);
            // SAFETY: `owners` has an entry for every index of the slab. Relaxed: the release store of the word
            // follows.
            unsafe { owners.add(index as usize).as_ref() }.store(user, Ordering::Relaxed);
        }
        let generation = Word(self.word(index).load(Ordering::Relaxed)).generation();
        // Release: a thread that reads the object by its handle sees what was written.
        self.word(index).store(generation.published(), Ordering::Release);
        Handle::new(self.mapping.header.identity, index, generation)
    }

    /// The handle of a private object.
    pub(crate) fn handle(&self, index: u64) -> Handle {
        let generation = Word(self.word(index).load(Ordering::Relaxed)).generation();
        Handle::new(self.mapping.header.identity, index, generation)
    }

    /// The bytes of an object.
    #[inline(always)]
    pub(crate) fn bytes(&self, index: u64) -> NonNull<[u8]> {
        // SAFETY: the mapping has `object_bytes` bytes for every index of the slab, and private objects have such an
        // index.
        let start = unsafe { self.objects.add(index as usize * self.object_bytes) };
        NonNull::slice_from_raw_parts(start, self.object_bytes)
    }
}

impl Drop for RawCache {
    fn drop(&mut self) {
        // A copy that `fork` made in a child leaves the parent's cache alone, whichever cache has its slot by now.
        if self.pid != std::process::id() {
            return;
        }
        if self.flush().is_ok() {
            // Release: the next owner of the slot finds nothing of this cache.
            self.mapping.slots()[usize::from(self.slot)].owner.store(Identity::NONE, Ordering::Release);
        }
    }
}

impl std::fmt::Debug for RawCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawCache").field("slot", &self.slot).field("cached", &self.count.get()).finish()
    }
}

impl Mapping {
    /// The word of the object that a handle names; the handle may be stale.
    #[inline(always)]
    pub(crate) fn look_up(&self, handle: Handle) -> Result<&AtomicU64, Error> {
        match self.words().get(handle.index() as usize) {
            Some(word) if handle.belongs_to(self.header.identity) => Ok(word),
            _ => Err(Error::Foreign),
        }
    }

    /// The reason why a handle does not give access to an object with this word.
    #[cold]
    pub(crate) fn refusal(&self, handle: Handle, found: Word) -> Error {
        let index = handle.index();
        match found.state() {
            Some(State::Held(slot)) if found.generation() == handle.in_place() => {
                Error::Held { index, pid: live::holder(self, slot) }
            }
            Some(_) => Error::Stale { index, generation: handle.generation(), found: found.generation().number() },
            None => Error::Damaged { what: "the word of an object makes no sense", at: index },
        }
    }
}
