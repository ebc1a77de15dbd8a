//! Loom models of the two operations that could lose a wake-up: a fiber's wait, and a worker's sleep. `scheduler/model.rs` models
//! the start, the join and the end of a fiber.
//!
//! The models explore the production source: the state word of a wait, the inbox, and the event count on which a worker sleeps.
//! A fiber of a model has no stack: it is a sequence of waits that the model's worker runs. A lost wake-up is a deadlock, which
//! loom reports.
//!
//! `python3 verify/mutants fiber` injects bugs into this source, one at a time, and reports the model that finds each.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::Notify;
use loom::thread;
use millstream_sync::eventcount::SpinPolicy;

use crate::primitive::{AtomicPtr, AtomicU32, Ordering::Relaxed};
use crate::scheduler::bell::Alarm;
use crate::scheduler::inbox::{Inbox, Linked};
use crate::scheduler::wait_state::WaitState;

/// A fiber that waits until every waker has set its flag.
struct Fiber {
    link: AtomicPtr<Fiber>,
    wait: WaitState,
    flags: AtomicU32,
    /// Written by the worker before the first wait, and read by a waker that finds the fiber asleep.
    home: UnsafeCell<u32>,
    /// Data that each waker writes before its wake-up, and that the fiber reads after its wait.
    gifts: [UnsafeCell<u32>; 2],
}

impl Linked for Fiber {
    type Ref = Arc<Self>;

    fn link(&self) -> &AtomicPtr<Self> {
        &self.link
    }

    fn into_raw(this: Arc<Self>) -> *const Self {
        Arc::into_raw(this)
    }

    unsafe fn from_raw(this: *const Self) -> Arc<Self> {
        // SAFETY: the caller passes a pointer from `into_raw`, with its reference.
        unsafe { Arc::from_raw(this) }
    }
}

fn fiber() -> Arc<Fiber> {
    let link = AtomicPtr::new(std::ptr::null_mut());
    let gifts = std::array::from_fn(|_| UnsafeCell::new(0));
    Arc::new(Fiber { link, wait: WaitState::new(), flags: AtomicU32::new(0), home: UnsafeCell::new(0), gifts })
}

/// The model's alarm. In production this is the descriptor that ends a sleep in the poller.
#[derive(Default)]
struct Doorbell(Arc<Notify>);

impl Alarm for Doorbell {
    fn sound(&self) {
        self.0.notify();
    }
}

fn wake(inbox: &Inbox<Fiber, Doorbell>, fiber: &Arc<Fiber>) {
    if fiber.wait.wake() {
        // SAFETY: the worker's write came before the fiber fell asleep; loom checks it.
        fiber.home.with(|home| assert_eq!(unsafe { *home }, 1));
        inbox.send(Arc::clone(fiber));
    }
}

/// Starts the fiber, as the worker does.
fn start(fiber: &Fiber) {
    // SAFETY: wakers read the cell only once the fiber has fallen asleep, which happens after this write; loom checks it.
    fiber.home.with_mut(|home| unsafe { *home = 1 });
}

/// Sleeps until a fiber arrives.
fn next(inbox: &Inbox<Fiber, Doorbell>) -> Vec<Arc<Fiber>> {
    loop {
        let key = inbox.bell.snapshot();
        let mut ready = Vec::new();
        inbox.take(|fiber| ready.push(fiber));
        if !ready.is_empty() {
            return ready;
        }
        // A model has no clock, so spinning would achieve nothing.
        let _ = inbox.bell.sleep(key, None, SpinPolicy::NONE);
    }
}

/// Lets the worker run `fiber` until `wakers` flags are set.
fn run(inbox: &Inbox<Fiber, Doorbell>, fiber: &Arc<Fiber>, wakers: u32) {
    while fiber.flags.load(Relaxed) != (1 << wakers) - 1 {
        if fiber.wait.begin() {
            let ready = next(inbox);
            assert_eq!(ready.len(), 1, "one wait has one wake-up");
            fiber.wait.end();
        }
    }
}

pub(crate) fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

fn inbox() -> Arc<Inbox<Fiber, Doorbell>> {
    Arc::new(Inbox::new(Doorbell::default()))
}

/// Writes the data of waker `index`, and then sets its flag.
fn give(fiber: &Fiber, index: usize) {
    // SAFETY: each waker writes its own cell, which the fiber reads after it has seen the wake-up; loom checks it.
    fiber.gifts[index].with_mut(|gift| unsafe { *gift = 1 });
    fiber.flags.fetch_or(1 << index, Relaxed);
}

#[test]
fn a_wait_ends_with_the_wake_up_and_sees_what_came_before() {
    explore(3, || {
        let (inbox, fiber) = (inbox(), fiber());
        let waker = {
            let (inbox, fiber) = (Arc::clone(&inbox), Arc::clone(&fiber));
            thread::spawn(move || {
                // SAFETY: the waker writes the cell, which the fiber reads after its wait; loom checks it.
                fiber.gifts[0].with_mut(|gift| unsafe { *gift = 1 });
                wake(&inbox, &fiber);
            })
        };
        start(&fiber);
        if fiber.wait.begin() {
            next(&inbox);
            fiber.wait.end();
        }
        // SAFETY: the waker's write came before the wake-up that ended the wait; loom checks it.
        fiber.gifts[0].with(|gift| assert_eq!(unsafe { *gift }, 1));
        waker.join().unwrap();
    });
}

#[test]
fn no_wake_up_of_two_wakers_is_lost() {
    explore(2, || {
        let (inbox, fiber) = (inbox(), fiber());
        let wakers = [0, 1].map(|index| {
            let (inbox, fiber) = (Arc::clone(&inbox), Arc::clone(&fiber));
            thread::spawn(move || {
                give(&fiber, index);
                wake(&inbox, &fiber);
            })
        });
        start(&fiber);
        run(&inbox, &fiber, 2);
        wakers.into_iter().for_each(|waker| waker.join().unwrap());
    });
}

#[test]
fn a_worker_that_sleeps_gets_every_fiber() {
    explore(2, || {
        let inbox = inbox();
        let fibers = [fiber(), fiber()];
        fibers.iter().for_each(|fiber| start(fiber));
        assert!(fibers.iter().all(|fiber| fiber.wait.begin()));
        let wakers = fibers.clone().map(|fiber| {
            let inbox = Arc::clone(&inbox);
            thread::spawn(move || {
                give(&fiber, 0);
                wake(&inbox, &fiber);
            })
        });
        let mut ready = 0;
        while ready < 2 {
            for fiber in next(&inbox) {
                // SAFETY: the waker's write came before the wake-up, and the push before the take; loom checks it.
                fiber.gifts[0].with(|gift| assert_eq!(unsafe { *gift }, 1));
                ready += 1;
            }
        }
        wakers.into_iter().for_each(|waker| waker.join().unwrap());
    });
}

#[test]
fn a_worker_that_sleeps_in_its_poller_gets_every_fiber() {
    explore(3, || {
        let poller = Arc::new(Notify::new());
        let inbox = Arc::new(Inbox::new(Doorbell(Arc::clone(&poller))));
        let fibers = [fiber(), fiber()];
        fibers.iter().for_each(|fiber| start(fiber));
        assert!(fibers.iter().all(|fiber| fiber.wait.begin()));
        let waker = {
            let (inbox, fibers) = (Arc::clone(&inbox), fibers.clone());
            thread::spawn(move || fibers.iter().for_each(|fiber| wake(&inbox, fiber)))
        };
        let mut ready = 0;
        while ready < 2 {
            let key = inbox.bell.snapshot();
            let before = ready;
            inbox.take(|_| ready += 1);
            if ready == before {
                inbox.bell.sleep_in_poller(key, |has_rung| {
                    if !has_rung {
                        poller.wait();
                    }
                });
            }
        }
        waker.join().unwrap();
    });
}
