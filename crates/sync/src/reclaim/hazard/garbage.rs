//! A thread's garbage: objects that gather, and a batch that waits for its fence.

use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::primitive::{Ticket, heavy, ticket};
use crate::reclaim::ready::Ready;
use crate::reclaim::registry::{Entry, Registry};
use crate::reclaim::retired::Retired;

use super::shared::Shared;

/// How many objects are freed for each that is retired, once they may be.
const FREED_PER_RETIRED: usize = 2;

pub(super) struct Garbage {
    /// Objects in the lists and ready; written by the owner, read for statistics.
    count: AtomicUsize,
    /// The owner's alone.
    lists: UnsafeCell<Lists>,
    /// The owner's alone.
    ready: Ready,
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
        Garbage { count: AtomicUsize::new(0), lists: UnsafeCell::new(Lists::default()), ready: Ready::new() }
    }

    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Owner only. One writer, so a load and a store will do.
    #[inline]
    fn add(&self, difference: isize) {
        self.count.store(self.count().wrapping_add_signed(difference), Ordering::Relaxed);
    }

    /// Owner only. Keeps the object until nobody protects it.
    #[inline]
    pub(super) fn retire(&self, shared: &Shared, object: Retired) {
        self.add(1);
        // SAFETY: the owner, and no reference lives across a destructor.
        let lists = unsafe { &mut *self.lists.get() };
        lists.filling.push(object);
        if lists.filling.len() >= lists.enough.max(shared.settings.batch) {
            self.collect(shared);
        }
        if !self.ready.is_empty() {
            self.free(FREED_PER_RETIRED);
        }
    }

    /// Owner only. Makes a batch of what has gathered. A batch whose fence has still not been passed when the
    /// next is full gets a fast one: that is the bound.
    #[cold]
    pub(super) fn collect(&self, shared: &Shared) {
        // SAFETY: as above.
        let lists = unsafe { &mut *self.lists.get() };
        shared.orphans.adopt(|orphaned: Vec<Retired>| {
            self.add(orphaned.len() as isize);
            lists.filling.extend(orphaned);
        });
        if let Some((objects, ticket)) = lists.waiting.take() {
            if !ticket.is_done() {
                heavy();
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

    /// Owner only. Frees everything that nobody protects.
    pub(super) fn flush(&self, shared: &Shared) {
        self.collect(shared);
        self.free(usize::MAX);
    }

    /// Owner only. Runs destructors.
    fn free(&self, most: usize) {
        let freed = self.ready.free(most);
        self.add(-(freed as isize));
    }
}

/// Owner only, for the last time: leaves the garbage to others and gives the entry back.
pub(super) fn resign(garbage: &Entry<Garbage>, shared: &Shared) {
    garbage.flush(shared);
    // SAFETY: still the owner.
    let lists = unsafe { &mut *garbage.lists.get() };
    let mut left = core::mem::take(&mut lists.filling);
    left.extend(lists.waiting.take().into_iter().flat_map(|(objects, _)| objects));
    if !left.is_empty() {
        shared.orphans.leave(left);
    }
    garbage.count.store(0, Ordering::Relaxed);
    Registry::release(garbage);
}
