//! A thread's record: what it publishes, and garbage that only itself touches.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::reclaim::ready::Ready;
use crate::reclaim::registry::{Entry, Registry};
use crate::reclaim::retired::Retired;

use super::bag::Bags;
use super::participant::Participant;
use super::shared::Shared;

/// How many objects are freed for each that is retired, once they may be: more than one, so that it comes to an end.
const FREED_PER_RETIRED: usize = 2;

pub(super) struct Member {
    pub(super) participant: Participant,
    /// The thread that has it, in the process's collector.
    #[cfg(not(loom))]
    thread: AtomicUsize,
    /// Objects in the bags and ready; written by the owner, read for statistics.
    garbage: AtomicUsize,
    /// The owner's alone.
    bags: UnsafeCell<Bags>,
    /// The owner's alone.
    ready: Ready,
}

// SAFETY: the participant and the number are atomic. `bags` and `ready` are touched only by the thread that has acquired the
// entry (the registry hands it over), or that has the collector for itself.
unsafe impl Sync for Member {}

impl Member {
    pub(super) fn new() -> Self {
        Member {
            participant: Participant::new(),
            #[cfg(not(loom))]
            thread: AtomicUsize::new(0),
            garbage: AtomicUsize::new(0),
            bags: UnsafeCell::new(Bags::default()),
            ready: Ready::new(),
        }
    }

    #[cfg(not(loom))]
    pub(super) fn set_thread(&self, thread: usize) {
        self.thread.store(thread, Ordering::Relaxed);
    }

    #[cfg(not(loom))]
    pub(super) fn thread(&self) -> usize {
        self.thread.load(Ordering::Relaxed)
    }

    pub(super) fn garbage(&self) -> usize {
        self.garbage.load(Ordering::Relaxed)
    }

    /// Owner only. One writer, so a load and a store will do.
    #[inline]
    fn add_garbage(&self, difference: isize) {
        self.garbage.store(self.garbage().wrapping_add_signed(difference), Ordering::Relaxed);
    }

    /// Owner only. Keeps the object until its grace period is over.
    #[inline]
    pub(super) fn retire(&self, shared: &Shared, object: Retired) {
        self.add_garbage(1);
        // SAFETY: the owner, and no reference lives across a destructor.
        let bags = unsafe { &mut *self.bags.get() };
        bags.filling.push(object);
        if bags.filling.len() >= shared.settings.batch {
            self.seal(shared);
            self.collect(shared);
        }
        if !self.ready.is_empty() {
            self.free(FREED_PER_RETIRED);
            self.ready.free_down_to(shared.settings.batch, || self.add_garbage(-1));
        }
    }

    /// Owner only. Closes the bag that fills, whatever is in it.
    pub(super) fn seal(&self, shared: &Shared) {
        // SAFETY: as above.
        let bags = unsafe { &mut *self.bags.get() };
        if !bags.filling.is_empty() {
            let objects = std::mem::replace(&mut bags.filling, Vec::with_capacity(shared.settings.batch));
            bags.sealed.push_back(shared.seal(objects));
        }
    }

    /// Owner only. Looks which bags have had their grace period, and makes their objects ready.
    #[cold]
    pub(super) fn collect(&self, shared: &Shared) {
        // SAFETY: as above.
        let bags = unsafe { &mut *self.bags.get() };
        let mut adopted = 0;
        shared.orphans.adopt(|orphaned| {
            adopted += orphaned.iter().map(|bag| bag.objects.len()).sum::<usize>();
            bags.sealed.extend(orphaned);
        });
        self.add_garbage(adopted as isize);
        let fenced = bags.fenced();
        if fenced > 0 {
            // After the fence of these bags.
            let oldest = shared.oldest();
            bags.expired(fenced, oldest).for_each(|mut objects| self.ready.take_in(&mut objects));
        }
    }

    /// Owner only. Runs destructors.
    pub(super) fn free(&self, most: usize) {
        self.ready.free(most, || self.add_garbage(-1));
    }
}

/// Owner only, for the last time: leaves the garbage to others and gives the entry back.
pub(super) fn resign(member: &Entry<Member>, shared: &Shared) {
    member.free(usize::MAX);
    member.seal(shared);
    // SAFETY: still the owner.
    let bags = unsafe { &mut *member.bags.get() };
    if !bags.sealed.is_empty() {
        shared.orphans.leave(bags.sealed.drain(..).collect());
    }
    member.garbage.store(0, Ordering::Relaxed);
    Registry::release(member);
}
