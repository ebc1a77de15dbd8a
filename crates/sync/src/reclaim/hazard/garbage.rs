//! A thread's garbage: objects that gather, and a batch that waits for its fence.
//!
//! An entry that its owner gives back keeps its garbage, and the next owner goes on with it. So no destructor runs when an entry is given back, and
//! whatever threads do, an entry never has more than the bound.

use alloc::vec::Vec;
use core::cell::{Cell, UnsafeCell};
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::primitive::{Ticket, ticket, try_heavy};
use crate::reclaim::ready::Ready;
use crate::reclaim::registry::{Entry, Registry};
use crate::reclaim::retired::Retired;

use super::shared::Shared;

/// How many objects are freed for each that is retired, once they may be.
const FREED_PER_RETIRED: usize = 2;

pub(super) struct Garbage {
    /// Objects in the lists and ready; written by the owner, read by others.
    count: AtomicUsize,
    /// The owner's alone.
    lists: UnsafeCell<Lists>,
    /// The owner's alone.
    ready: Ready,
    /// Destructors of other entries' objects run from here. The owner's alone.
    tending: Cell<bool>,
}

#[derive(Default)]
struct Lists {
    filling: Vec<Retired>,
    /// Objects that were all unlinked before the ticket was drawn.
    waiting: Option<(Vec<Retired>, Ticket)>,
    /// When to look next.
    enough: usize,
    /// What hazards protect, sorted; kept for its memory.
    protected: Vec<*mut ()>,
}

// SAFETY: the number is atomic. The rest is touched only by the thread that has acquired the entry.
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

    /// Owner only. One writer, so a load and a store will do.
    #[inline]
    fn add(&self, difference: isize) {
        self.count.store(self.count().wrapping_add_signed(difference), Ordering::Relaxed);
    }

    /// Owner only. Keeps the object until no hazard protects it.
    #[inline]
    pub(super) fn retire(&self, shared: &Shared, object: Retired) {
        self.add(1);
        // SAFETY: the owner, and no reference lives across a destructor.
        let lists = unsafe { &mut *self.lists.get() };
        lists.filling.push(object);
        if lists.filling.len() >= lists.enough.max(shared.settings.batch) {
            self.collect(shared);
            // One for each batch, so each object that was left costs constant time.
            if !self.is_busy() && shared.take_note() {
                self.tend(shared, 1);
            }
        }
        if !self.ready.is_empty() {
            self.free(FREED_PER_RETIRED);
            // SAFETY: as above.
            let batch = unsafe { (*self.lists.get()).enough }.max(shared.settings.batch);
            self.ready.free_down_to(batch, || self.add(-1));
        }
    }

    /// Owner only. Makes a batch of what has gathered. A batch whose fence has still not been passed when the
    /// next is full gets a fast one: that is the bound.
    #[cold]
    fn collect(&self, shared: &Shared) {
        // SAFETY: as above.
        let lists = unsafe { &mut *self.lists.get() };
        if let Some((mut objects, ticket)) = lists.waiting.take() {
            if !ticket.is_done() && !try_heavy() {
                // No fence is to be had at present. Twice as many objects until the next attempt keep the cost of each constant.
                lists.filling.append(&mut objects);
                lists.enough = 2 * lists.filling.len();
                return;
            }
            self.sift(lists, shared, objects);
        }
        let objects = core::mem::replace(&mut lists.filling, Vec::with_capacity(shared.settings.batch));
        let ticket = ticket(shared.settings.fence);
        if ticket.is_done() {
            self.sift(lists, shared, objects);
        } else {
            lists.waiting = Some((objects, ticket));
        }
        // Half of a batch at least can be freed: constant time for each object.
        lists.enough = 2 * shared.hazards.iter().count();
    }

    /// After the fence: keeps what is protected, makes the rest ready.
    fn sift(&self, lists: &mut Lists, shared: &Shared, mut objects: Vec<Retired>) {
        let protected = &mut lists.protected;
        protected.clear();
        protected.extend(shared.hazards.iter().map(|slot| slot.protected()).filter(|object| !object.is_null()));
        protected.sort_unstable();
        lists.filling.extend(objects.extract_if(.., |object| protected.binary_search(&object.address()).is_ok()));
        self.ready.take_in(&mut objects);
    }

    /// Owner only. Frees everything that no hazard protects, also of what owners of other entries have left.
    pub(super) fn flush(&self, shared: &Shared) {
        self.free_all(shared);
        self.tend(shared, usize::MAX);
    }

    /// Whether the caller is a destructor that runs from here: then other entries are not tended, which would take a deep stack.
    fn is_busy(&self) -> bool {
        self.ready.is_freeing() || self.tending.get()
    }

    /// Frees what up to `most` idle entries have; none inside of a destructor that runs from here.
    #[cold]
    fn tend(&self, shared: &Shared, most: usize) {
        if self.is_busy() {
            return;
        }
        self.tending.set(true);
        let _tended = Tended(&self.tending);
        for left in shared.garbage.acquire_idle(|garbage| garbage.count() > 0).take(most) {
            // Where there was one, there may be more. Before the destructors, which may panic.
            shared.note_left();
            let _given_back = GivenBack { entry: left, shared };
            left.free_all(shared);
        }
    }

    /// Owner only.
    fn free_all(&self, shared: &Shared) {
        self.collect(shared);
        self.free(usize::MAX);
    }

    /// Owner only. Runs destructors; none inside of another one that runs from here.
    fn free(&self, most: usize) {
        self.ready.free(most, || self.add(-1));
    }
}

/// Ends the tending, also when a destructor panics.
struct Tended<'a>(&'a Cell<bool>);

impl Drop for Tended<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// Owner only, for the last time: gives the entry back, and notes if it has garbage.
pub(super) fn give_back(entry: &Entry<Garbage>, shared: &Shared) {
    let has_garbage = entry.count() > 0;
    Registry::release(entry);
    // After the entry: a thread that takes the note finds the entry idle.
    if has_garbage {
        shared.note_left();
    }
}

/// Gives an entry back, also when a destructor panics.
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
        // No reader is left.
        let Lists { filling, waiting, .. } = core::mem::take(self.lists.get_mut());
        filling.into_iter().chain(waiting.into_iter().flat_map(|(objects, _)| objects)).for_each(Retired::free);
        self.ready.free(usize::MAX, || ());
    }
}
