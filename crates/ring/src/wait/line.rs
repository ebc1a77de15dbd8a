//! A line of sleeping threads, in the order in which they joined.
//!
//! A sleeper keeps its position when its sleep times out, and when it was woken but found no room. So a thread waits
//! only for the threads in front of it. An event count does not promise this: there, a thread that wakes for a moment
//! goes to the end.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

#[cfg(not(loom))]
use millstream_sync::eventcount::SpinPolicy;
use millstream_sync::eventcount::{EventCount, Key, Waited};

use super::cost::Stamp;
use crate::padded::CachePadded;

type Queue = VecDeque<Arc<Sleeper>>;

#[derive(Debug, Default)]
pub(super) struct Line {
    queue: Mutex<Queue>,
    /// The length of the queue, for threads that only need to know whether a thread waits. Relaxed: the queue's lock
    /// orders everything else.
    len: CachePadded<AtomicUsize>,
    /// Whether a thread was woken and is not awake yet. This is advice, so the loads and stores are relaxed.
    is_waking: AtomicBool,
    /// The time at which a sleeper was last woken.
    pub(super) woken: Stamp,
}

#[derive(Debug, Default)]
struct Sleeper {
    /// Incremented when the sleeper is taken out of the line.
    wakes: EventCount,
}

impl Line {
    /// The number of threads in the line.
    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // No thread panics while it has the lock: it only pushes, pops or removes a sleeper.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins the line at its end.
    pub(super) fn join(&self) -> Place<'_> {
        let sleeper = Arc::new(Sleeper::default());
        let key = sleeper.wakes.snapshot();
        let mut place = Place { line: self, sleeper, key };
        place.enqueue(VecDeque::push_back);
        place
    }

    /// Takes the thread that has waited longest out of the line and wakes it.
    pub(super) fn wake_first(&self) {
        if self.len() == 0 {
            return;
        }
        let first = {
            let mut queue = self.queue();
            let first = queue.pop_front();
            self.len.store(queue.len(), Ordering::Relaxed);
            first
        };
        if let Some(first) = first {
            self.woken.set();
            self.is_waking.store(true, Ordering::Relaxed);
            first.wakes.add(1);
        }
    }

    /// Whether a thread was woken and is not awake yet.
    pub(super) fn is_waking(&self) -> bool {
        self.is_waking.load(Ordering::Relaxed)
    }

    /// Wakes all threads.
    pub(super) fn wake_all(&self) {
        let all = std::mem::take(&mut *self.queue());
        self.len.store(0, Ordering::Relaxed);
        all.iter().for_each(|sleeper| sleeper.wakes.add(1));
    }
}

/// A thread's position in the line. Dropping it takes the thread out of the line.
#[derive(Debug)]
pub(super) struct Place<'a> {
    line: &'a Line,
    sleeper: Arc<Sleeper>,
    /// A snapshot from before the thread joined the line.
    key: Key,
}

impl Place<'_> {
    fn enqueue(&mut self, push: fn(&mut Queue, Arc<Sleeper>)) {
        // In a model the line stays empty, and each sleep ends at once.
        if cfg!(loom) {
            return;
        }
        self.key = self.sleeper.wakes.snapshot();
        let mut queue = self.line.queue();
        push(&mut queue, Arc::clone(&self.sleeper));
        self.line.len.store(queue.len(), Ordering::Relaxed);
    }

    /// Whether the thread was taken out of the line.
    pub(super) fn was_woken(&self) -> bool {
        self.sleeper.wakes.snapshot() != self.key
    }

    /// Goes back to the head of the line if the thread was taken out.
    pub(super) fn rejoin(&mut self) {
        if self.was_woken() {
            self.enqueue(VecDeque::push_front);
        }
    }

    /// Sleeps until the thread is taken out of the line, or until `deadline`.
    #[cfg(not(loom))]
    pub(super) fn sleep(&self, deadline: Instant) -> Waited {
        let waited = self.sleeper.wakes.wait_with(self.key, Some(deadline), SpinPolicy::NONE);
        self.line.is_waking.store(false, Ordering::Relaxed);
        waited
    }

    /// In a model deadlines pass at once.
    #[cfg(loom)]
    pub(super) fn sleep(&self, _deadline: Instant) -> Waited {
        crate::primitive::yield_now();
        Waited::TimedOut
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.was_woken() {
            // The thread may have found room before it slept; then `sleep` has not cleared this flag.
            self.line.is_waking.store(false, Ordering::Relaxed);
        }
        let mut queue = self.line.queue();
        queue.retain(|sleeper| !Arc::ptr_eq(sleeper, &self.sleeper));
        self.line.len.store(queue.len(), Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_first_to_come_is_woken_first_and_may_go_back_to_its_place() {
        let line = Line::default();
        let [mut first, second, third] = [(); 3].map(|()| line.join());
        line.wake_first();
        assert!(first.was_woken() && !second.was_woken());
        first.rejoin();
        assert_eq!(second.sleep(Instant::now()), Waited::TimedOut);
        line.wake_first();
        assert!(first.was_woken() && !second.was_woken(), "a sleeper that was woken and joined again lost its place");
        drop(second);
        line.wake_first();
        assert!(third.was_woken(), "a thread that had left was woken");
        assert_eq!(line.len(), 0);
    }

    #[test]
    fn a_thread_that_is_woken_and_leaves_without_a_sleep_is_not_on_its_way() {
        let line = Line::default();
        let place = line.join();
        line.wake_first();
        assert!(line.is_waking());
        drop(place);
        assert!(!line.is_waking());
    }
}
