//! A worker as other threads see it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;

use super::core::Core;
use super::inbox::Inbox;
use crate::io::EventFd;

/// The maximum number of unstarted fibers that a worker takes from another at once.
pub(super) const MAX_STOLEN: usize = 32;

/// A worker's queues, its bell, and its current fiber.
pub(crate) struct Post {
    pub(crate) index: usize,
    /// Fibers of this worker that other threads made ready.
    pub(super) inbox: Inbox<Core, EventFd>,
    /// Fibers that have not started; any worker may take them.
    unstarted: Mutex<VecDeque<Arc<Core>>>,
    /// The length of `unstarted`, stored under its lock: a worker that switches between started fibers takes no lock, which
    /// the watch or a thief might hold, and makes no system call. Relaxed: a thread that has held the lock since a change
    /// sees it, and that is how a worker looks before it sleeps.
    unstarted_count: AtomicUsize,
    /// The running fiber, or 0.
    running: AtomicU64,
    /// The number of times the worker has resumed a fiber.
    turns: AtomicU64,
}

impl Post {
    pub(super) fn new(index: usize) -> Self {
        Post {
            index,
            inbox: Inbox::new(EventFd::default()),
            unstarted: Mutex::default(),
            unstarted_count: AtomicUsize::new(0),
            running: AtomicU64::new(0),
            turns: AtomicU64::new(0),
        }
    }

    /// Ends the worker's sleep.
    pub(super) fn ring(&self) {
        self.inbox.bell.ring();
    }

    /// Adds an unstarted fiber and returns the length of the queue.
    pub(super) fn add_unstarted(&self, fiber: Arc<Core>) -> usize {
        self.change_unstarted(|unstarted| {
            unstarted.push_back(fiber);
            unstarted.len()
        })
    }

    pub(super) fn pop_unstarted(&self) -> Option<Arc<Core>> {
        if self.seems_to_have_unstarted() { self.change_unstarted(VecDeque::pop_front) } else { None }
    }

    /// Whether there are unstarted fibers. A thread that is in the idle list before it asks misses none whose adder does not
    /// see it there: both take the lock.
    pub(super) fn has_unstarted(&self) -> bool {
        !self.unstarted.lock().is_empty()
    }

    /// As [`has_unstarted`](Self::has_unstarted), without the lock: a change of another thread may be seen later.
    pub(super) fn seems_to_have_unstarted(&self) -> bool {
        self.unstarted_count.load(Relaxed) > 0
    }

    /// Takes half of the unstarted fibers, rounded up, the oldest first.
    pub(super) fn steal(&self) -> VecDeque<Arc<Core>> {
        if !self.seems_to_have_unstarted() {
            return VecDeque::new();
        }
        self.change_unstarted(|unstarted| {
            let count = unstarted.len().div_ceil(2).min(MAX_STOLEN);
            unstarted.drain(..count).collect()
        })
    }

    pub(super) fn add_stolen(&self, stolen: VecDeque<Arc<Core>>) {
        self.change_unstarted(|unstarted| unstarted.extend(stolen));
    }

    fn change_unstarted<R>(&self, change: impl FnOnce(&mut VecDeque<Arc<Core>>) -> R) -> R {
        let mut unstarted = self.unstarted.lock();
        let result = change(&mut unstarted);
        self.unstarted_count.store(unstarted.len(), Relaxed);
        result
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

    /// Returns the running fiber, or 0, and the number of its turn.
    pub(super) fn turn(&self) -> (u64, u64) {
        (self.running.load(Relaxed), self.turns.load(Relaxed))
    }
}
