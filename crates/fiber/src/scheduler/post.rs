//! The part of a worker that other threads use.

use std::collections::VecDeque;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize};

use super::core::Core;
use super::core_ref::CoreRef;
use super::inbox::Inbox;
use crate::io::EventFd;
use crate::primitive::{
    AtomicPtr, Mutex,
    Ordering::{Acquire, Relaxed, Release},
};

/// The maximum number of unstarted fibers that a worker takes from another worker at once.
pub(super) const MAX_STOLEN: usize = 32;

/// A worker's queues, its bell, and its current fiber.
pub(crate) struct Post {
    pub(crate) index: usize,
    /// Fibers of this worker that other threads made ready.
    pub(super) inbox: Inbox<Core, EventFd>,
    /// An unstarted fiber that one of this worker's fibers spawned while the worker had no other unstarted fiber. It is older
    /// than the fibers in the queue. Only this worker fills the slot, and any worker may empty it.
    sole_unstarted: AtomicPtr<Core>,
    /// The other unstarted fibers of this worker; any worker may take them.
    unstarted: Mutex<VecDeque<CoreRef>>,
    /// The length of `unstarted`, stored under its lock. A worker that switches between started fibers reads this length
    /// instead of locking the queue: another thread might hold the lock, and waiting for it could take a system call. Relaxed:
    /// a worker may see a change late, but it locks the queue for its last search before it sleeps, and then sees every earlier
    /// change.
    unstarted_count: AtomicUsize,
    /// The number of fibers that have ended here, but that the runtime still counts as live. Only the worker changes it.
    pub(super) ended: AtomicUsize,
    /// The number of the running fiber, or 0.
    running: AtomicU64,
    /// The number of times the worker has resumed a fiber.
    turns: AtomicU64,
    /// The kernel's id of the worker's thread.
    thread: AtomicI32,
}

impl Post {
    pub(crate) fn new(index: usize) -> Self {
        Post {
            index,
            inbox: Inbox::new(EventFd::default()),
            sole_unstarted: AtomicPtr::new(ptr::null_mut()),
            unstarted: Mutex::default(),
            unstarted_count: AtomicUsize::new(0),
            ended: AtomicUsize::new(0),
            running: AtomicU64::new(0),
            turns: AtomicU64::new(0),
            thread: AtomicI32::new(0),
        }
    }

    /// Ends the worker's sleep.
    pub(super) fn ring(&self) {
        self.inbox.bell.ring();
    }

    /// Adds an unstarted fiber and returns the length of the queue.
    pub(super) fn add_unstarted(&self, fiber: CoreRef) -> usize {
        self.change_unstarted(|unstarted| {
            unstarted.push_back(fiber);
            unstarted.len()
        })
    }

    /// Adds an unstarted fiber if there is no other; otherwise, returns the fiber. Takes no lock, because only the worker itself
    /// calls this, and it will search for unstarted fibers before it sleeps.
    pub(super) fn add_sole_unstarted(&self, fiber: CoreRef) -> Option<CoreRef> {
        if self.seems_to_have_unstarted() {
            return Some(fiber);
        }
        // Release pairs with the acquire in `take_sole_unstarted`. No other thread fills the slot.
        self.sole_unstarted.store(CoreRef::into_raw(fiber).cast_mut(), Release);
        None
    }

    fn take_sole_unstarted(&self) -> Option<CoreRef> {
        if self.sole_unstarted.load(Relaxed).is_null() {
            return None;
        }
        // Acquire pairs with the release in `add_sole_unstarted`. This is an exchange, because another thread may take the fiber
        // at the same time.
        let fiber = self.sole_unstarted.swap(ptr::null_mut(), Acquire);
        // SAFETY: the pointer comes from `into_raw`, and since the exchange this thread owns its reference.
        (!fiber.is_null()).then(|| unsafe { CoreRef::from_raw(fiber) })
    }

    pub(super) fn pop_unstarted(&self) -> Option<CoreRef> {
        let further = || if self.has_further() { self.change_unstarted(VecDeque::pop_front) } else { None };
        self.take_sole_unstarted().or_else(further)
    }

    /// Returns whether there are unstarted fibers. If the caller is in the idle list and misses a fiber that is added to the
    /// queue, the spawner sees the caller in the list, since both lock the queue. The caller may miss a sole unstarted fiber, but
    /// then the worker of that fiber's spawner starts it.
    pub(super) fn has_unstarted(&self) -> bool {
        !self.sole_unstarted.load(Relaxed).is_null() || !self.unstarted.lock().is_empty()
    }

    /// Like [`has_unstarted`](Self::has_unstarted), without the lock: it may see another thread's change later.
    pub(super) fn seems_to_have_unstarted(&self) -> bool {
        !self.sole_unstarted.load(Relaxed).is_null() || self.has_further()
    }

    fn has_further(&self) -> bool {
        self.unstarted_count.load(Relaxed) > 0
    }

    /// Takes half of the unstarted fibers, rounded up, the oldest first.
    pub(super) fn steal(&self) -> VecDeque<CoreRef> {
        let mut stolen: VecDeque<_> = self.take_sole_unstarted().into_iter().collect();
        if self.has_further() {
            stolen.extend(self.change_unstarted(|unstarted| {
                let count = unstarted.len().div_ceil(2).min(MAX_STOLEN);
                unstarted.drain(..count).collect::<Vec<_>>()
            }));
        }
        stolen
    }

    pub(super) fn add_stolen(&self, stolen: VecDeque<CoreRef>) {
        self.change_unstarted(|unstarted| unstarted.extend(stolen));
    }

    fn change_unstarted<R>(&self, change: impl FnOnce(&mut VecDeque<CoreRef>) -> R) -> R {
        let mut unstarted = self.unstarted.lock();
        let result = change(&mut unstarted);
        self.unstarted_count.store(unstarted.len(), Relaxed);
        result
    }

    /// Makes the calling thread the worker.
    pub(super) fn settle(&self) {
        // SAFETY: the call takes no pointer. Relaxed: a thread that still reads 0 cannot send a signal, and reports that.
        self.thread.store(unsafe { libc::gettid() }, Relaxed);
    }

    /// Returns the kernel's id of the worker's thread.
    pub(crate) fn thread(&self) -> libc::pid_t {
        self.thread.load(Relaxed)
    }

    /// Tells the watch that fiber `id` runs from now on. Relaxed, since the watch only compares values.
    pub(super) fn enter(&self, id: u64) {
        self.running.store(id, Relaxed);
        self.turns.store(self.turns.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Tells the watch that no fiber runs.
    pub(super) fn leave(&self) {
        self.running.store(0, Relaxed);
    }

    /// Returns the number of the running fiber, or 0, and the number of its turn.
    pub(super) fn turn(&self) -> (u64, u64) {
        (self.running.load(Relaxed), self.turns.load(Relaxed))
    }
}
