//! The tasks that wait for a count, behind a lock that is touched only when the flag says that somebody waits.

use std::collections::BTreeMap;
use std::task::Waker;

use crate::primitive::{Mutex, PoisonError};

/// Waiting tasks in the order they came.
#[derive(Debug)]
pub(super) struct Tasks(Mutex<Line>);

#[derive(Debug)]
struct Line {
    next: u64,
    waiting: BTreeMap<u64, Waker>,
}

/// A place in the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket(u64);

impl Default for Tasks {
    fn default() -> Self {
        Tasks(Mutex::new(Line::new()))
    }
}

impl Line {
    const fn new() -> Self {
        Line { next: 0, waiting: BTreeMap::new() }
    }
}

impl Tasks {
    #[cfg(not(loom))]
    pub(super) const fn new() -> Self {
        Tasks(Mutex::new(Line::new()))
    }

    /// Queues a task.
    pub(super) fn enter(&self, waker: &Waker) -> Ticket {
        self.with(|line| {
            let ticket = line.next;
            line.next += 1;
            line.waiting.insert(ticket, waker.clone());
            Ticket(ticket)
        })
    }

    /// Makes a queued task's waker this one; false if the task has been woken.
    pub(super) fn refresh(&self, ticket: Ticket, waker: &Waker) -> bool {
        self.with(|line| {
            let queued = line.waiting.get_mut(&ticket.0);
            queued.map(|queued| queued.clone_from(waker)).is_some()
        })
    }

    /// Takes a task out; false if it has been woken.
    pub(super) fn leave(&self, ticket: Ticket) -> bool {
        self.with(|line| line.waiting.remove(&ticket.0)).is_some()
    }

    /// Wakes at most `most` tasks, the longest waiting first, and tells how many.
    pub(super) fn wake(&self, most: usize) -> usize {
        // Woken without the lock: a waker may run anything.
        let woken = self.with(|line| {
            let mut woken = std::mem::take(&mut line.waiting);
            if let Some((&first_left, _)) = woken.iter().nth(most) {
                line.waiting = woken.split_off(&first_left);
            }
            woken
        });
        let number = woken.len();
        woken.into_values().for_each(Waker::wake);
        number
    }

    fn with<T>(&self, work: impl FnOnce(&mut Line) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn task() -> (Arc<Woken>, Waker) {
        let woken = Arc::new(Woken::default());
        (Arc::clone(&woken), Waker::from(woken))
    }

    #[test]
    fn the_longest_waiting_are_woken_first() {
        let tasks = Tasks::new();
        let [a, b, c] = std::array::from_fn(|_| task());
        for (_, waker) in [&a, &b, &c] {
            tasks.enter(waker);
        }
        let counts = || [&a, &b, &c].map(|(woken, _)| woken.0.load(Ordering::Relaxed));
        assert_eq!((tasks.wake(2), counts()), (2, [1, 1, 0]));
        assert_eq!((tasks.wake(2), counts()), (1, [1, 1, 1]));
        assert_eq!(tasks.wake(usize::MAX), 0);
    }

    #[test]
    fn who_left_is_not_woken() {
        let tasks = Tasks::new();
        let (woken, waker) = task();
        let ticket = tasks.enter(&waker);
        assert!(tasks.leave(ticket));
        assert!(!tasks.leave(ticket));
        assert_eq!((tasks.wake(1), woken.0.load(Ordering::Relaxed)), (0, 0));
    }

    #[test]
    fn a_refreshed_task_is_woken_by_its_new_waker() {
        let tasks = Tasks::new();
        let [(old, old_waker), (new, new_waker)] = std::array::from_fn(|_| task());
        let ticket = tasks.enter(&old_waker);
        assert!(tasks.refresh(ticket, &new_waker));
        tasks.wake(1);
        assert_eq!([old, new].map(|woken| woken.0.load(Ordering::Relaxed)), [0, 1]);
        assert!(!tasks.refresh(ticket, &new_waker));
    }
}
