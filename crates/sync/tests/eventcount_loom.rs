//! Models of event counts: every interleaving of two or three threads, and every value that a weakly ordered machine
//! may read.
//!
//! A lost wake-up shows as a deadlock, which loom reports. Data that are not visible after the wait show in the same
//! way, because the waiter then waits for a change that never comes.
//!
//! The largest models allow one preemption fewer in the test command than in `cargo xtask soak models`. The models with
//! one waiter exercise the same orderings, and keep the full bound.
#![cfg(all(feature = "std", loom))]

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use loom::future::block_on;
use loom::model::Builder;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;
use millstream_sync::eventcount::parameters::{Kind, Many, TwoWord};
use millstream_sync::eventcount::{Count, SpinPolicy};
use millstream_verify_random::depth;

/// An event count and the data whose changes it announces: the data are accessed without any ordering of their own.
struct Subject<K: Kind> {
    count: Count<K>,
    items: AtomicUsize,
}

impl<K: Kind> Subject<K> {
    fn new() -> Arc<Self> {
        Arc::new(Subject { count: Count::new(), items: AtomicUsize::new(0) })
    }

    /// Puts an item and wakes all waiters.
    ///
    /// # Safety
    /// The caller upholds the contract of [`Count::add_waking_unchecked`].
    unsafe fn put(&self) {
        self.items.fetch_add(1, Relaxed);
        // SAFETY: the caller promises that no other increment of a single-incrementer kind runs meanwhile.
        unsafe { self.count.add_waking_unchecked(1, usize::MAX) }
    }

    /// Puts an item and wakes one waiter.
    ///
    /// # Safety
    /// The caller upholds the contract of [`Count::add_waking_unchecked`].
    unsafe fn put_waking_one(&self) {
        self.items.fetch_add(1, Relaxed);
        // SAFETY: the caller promises that no other increment of a single-incrementer kind runs meanwhile.
        unsafe { self.count.add_waking_unchecked(1, 1) }
    }

    /// Waits until `items` have been put.
    fn wait_until(&self, items: usize) {
        self.count.wait_for_with(|| (self.items.load(Relaxed) >= items).then_some(()), None, SpinPolicy::NONE);
    }

    fn take(&self) -> Option<usize> {
        self.items.fetch_update(Relaxed, Relaxed, |items| items.checked_sub(1)).ok()
    }

    fn wait_and_take(&self) {
        self.count.wait_for_with(|| self.take(), None, SpinPolicy::NONE);
    }
}

fn poll_once(future: &mut (impl Future<Output = ()> + Unpin)) -> Poll<()> {
    Pin::new(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Explores without a bound, or with at most `preemptions` preemptions.
fn explore(preemptions: Option<usize>, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(model);
}

#[test]
fn a_waiter_sees_two_incrementers() {
    explore(Some(3), || {
        let subject = Subject::<Many<u32>>::new();
        let incrementers: [_; 2] = std::array::from_fn(|_| {
            let subject = Arc::clone(&subject);
            // SAFETY: counts of this kind allow concurrent increments.
            thread::spawn(move || unsafe { subject.put() })
        });
        subject.wait_until(2);
        for thread in incrementers {
            thread.join().unwrap();
        }
    });
}

fn one_incrementer_and_waiters<K: Kind>(waiters: usize, increments: usize, preemptions: Option<usize>) {
    explore(preemptions, move || {
        let subject = Subject::<K>::new();
        let waiting: Vec<_> = (1..waiters)
            .map(|_| {
                let subject = Arc::clone(&subject);
                thread::spawn(move || subject.wait_until(increments))
            })
            .collect();
        let incrementer = Arc::clone(&subject);
        let incrementing = thread::spawn(move || {
            for _ in 0..increments {
                // SAFETY: no other thread increments this count.
                unsafe { incrementer.put() }
            }
        });
        subject.wait_until(increments);
        for thread in waiting {
            thread.join().unwrap();
        }
        incrementing.join().unwrap();
    });
}

#[test]
fn many_no_wake_up_is_lost_by_one_waiter() {
    one_incrementer_and_waiters::<Many<u64>>(1, 1, None);
    one_incrementer_and_waiters::<Many<u64>>(1, 2, Some(3));
}

#[test]
fn many_no_wake_up_is_lost_by_two_waiters() {
    one_incrementer_and_waiters::<Many<u32>>(2, 1, Some(3));
    one_incrementer_and_waiters::<Many<u32>>(2, 2, Some(2));
}

#[test]
fn two_word_no_wake_up_is_lost_by_one_waiter() {
    one_incrementer_and_waiters::<TwoWord<u64>>(1, 1, None);
    one_incrementer_and_waiters::<TwoWord<u64>>(1, 2, Some(3));
}

#[test]
fn two_word_no_wake_up_is_lost_by_two_waiters() {
    one_incrementer_and_waiters::<TwoWord<u32>>(2, 1, Some(depth(2, 3)));
    one_incrementer_and_waiters::<TwoWord<u32>>(2, 2, Some(depth(1, 2)));
}

#[test]
fn two_items_wake_two_takers_one_each() {
    explore(Some(2), || {
        let subject = Subject::<Many<u32>>::new();
        let takers = [(); 2].map(|()| {
            let subject = Arc::clone(&subject);
            thread::spawn(move || subject.wait_and_take())
        });
        for _ in 0..2 {
            // SAFETY: counts of this kind allow concurrent increments.
            unsafe { subject.put_waking_one() }
        }
        for thread in takers {
            thread.join().unwrap();
        }
    });
}

#[test]
fn two_word_two_items_wake_two_takers_one_each() {
    explore(Some(depth(1, 2)), || {
        let subject = Subject::<TwoWord<u32>>::new();
        let takers = [(); 2].map(|()| {
            let subject = Arc::clone(&subject);
            thread::spawn(move || subject.wait_and_take())
        });
        for _ in 0..2 {
            // SAFETY: no other thread increments this count.
            unsafe { subject.put_waking_one() }
        }
        for thread in takers {
            thread.join().unwrap();
        }
    });
}

/// An increment by zero wakes waiters, but must not clear the flag of a waiter of the same value.
fn an_addition_of_zero_loses_no_wake_up<K: Kind>() {
    explore(Some(3), || {
        let subject = Subject::<K>::new();
        let incrementer = Arc::clone(&subject);
        let incrementing = thread::spawn(move || {
            // SAFETY: no other thread increments this count.
            unsafe {
                incrementer.count.add_waking_unchecked(0, usize::MAX);
                incrementer.put();
            }
        });
        subject.wait_until(1);
        incrementing.join().unwrap();
    });
}

#[test]
fn many_an_addition_of_zero_loses_no_wake_up() {
    an_addition_of_zero_loses_no_wake_up::<Many<u32>>();
}

#[test]
fn two_word_an_addition_of_zero_loses_no_wake_up() {
    an_addition_of_zero_loses_no_wake_up::<TwoWord<u32>>();
}

fn a_task_that_gives_up_takes_no_wake_up_with_it<K: Kind>() {
    explore(Some(3), || {
        let subject = Subject::<K>::new();
        let [patient, incrementer] = [(); 2].map(|()| Arc::clone(&subject));
        let waiting = thread::spawn(move || patient.wait_until(1));
        // SAFETY: no other thread increments this count.
        let incrementing = thread::spawn(move || unsafe { incrementer.put() });
        let key = subject.count.snapshot();
        let polled = poll_once(&mut pin!(subject.count.wait_async(key)));
        assert!(polled.is_pending() || subject.items.load(Relaxed) == 1, "a task was ready before the change");
        waiting.join().unwrap();
        incrementing.join().unwrap();
    });
}

#[test]
fn many_a_task_that_gives_up_takes_no_wake_up_with_it() {
    a_task_that_gives_up_takes_no_wake_up_with_it::<Many<u32>>();
}

#[test]
fn two_word_a_task_that_gives_up_takes_no_wake_up_with_it() {
    a_task_that_gives_up_takes_no_wake_up_with_it::<TwoWord<u32>>();
}

/// The second wait begins while the first increment may still be busy with the flag and the line.
fn a_task_is_woken<K: Kind>() {
    for (increments, preemptions) in [(1, None), (2, Some(3))] {
        explore(preemptions, move || {
            let subject = Subject::<K>::new();
            let incrementer = Arc::clone(&subject);
            let incrementing = thread::spawn(move || {
                for _ in 0..increments {
                    // SAFETY: no other thread increments this count.
                    unsafe { incrementer.put() }
                }
            });
            let ready = || (subject.items.load(Relaxed) == increments).then_some(());
            block_on(subject.count.wait_for_async(ready));
            incrementing.join().unwrap();
        });
    }
}

#[test]
fn many_a_task_is_woken() {
    a_task_is_woken::<Many<u32>>();
}

#[test]
fn two_word_a_task_is_woken() {
    a_task_is_woken::<TwoWord<u32>>();
}

#[test]
fn a_thread_and_a_task_are_both_woken() {
    explore(Some(3), || {
        let subject = Subject::<Many<u32>>::new();
        let [waiter, incrementer] = [(); 2].map(|()| Arc::clone(&subject));
        let waiting = thread::spawn(move || waiter.wait_until(1));
        // SAFETY: counts of this kind allow concurrent increments.
        let incrementing = thread::spawn(move || unsafe { incrementer.put() });
        block_on(subject.count.wait_for_async(|| (subject.items.load(Relaxed) == 1).then_some(())));
        waiting.join().unwrap();
        incrementing.join().unwrap();
    });
}

#[test]
fn a_dropped_task_hands_its_wake_up_on() {
    explore(Some(3), || {
        let subject = Subject::<Many<u32>>::new();
        let [waiter, incrementer] = [(); 2].map(|()| Arc::clone(&subject));
        let waiting = thread::spawn(move || {
            block_on(waiter.count.wait_for_async(|| (waiter.items.load(Relaxed) == 1).then_some(())));
        });
        // SAFETY: counts of this kind allow concurrent increments.
        let incrementing = thread::spawn(move || unsafe { incrementer.put_waking_one() });
        let key = subject.count.snapshot();
        if poll_once(&mut pin!(subject.count.wait_async(key))).is_ready() {
            // The dropped task received this wake-up, so it passes the wake-up on.
            subject.count.add(0);
        }
        waiting.join().unwrap();
        incrementing.join().unwrap();
    });
}

#[test]
fn a_handle_that_moves_to_another_thread_loses_no_increment() {
    explore(None, || {
        let (mut incrementer, count) = Count::<TwoWord<u32>>::pair();
        incrementer.increment();
        let moved = thread::spawn(move || incrementer.increment());
        count.wait_for_with(|| (count.value() == 2).then_some(()), None, SpinPolicy::NONE);
        moved.join().unwrap();
    });
}
