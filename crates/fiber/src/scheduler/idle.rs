//! The list of workers that sleep or are about to.

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
    /// Enters a worker before its last search for work.
    ///
    /// The count is relaxed: the worker next locks the mutex of each queue that it checks. A spawner that adds to such
    /// a queue later sees the count, because it locks the same mutex later and reads the count afterwards.
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

    /// Removes a worker, which the caller must wake.
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
