//! A thread's record: the state it publishes, and garbage that only the thread itself touches.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::reclaim::ready::Ready;
use crate::reclaim::registry::{Entry, Registry};
use crate::reclaim::retired::Retired;

use super::bag::Bags;
use super::participant::Participant;
use super::shared::Shared;

/// The number of objects freed for each retired one, once they may be freed: more than one, so that the backlog
/// shrinks.
const FREED_PER_RETIRED: usize = 2;

pub(super) struct Member {
    pub(super) participant: Participant,
    /// The thread that owns this member, in the process's collector.
    #[cfg(not(loom))]
    thread: AtomicUsize,
    /// The number of objects in `bags` and `ready`; the owner writes it, statistics read it.
    garbage: AtomicUsize,
    /// Only the owner touches the bags.
    bags: UnsafeCell<Bags>,
    /// Only the owner touches the ready objects.
    ready: Ready,
}

// SAFETY: the participant and the numbers are atomic. Only the thread that has acquired the entry touches `bags` and
// `ready`
// (the registry hands the entry over with acquire and release), or the thread that owns the whole collector.
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

    /// Changes the number of objects; for the owner only. There is one writer, so a load and a store suffice.
    #[inline]
    fn add_garbage(&self, difference: isize) {
        self.garbage.store(self.garbage().wrapping_add_signed(difference), Ordering::Relaxed);
    }

    /// Keeps the object until its grace period is over; for the owner only.
    #[inline]
    pub(super) fn retire(&self, shared: &Shared, object: Retired) {
        self.add_garbage(1);
        // SAFETY: the caller is the owner, and no reference lives across a destructor.
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

    /// Closes the filling bag unless it is empty; for the owner only.
    pub(super) fn seal(&self, shared: &Shared) {
        // SAFETY: the caller is the owner, and no reference lives across a destructor.
        let bags = unsafe { &mut *self.bags.get() };
        if !bags.filling.is_empty() {
            let objects = std::mem::replace(&mut bags.filling, Vec::with_capacity(shared.settings.batch));
            bags.sealed.push_back(shared.seal(objects));
        }
    }

    /// Finds the bags whose grace period is over, and makes their objects ready; for the owner only.
    #[cold]
    pub(super) fn collect(&self, shared: &Shared) {
        // SAFETY: the caller is the owner, and no reference lives across a destructor.
        let bags = unsafe { &mut *self.bags.get() };
        let mut adopted = 0;
        shared.orphans.adopt(|orphaned| {
            adopted += orphaned.iter().map(|bag| bag.objects.len()).sum::<usize>();
            bags.sealed.extend(orphaned);
        });
        self.add_garbage(adopted as isize);
        let fenced = bags.fenced();
        if fenced > 0 {
            // This scan of the members must come after the fence of these bags; `participant` has the proof.
            let oldest = shared.oldest();
            bags.expired(fenced, oldest).for_each(|mut objects| self.ready.take_in(&mut objects));
        }
    }

    /// Runs destructors of up to `most` ready objects; for the owner only.
    pub(super) fn free(&self, most: usize) {
        self.ready.free(most, || self.add_garbage(-1));
    }
}

/// Leaves the garbage to the remaining members and gives the entry back; the owner's last call.
pub(super) fn resign(member: &Entry<Member>, shared: &Shared) {
    member.free(usize::MAX);
    member.seal(shared);
    // SAFETY: the caller is the owner until the release below, and no reference lives across a destructor.
    let bags = unsafe { &mut *member.bags.get() };
    if !bags.sealed.is_empty() {
        shared.orphans.leave(bags.sealed.drain(..).collect());
    }
    member.garbage.store(0, Ordering::Relaxed);
    Registry::release(member);
}
