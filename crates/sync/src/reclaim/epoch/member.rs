//! A thread's membership in a collector: the state it publishes, and garbage that only the thread itself touches.

use std::cell::{Cell, UnsafeCell};
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use crate::primitive::{Ordering, try_heavy};
use crate::reclaim::registry::{Entry, Registry};
use crate::reclaim::retired::{Ready, Retired};

use super::collector::Shared;
use super::garbage::Bags;
use super::guard::{Guard, flush};
use super::participant::{EPOCH, Participant};

/// A member of a [`Collector`](super::Collector): one thread at a time may pin with it. It may be sent to another
/// thread when it has no guards.
pub struct Local {
    shared: Arc<Shared>,
    /// This local's entry in `shared`, which lives as long as `shared`.
    member: *const Entry<Member>,
    /// Confines the local to one thread at a time, because its garbage is not synchronized.
    not_sync: PhantomData<Cell<()>>,
}

// SAFETY: the member belongs to this local alone, its garbage is `Send`, and guards borrow the local, so none exists
// while the local moves to another thread.
unsafe impl Send for Local {}

impl Local {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let member = ptr::from_ref(shared.join());
        Local { shared, member, not_sync: PhantomData }
    }

    fn member(&self) -> &Entry<Member> {
        // SAFETY: entries live as long as `shared`, which `self` keeps alive.
        unsafe { &*self.member }
    }

    /// Protects all objects reachable from now on, until the guard is dropped.
    ///
    /// Wait-free. Cost: two loads, a store and a [light fence](millstream_fence::light), plus a load and a store to
    /// leave.
    #[inline(always)]
    pub fn pin(&self) -> Guard<'_> {
        Guard::new(self.member(), &self.shared)
    }

    /// Ensures that this local can retire `objects` more objects and still have at most `limit` objects waiting to be
    /// freed. Call it *before* unlinking objects, while there is still a choice.
    ///
    /// Epochs alone cannot bound garbage: one reader that stops holds back every object retired after it entered. With
    /// this call the writer finds out in time, and may wait, shed load, or report the reader.
    ///
    /// Lock-free. If there is no room, executes a [heavy fence](millstream_fence::heavy), regardless of the settings,
    /// and checks all members. The caller's own guards hold objects back, too.
    ///
    /// # Errors
    /// [`Stalled`], if readers hold back too much.
    ///
    /// ```
    /// use millstream_sync::reclaim::epoch::Collector;
    ///
    /// let collector = Collector::new();
    /// let local = collector.local();
    /// local.make_room(1, 10_000)?;
    /// local.pin().defer(|| ());
    /// # Ok::<(), millstream_sync::reclaim::epoch::Stalled>(())
    /// ```
    pub fn make_room(&self, objects: usize, limit: usize) -> Result<(), Stalled> {
        let fits = || self.member().garbage().saturating_add(objects) <= limit;
        if fits() {
            return Ok(());
        }
        self.member().seal(&self.shared);
        // If the fence is refused, the objects stay, and there is no room.
        let _passed = try_heavy();
        self.flush();
        if fits() {
            return Ok(());
        }
        let epoch = self.shared.epoch.load(Ordering::Relaxed);
        let behind = epoch.saturating_sub(self.shared.oldest()) / EPOCH;
        Err(Stalled { garbage: self.member().garbage(), limit, behind })
    }

    /// Closes the batch early, executes the fence unless that would require waiting, and frees all objects that may be
    /// freed.
    pub fn flush(&self) {
        flush(self.member(), &self.shared);
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        // Guards borrow the local, so any that remain were leaked.
        self.member().participant.reset();
        resign(self.member(), &self.shared);
    }
}

/// There is no room for more garbage, because a reader has been holding objects back for a long time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{garbage} objects wait to be freed, and the limit is {limit}: a reader has been pinned for {behind} epochs; let it leave or refresh its guard"
)]
#[non_exhaustive]
pub struct Stalled {
    /// The number of objects that this thread has retired and cannot free.
    pub garbage: usize,
    /// The limit given by the caller.
    pub limit: usize,
    /// The number of epochs by which the oldest reader is behind.
    pub behind: u64,
}

/// The maximum number of ready objects that each retirement frees: more than one, so that the backlog shrinks.
const FREED_PER_RETIRED: usize = 2;

pub(super) struct Member {
    pub(super) participant: Participant,
    /// The thread that owns this member; used only in the process's collector.
    #[cfg(not(loom))]
    thread: AtomicUsize,
    /// The number of objects in `bags` and `ready`; the owner writes it, statistics read it.
    garbage: AtomicUsize,
    /// Only the owner touches the bags.
    bags: UnsafeCell<Bags>,
    /// Only the owner touches the ready objects.
    ready: Ready,
}

// SAFETY: the participant and the numbers are atomic. `bags` and `ready` are touched only by the thread that has
// acquired the entry (the registry passes entries on with acquire and release), or by the thread that owns the whole
// collector.
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
        // SAFETY: the caller has acquired this entry, so no other thread touches the bags, and no reference lives
        // across a destructor.
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
        // SAFETY: the caller has acquired this entry, so no other thread touches the bags, and no reference lives
        // across a destructor.
        let bags = unsafe { &mut *self.bags.get() };
        if !bags.filling.is_empty() {
            // The next bag is likely to get as many objects; the setting `batch` may be far larger.
            let next = Vec::with_capacity(bags.filling.len());
            let objects = std::mem::replace(&mut bags.filling, next);
            bags.sealed.push_back(shared.seal(objects));
        }
    }

    /// Finds the bags whose grace period is over, and makes their objects ready; for the owner only.
    #[cold]
    pub(super) fn collect(&self, shared: &Shared) {
        // SAFETY: the caller has acquired this entry, so no other thread touches the bags, and no reference lives
        // across a destructor.
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

/// Frees the objects whose grace period is over, leaves the others to the remaining members, and releases the entry.
/// The owner must not use the entry afterwards.
pub(super) fn resign(member: &Entry<Member>, shared: &Shared) {
    let _resigned = Resigned { member, shared };
    member.free(usize::MAX);
}

/// Leaves the garbage and releases the entry when dropped, even if a destructor panics.
struct Resigned<'a> {
    member: &'a Entry<Member>,
    shared: &'a Shared,
}

impl Drop for Resigned<'_> {
    fn drop(&mut self) {
        let Resigned { member, shared } = *self;
        {
            // SAFETY: the owner has acquired this entry until the release below, so no other thread touches the bags,
            // and no reference lives across a destructor.
            let bags = unsafe { &mut *member.bags.get() };
            // Ready objects remain after a panic, or if this runs inside a destructor that `free` called. They wait for
            // another grace period.
            bags.filling.append(&mut member.ready.take_out());
        }
        member.seal(shared);
        // SAFETY: the owner has acquired this entry until the release below, so no other thread touches the bags, and no
        // reference lives across a destructor.
        let bags = unsafe { &mut *member.bags.get() };
        if !bags.sealed.is_empty() {
            shared.orphans.leave(bags.sealed.drain(..).collect());
        }
        member.garbage.store(0, Ordering::Relaxed);
        Registry::release(member);
    }
}
