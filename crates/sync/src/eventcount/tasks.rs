//! The tasks that wait for a count, behind a lock that is taken only when the flag is set.
//!
//! A waker is the user's code: its clone, wake and drop may panic, and may use this very count. So none of them runs
//! under the lock: [`Tasks::with`] only moves wakers into and out of the line under the lock, and its caller clones,
//! wakes and drops them outside.

use std::collections::BTreeMap;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

use crate::primitive::{Mutex, PoisonError};

/// Waiting tasks in order of arrival.
#[derive(Debug)]
pub(super) struct Tasks(Mutex<Line>);

#[derive(Debug)]
struct Line {
    next: u64,
    waiting: BTreeMap<u64, Waker>,
}

/// A position in the line.
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

    /// Adds a task to the end of the line.
    pub(super) fn enter(&self, waker: &Waker) -> Ticket {
        let waker = waker.clone();
        self.with(|line| {
            let ticket = line.next;
            line.next += 1;
            line.waiting.insert(ticket, waker);
            Ticket(ticket)
        })
    }

    /// Replaces a queued task's waker; `false` if the task has been woken.
    pub(super) fn refresh(&self, ticket: Ticket, waker: &Waker) -> bool {
        let is_current = self.with(|line| line.waiting.get(&ticket.0).map(|queued| queued.will_wake(waker)));
        if is_current != Some(false) {
            return is_current.is_some();
        }
        let mut waker = waker.clone();
        // The waker that the line does not keep is dropped at the end of this function, outside the lock.
        self.with(|line| {
            let queued = line.waiting.get_mut(&ticket.0);
            queued.map(|queued| mem::swap(queued, &mut waker)).is_some()
        })
    }

    /// Removes a task; `false` if it has been woken.
    pub(super) fn leave(&self, ticket: Ticket) -> bool {
        let waker = self.with(|line| line.waiting.remove(&ticket.0));
        waker.is_some()
    }

    /// Wakes at most `most` tasks, the longest waiting first, and returns how many it woke. A waker that panics does
    /// not keep others from being woken.
    pub(super) fn wake(&self, most: usize) -> usize {
        let woken = self.with(|line| {
            let mut woken = mem::take(&mut line.waiting);
            if let Some((&first_left, _)) = woken.iter().nth(most) {
                line.waiting = woken.split_off(&first_left);
            }
            woken
        });
        let number = woken.len();
        woken.into_values().for_each(wake_contained);
        number
    }

    fn with<T>(&self, work: impl FnOnce(&mut Line) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Wakes a task and contains a panic of its waker. The panic hook has reported the panic. The waking thread did not
/// cause it, and has other tasks to wake.
pub(super) fn wake_contained(waker: Waker) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
        // The payload's destructor may panic, too. The payload of that second panic is leaked.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(payload))).map_err(mem::forget);
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
    fn tasks_that_have_waited_longest_are_woken_first() {
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
    fn a_task_that_left_is_not_woken() {
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

    /// A waker that runs `on_wake` when it is woken and `on_drop` when it is dropped.
    struct Hostile<W: Fn(), D: Fn()> {
        on_wake: W,
        on_drop: D,
    }

    impl<W: Fn() + Send + Sync, D: Fn() + Send + Sync> Wake for Hostile<W, D> {
        fn wake(self: Arc<Self>) {
            (self.on_wake)();
        }
    }

    impl<W: Fn(), D: Fn()> Drop for Hostile<W, D> {
        fn drop(&mut self) {
            (self.on_drop)();
        }
    }

    #[test]
    fn a_panicking_waker_does_not_keep_others_from_being_woken() {
        let tasks = Tasks::new();
        let [first, last] = std::array::from_fn(|_| task());
        tasks.enter(&first.1);
        let panics = || std::panic::resume_unwind(Box::new("a waker that panics"));
        tasks.enter(&Waker::from(Arc::new(Hostile { on_wake: panics, on_drop: || () })));
        tasks.enter(&Waker::from(Arc::new(Hostile { on_wake: || (), on_drop: panics })));
        tasks.enter(&last.1);
        assert_eq!(tasks.wake(usize::MAX), 4);
        assert_eq!([first, last].map(|(woken, _)| woken.0.load(Ordering::Relaxed)), [1, 1]);
    }

    #[test]
    fn a_waker_that_is_replaced_may_use_the_line_when_it_is_dropped() {
        let tasks = Arc::new(Tasks::new());
        let (woken, other) = task();
        let held = tasks.enter(&other);
        let line = Arc::clone(&tasks);
        let on_drop = move || assert!(line.leave(held));
        let ticket = tasks.enter(&Waker::from(Arc::new(Hostile { on_wake: || (), on_drop })));
        assert!(tasks.refresh(ticket, &other));
        assert_eq!((tasks.wake(usize::MAX), woken.0.load(Ordering::Relaxed)), (1, 1));
    }

    #[test]
    fn a_waker_that_panics_on_drop_leaves_its_successor_queued() {
        let tasks = Tasks::new();
        let (woken, waker) = task();
        let on_drop = || std::panic::resume_unwind(Box::new("a waker that panics"));
        let ticket = tasks.enter(&Waker::from(Arc::new(Hostile { on_wake: || (), on_drop })));
        let refreshed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| tasks.refresh(ticket, &waker)));
        assert!(refreshed.is_err(), "the panic is the task's own");
        assert_eq!((tasks.wake(usize::MAX), woken.0.load(Ordering::Relaxed)), (1, 1));
    }
}
