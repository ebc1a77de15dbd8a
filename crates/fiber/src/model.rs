//! Loom models of the two places where a wake-up could be lost: a fiber's wait, and a worker's sleep.
//!
//! The models explore the source that runs: the wait's word, the inbox, and the event count on which a worker sleeps.
//! A fiber is a number of waits that the model's worker runs; a lost wake-up is a deadlock, which loom reports.
//!
//! Mutations that the models find: a wake-up that does not set the word when the fiber is awake; a push that is not
//! followed by an increment; a check of the inbox before the snapshot; `Relaxed` in place of the release of a push or
//! of a wake-up, or of the acquire of `take` or `begin`.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use millstream_sync::eventcount::{EventCount, SpinPolicy};

use crate::primitive::{AtomicPtr, AtomicU32, Ordering::Relaxed};
use crate::scheduler::inbox::{Inbox, Linked};
use crate::scheduler::wait_state::WaitState;

/// A fiber that waits until every waker has set its flag.
struct Fiber {
    link: AtomicPtr<Fiber>,
    wait: WaitState,
    flags: AtomicU32,
    /// Written by a waker before its wake-up, read by the fiber after its wait.
    gifts: [UnsafeCell<u32>; 2],
}

impl Linked for Fiber {
    fn link(&self) -> &AtomicPtr<Self> {
        &self.link
    }
}

struct Post {
    inbox: Inbox<Fiber>,
    bell: EventCount,
}

fn fiber() -> Arc<Fiber> {
    let link = AtomicPtr::new(std::ptr::null_mut());
    let gifts = std::array::from_fn(|_| UnsafeCell::new(0));
    Arc::new(Fiber { link, wait: WaitState::new(), flags: AtomicU32::new(0), gifts })
}

fn wake(post: &Post, fiber: &Arc<Fiber>) {
    if fiber.wait.wake() && post.inbox.push(Arc::clone(fiber)) {
        post.bell.increment();
    }
}

/// Sleeps until a fiber arrives.
fn next(post: &Post) -> Vec<Arc<Fiber>> {
    loop {
        let key = post.bell.snapshot();
        let mut ready = Vec::new();
        post.inbox.take(|fiber| ready.push(fiber));
        if !ready.is_empty() {
            return ready;
        }
        // Spinning passes time, and a model has none.
        let _ = post.bell.wait_with(key, None, SpinPolicy::NONE);
    }
}

/// Lets the worker run `fiber` until `wakers` flags are set.
fn run(post: &Post, fiber: &Arc<Fiber>, wakers: u32) {
    while fiber.flags.load(Relaxed) != (1 << wakers) - 1 {
        if fiber.wait.begin() {
            let ready = next(post);
            assert_eq!(ready.len(), 1, "one wait has one wake-up");
            fiber.wait.end();
        }
    }
}

fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

fn post() -> Arc<Post> {
    Arc::new(Post { inbox: Inbox::new(), bell: EventCount::new() })
}

/// Sets the flag of waker `index` after writing its gift.
fn give(fiber: &Fiber, index: usize) {
    // SAFETY: each waker writes its own cell, which the fiber reads after it has seen the wake-up; loom checks it.
    fiber.gifts[index].with_mut(|gift| unsafe { *gift = 1 });
    fiber.flags.fetch_or(1 << index, Relaxed);
}

#[test]
fn a_wait_ends_with_the_wake_up_and_sees_what_came_before() {
    explore(3, || {
        let (post, fiber) = (post(), fiber());
        let waker = {
            let (post, fiber) = (Arc::clone(&post), Arc::clone(&fiber));
            thread::spawn(move || {
                // SAFETY: the waker writes the cell, which the fiber reads after its wait; loom checks it.
                fiber.gifts[0].with_mut(|gift| unsafe { *gift = 1 });
                wake(&post, &fiber);
            })
        };
        if fiber.wait.begin() {
            next(&post);
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
        let (post, fiber) = (post(), fiber());
        let wakers = [0, 1].map(|index| {
            let (post, fiber) = (Arc::clone(&post), Arc::clone(&fiber));
            thread::spawn(move || {
                give(&fiber, index);
                wake(&post, &fiber);
            })
        });
        run(&post, &fiber, 2);
        wakers.into_iter().for_each(|waker| waker.join().unwrap());
    });
}

#[test]
fn a_worker_that_sleeps_gets_every_fiber() {
    explore(2, || {
        let post = post();
        let fibers = [fiber(), fiber()];
        assert!(fibers.iter().all(|fiber| fiber.wait.begin()));
        let wakers = fibers.clone().map(|fiber| {
            let post = Arc::clone(&post);
            thread::spawn(move || {
                give(&fiber, 0);
                wake(&post, &fiber);
            })
        });
        let mut ready = 0;
        while ready < 2 {
            for fiber in next(&post) {
                // SAFETY: the waker's write came before the wake-up, and the push before the take; loom checks it.
                fiber.gifts[0].with(|gift| assert_eq!(unsafe { *gift }, 1));
                ready += 1;
            }
        }
        wakers.into_iter().for_each(|waker| waker.join().unwrap());
    });
}
