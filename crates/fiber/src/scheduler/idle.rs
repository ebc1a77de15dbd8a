//! The list of workers that sleep or are about to sleep.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;

/// The indices of the idle workers. The worker that fell asleep last is woken first, since its caches are the warmest.
#[derive(Debug, Default)]
pub(crate) struct Idle {
    workers: Mutex<Vec<usize>>,
    /// The length of the list, readable without the mutex.
    count: AtomicUsize,
}

impl Idle {
    /// Adds a worker to the list, before the worker's last search for work.
    ///
    /// The count is relaxed: the worker next locks the mutex of each queue that it checks. A spawner that adds a fiber to such a
    /// queue after that check sees the count, because it locks the same mutex and then reads the count.
    pub(super) fn enter(&self, worker: usize) {
        let mut workers = self.workers.lock();
        workers.push(worker);
        self.count.store(workers.len(), Relaxed);
    }

    /// Removes a worker that is awake again, unless another thread has removed it.
    pub(super) fn leave(&self, worker: usize) {
        let mut workers = self.workers.lock();
        workers.retain(|&idle| idle != worker);
        self.count.store(workers.len(), Relaxed);
    }

    /// Removes a worker from the list and returns it. The caller must wake it.
    pub(super) fn pop(&self) -> Option<usize> {
        if self.count.load(Relaxed) == 0 {
            return None;
        }
        let mut workers = self.workers.lock();
        let worker = workers.pop();
        self.count.store(workers.len(), Relaxed);
        worker
    }
}
