//! A worker as other threads see it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

use super::core::Core;
use super::inbox::Inbox;
use crate::io::EventFd;

/// The maximum number of unstarted fibers that a worker takes from another at once.
const MAX_STOLEN: usize = 32;

/// A worker's queues, its bell, and its current fiber.
pub(crate) struct Post {
    pub(crate) index: usize,
    /// Fibers of this worker that other threads made ready.
    pub(super) inbox: Inbox<Core, EventFd>,
    /// Fibers that have not started; any worker may take them.
    unstarted: Mutex<VecDeque<Arc<Core>>>,
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
        let mut unstarted = self.unstarted.lock();
        unstarted.push_back(fiber);
        unstarted.len()
    }

    pub(super) fn pop_unstarted(&self) -> Option<Arc<Core>> {
        self.unstarted.lock().pop_front()
    }

    pub(super) fn has_unstarted(&self) -> bool {
        !self.unstarted.lock().is_empty()
    }

    /// Takes half of the unstarted fibers, rounded up, the oldest first.
    pub(super) fn steal(&self) -> VecDeque<Arc<Core>> {
        let mut unstarted = self.unstarted.lock();
        let count = unstarted.len().div_ceil(2).min(MAX_STOLEN);
        unstarted.drain(..count).collect()
    }

    pub(super) fn add_stolen(&self, stolen: VecDeque<Arc<Core>>) {
        self.unstarted.lock().extend(stolen);
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
