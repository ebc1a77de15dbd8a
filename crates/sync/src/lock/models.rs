//! Models of locks: every interleaving of two or three threads, and every value that a weakly ordered machine may read.
//! They check that the holder is alone in the critical section and sees everything done before, and that a sleeper is
//! woken (otherwise loom reports a deadlock).

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::thread;

use super::{Adaptive, Lock, Tas, Ticket, Ttas, TtasBackoff};

/// A lock and the data it guards, whose accesses loom checks.
#[derive(Default)]
struct Guarded<L> {
    lock: L,
    visits: UnsafeCell<u32>,
}

// SAFETY: only the holder of the lock touches `visits`, which loom checks.
unsafe impl<L: Lock> Sync for Guarded<L> {}

impl<L: Lock> Guarded<L> {
    fn visit(&self) {
        self.lock.acquire();
        self.inside();
    }

    fn visit_if_free(&self) -> u32 {
        if !self.lock.try_acquire() {
            return 0;
        }
        self.inside();
        1
    }

    fn inside(&self) {
        // SAFETY: this thread holds the lock.
        unsafe {
            self.visits.with_mut(|visits| *visits += 1);
            self.lock.release();
        }
    }
}

fn explore(preemptions: Option<usize>, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(model);
}

/// Runs `others` threads in addition to this one. Each thread, this one included, enters the critical section `each`
/// times.
fn visits<L: Lock>(preemptions: Option<usize>, others: usize, each: u32) {
    explore(preemptions, move || {
        let guarded = Arc::new(Guarded::<L>::default());
        let visitors: Vec<_> = (0..others)
            .map(|_| {
                let guarded = Arc::clone(&guarded);
                thread::spawn(move || (0..each).for_each(|_| guarded.visit()))
            })
            .collect();
        (0..each).for_each(|_| guarded.visit());
        visitors.into_iter().for_each(|visitor| visitor.join().unwrap());
        guarded.lock.acquire();
        // SAFETY: this thread holds the lock.
        unsafe { guarded.visits.with(|visits| assert_eq!(*visits, (others as u32 + 1) * each)) };
    });
}

/// One thread waits for the lock; the other enters only if the lock is free.
fn tries<L: Lock>() {
    explore(None, || {
        let guarded = Arc::new(Guarded::<L>::default());
        let other = {
            let guarded = Arc::clone(&guarded);
            thread::spawn(move || guarded.visit_if_free())
        };
        guarded.visit();
        let expected = 1 + other.join().unwrap();
        guarded.lock.acquire();
        // SAFETY: this thread holds the lock.
        unsafe { guarded.visits.with(|visits| assert_eq!(*visits, expected)) };
    });
}

#[test]
fn the_holder_of_tas_is_alone() {
    visits::<Tas>(None, 1, 2);
    tries::<Tas>();
}

#[test]
fn the_holder_of_ttas_is_alone() {
    visits::<Ttas>(None, 1, 2);
    tries::<Ttas>();
}

#[test]
fn the_holder_of_ttas_with_back_off_is_alone() {
    visits::<TtasBackoff>(None, 1, 2);
    tries::<TtasBackoff>();
}

#[test]
fn the_holder_of_a_ticket_lock_is_alone() {
    visits::<Ticket>(None, 1, 2);
    tries::<Ticket>();
}

#[test]
fn adaptive_excludes_and_wakes_a_sleeper() {
    visits::<Adaptive>(Some(3), 1, 2);
    tries::<Adaptive>();
}

#[test]
fn two_sleepers_on_an_adaptive_lock_are_woken() {
    visits::<Adaptive>(Some(2), 2, 1);
}
