//! A thread's garbage: a batch that is being filled, and a batch that waits for its fence.
//!
//! A released entry keeps its garbage, which its next owner takes over. So no destructor runs when an entry is
//! released, and an entry never has more garbage than the bound, no matter how threads behave.

use alloc::vec::Vec;
use core::cell::{Cell, UnsafeCell};
use core::marker::PhantomData;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::primitive::{Ticket, ticket, try_heavy};
use crate::reclaim::registry::{Entry, Registry};
use crate::reclaim::retired::{Ready, Retired};

use super::domain::Shared;

/// Retired objects of a [`Domain`](super::Domain). One thread at a time may use a local.
///
/// Dropping a local does not free any object: the domain's next local takes over the garbage, unless another local
/// frees it first, in [`flush`](Local::flush) or together with one of its own batches.
pub struct Local<'d> {
    shared: &'d Shared,
    garbage: &'d Entry<Garbage>,
    /// Confines the local to one thread at a time, because its garbage is not synchronized.
    not_sync: PhantomData<Cell<()>>,
}

impl<'d> Local<'d> {
    pub(super) fn new(shared: &'d Shared) -> Self {
        Local { shared, garbage: shared.garbage.acquire(Garbage::new), not_sync: PhantomData }
    }

    /// Frees the box behind `object` when no hazard protects it.
    ///
    /// Lock-free, amortised constant time. A call pushes to a vector and frees up to two objects of an earlier batch;
    /// once per batch it also executes the domain's fence, reads all slots, and frees the garbage of one dropped local.
    /// At most `3 · max(batch, 2 · hazards) + hazards` objects of one local wait to be freed when this returns, no
    /// matter how readers behave. If the operating system refuses every heavy fence, no object is freed, and this bound
    /// does not apply. Destructors may retire: the objects that they retire add to this bound until the destructors
    /// have returned. No destructor runs inside another destructor of this local.
    ///
    /// # Safety
    /// `object` came from [`Box::into_raw`], no shared pointer leads to it, and it is retired once. Its destructor may
    /// run on any thread, at any later time.
    #[inline]
    pub unsafe fn retire<T>(&self, object: *mut T) {
        // SAFETY: the caller promises that the object came from a box, that nothing else frees it, and that any thread
        // may free it at any later time.
        self.garbage.retire(self.shared, unsafe { Retired::boxed(object) });
    }

    /// Calls `free(object)` when no hazard protects `object`. Like [`retire`](Local::retire), for objects that are not
    /// boxes.
    ///
    /// # Safety
    /// No shared pointer leads to the object, and `free(object)` may run once, on any thread, at any later time.
    #[inline]
    pub unsafe fn retire_with(&self, object: *mut (), free: unsafe fn(*mut ())) {
        // SAFETY: the caller promises that `free(object)` may run once, on any thread at any later time.
        self.garbage.retire(self.shared, unsafe { Retired::with(object, free) });
    }

    /// Executes the fence now and frees all objects that no hazard protects, including the garbage of dropped locals.
    /// If a quiet fence has not completed yet, the batch that this call closes waits for it, and only objects of
    /// earlier batches are freed. Objects that destructors retire during the call wait for the next one.
    pub fn flush(&self) {
        self.garbage.flush(self.shared);
    }
}

impl Drop for Local<'_> {
    fn drop(&mut self) {
        give_back(self.garbage, self.shared);
    }
}

/// The maximum number of ready objects that each retirement frees.
const FREED_PER_RETIRED: usize = 2;

pub(super) struct Garbage {
    /// The number of objects in `lists` and `ready`; the owner writes it, other threads read it.
    count: AtomicUsize,
    /// Only the owner touches the lists.
    lists: UnsafeCell<Lists>,
    /// Only the owner touches the ready objects.
    ready: Ready,
    /// Whether destructors of other entries' objects run on behalf of this entry. Only the owner touches the flag.
    tending: Cell<bool>,
}

#[derive(Default)]
struct Lists {
    filling: Vec<Retired>,
    /// A batch whose objects were all unlinked before the ticket was taken.
    waiting: Option<(Vec<Retired>, Ticket)>,
    /// The size of a batch that triggers the next scan.
    enough: usize,
    /// The protected addresses of a scan, sorted; the vector is kept for its memory.
    protected: Vec<*mut ()>,
}

// SAFETY: `count` is atomic. Only the thread that has acquired the entry touches the rest.
unsafe impl Sync for Garbage {}

impl Garbage {
    pub(super) fn new() -> Self {
        Garbage {
            count: AtomicUsize::new(0),
            lists: UnsafeCell::new(Lists::default()),
            ready: Ready::new(),
            tending: Cell::new(false),
        }
    }

    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Changes the number of objects; for the owner only. There is one writer, so a load and a store suffice.
    #[inline]
    fn add(&self, difference: isize) {
        self.count.store(self.count().wrapping_add_signed(difference), Ordering::Relaxed);
    }

    /// Keeps the object until no hazard protects it; for the owner only.
    #[inline]
    pub(super) fn retire(&self, shared: &Shared, object: Retired) {
        self.add(1);
        // SAFETY: the caller has acquired this entry, so no other thread touches the lists, and no reference lives
        // across a destructor.
        let lists = unsafe { &mut *self.lists.get() };
        lists.filling.push(object);
        if lists.filling.len() >= lists.enough.max(shared.settings.batch) {
            self.collect(shared);
            // With each batch, the garbage of one idle entry is freed, too. So the cost of each object that a dropped
            // local has left is constant.
            if !self.is_busy() && shared.take_note() {
                self.tend(shared, 1);
            }
        }
        if !self.ready.is_empty() {
            self.free(FREED_PER_RETIRED);
            // SAFETY: the caller has acquired this entry, so no other thread touches the lists, and no reference lives
            // across a destructor.
            let batch = unsafe { (*self.lists.get()).enough }.max(shared.settings.batch);
            self.ready.free_down_to(batch, || self.add(-1));
        }
    }

    /// Closes the batch that is being filled; for the owner only. If the fence of the previous batch has not completed
    /// yet, that batch gets a fast fence, which bounds the garbage.
    #[cold]
    fn collect(&self, shared: &Shared) {
        // SAFETY: the caller has acquired this entry, so no other thread touches the lists, and no reference lives
        // across a destructor.
        let lists = unsafe { &mut *self.lists.get() };
        if let Some((mut objects, ticket)) = lists.waiting.take() {
            if !ticket.is_done() && !try_heavy() {
                // Every fence is refused at present. The next attempt waits for twice as many objects, which keeps the
                // cost per object constant.
                lists.filling.append(&mut objects);
                lists.enough = 2 * lists.filling.len();
                return;
            }
            self.sift(lists, shared, objects);
        }
        // The next batch is likely to get as many objects; the setting `batch` may be far larger.
        let next = Vec::with_capacity(lists.filling.len());
        let objects = core::mem::replace(&mut lists.filling, next);
        let ticket = ticket(shared.settings.fence);
        if ticket.is_done() {
            self.sift(lists, shared, objects);
        } else {
            lists.waiting = Some((objects, ticket));
        }
        // At least half of a batch of this size can be freed, so each object costs constant time.
        lists.enough = 2 * shared.hazards.iter().count();
    }

    /// Keeps the protected objects and makes the others ready. The batch's fence has completed.
    fn sift(&self, lists: &mut Lists, shared: &Shared, mut objects: Vec<Retired>) {
        let protected = &mut lists.protected;
        protected.clear();
        protected.extend(shared.hazards.iter().map(|slot| slot.protected()).filter(|object| !object.is_null()));
        protected.sort_unstable();
        lists.filling.extend(objects.extract_if(.., |object| protected.binary_search(&object.address()).is_ok()));
        self.ready.take_in(&mut objects);
    }

    /// Frees all objects that no hazard protects, including those in idle entries; for the owner only.
    pub(super) fn flush(&self, shared: &Shared) {
        self.free_all(shared);
        self.tend(shared, usize::MAX);
    }

    /// Whether the caller is a destructor that runs on behalf of this entry. Such a caller does not process other
    /// entries, because that could recurse deeply.
    fn is_busy(&self) -> bool {
        self.ready.is_freeing() || self.tending.get()
    }

    /// Frees the objects of up to `most` idle entries; does nothing inside a destructor that runs on behalf of this
    /// entry.
    #[cold]
    fn tend(&self, shared: &Shared, most: usize) {
        if self.is_busy() {
            return;
        }
        self.tending.set(true);
        let _tended = Tended(&self.tending);
        for left in shared.garbage.acquire_idle(|garbage| garbage.count() > 0).take(most) {
            // Other entries may have garbage, too. The note comes before the destructors, which may panic.
            shared.note_left();
            let _given_back = GivenBack { entry: left, shared };
            left.free_all(shared);
        }
    }

    /// Frees all objects that no hazard protects; for the owner only.
    fn free_all(&self, shared: &Shared) {
        self.collect(shared);
        self.free(usize::MAX);
    }

    /// Runs destructors of up to `most` ready objects, unless called inside one of them; for the owner only.
    fn free(&self, most: usize) {
        self.ready.free(most, || self.add(-1));
    }
}

/// Clears the flag when dropped, even if a destructor panics.
struct Tended<'a>(&'a Cell<bool>);

impl Drop for Tended<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// Releases the entry, and leaves a note if it has garbage. The owner must not use the entry afterwards.
pub(super) fn give_back(entry: &Entry<Garbage>, shared: &Shared) {
    let has_garbage = entry.count() > 0;
    Registry::release(entry);
    // The note follows the release, so that a thread that takes the note finds the entry idle.
    if has_garbage {
        shared.note_left();
    }
}

/// Releases an entry when dropped, even if a destructor panics.
struct GivenBack<'a> {
    entry: &'a Entry<Garbage>,
    shared: &'a Shared,
}

impl Drop for GivenBack<'_> {
    fn drop(&mut self) {
        give_back(self.entry, self.shared);
    }
}

impl Drop for Garbage {
    fn drop(&mut self) {
        // The domain is being dropped, so it has no readers.
        let Lists { filling, waiting, .. } = core::mem::take(self.lists.get_mut());
        filling.into_iter().chain(waiting.into_iter().flat_map(|(objects, _)| objects)).for_each(Retired::free);
        self.ready.free(usize::MAX, || ());
    }
}
