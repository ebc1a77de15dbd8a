//! Every interleaving of two or three threads with a lock, and every value a weakly ordered machine may read: who is inside is
//! alone, sees what was done before, and who sleeps is woken (or loom reports a deadlock).
#![cfg(all(feature = "std", loom))]

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::thread;
use millstream_sync::lock::{Adaptive, Tas, Ticket, Ttas, TtasBackoff};

trait Lock: Default + Send + Sync + 'static {
    fn acquire(&self);
    fn try_acquire(&self) -> bool;
    /// # Safety
    /// The caller has it.
    unsafe fn release(&self);
}

macro_rules! lock {
    ($($lock:ty),*) => {$(
        impl Lock for $lock {
            fn acquire(&self) {
                <$lock>::acquire(self);
            }

            fn try_acquire(&self) -> bool {
                <$lock>::try_acquire(self)
            }

            unsafe fn release(&self) {
                // SAFETY: the caller's promise.
                unsafe { <$lock>::release(self) };
            }
        }
    )*};
}
lock!(Adaptive, Tas, Ticket, Ttas, TtasBackoff);

/// A lock, and what it guards: loom watches who touches that.
#[derive(Default)]
struct Guarded<L> {
    lock: L,
    visits: UnsafeCell<u32>,
}

// SAFETY: `visits` is for who has the lock, and loom checks that.
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
        // SAFETY: we have the lock.
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

/// So many further threads visit, so often each, beside this one.
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
        // SAFETY: we have the lock.
        unsafe { guarded.visits.with(|visits| assert_eq!(*visits, (others as u32 + 1) * each)) };
    });
}

/// One waits, the other one comes in only if it is free.
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
        // SAFETY: we have the lock.
        unsafe { guarded.visits.with(|visits| assert_eq!(*visits, expected)) };
    });
}

#[test]
fn who_is_inside_tas_is_alone() {
    visits::<Tas>(None, 1, 2);
    tries::<Tas>();
}

#[test]
fn who_is_inside_ttas_is_alone() {
    visits::<Ttas>(None, 1, 2);
    tries::<Ttas>();
}

#[test]
fn who_is_inside_ttas_with_back_off_is_alone() {
    visits::<TtasBackoff>(None, 1, 2);
    tries::<TtasBackoff>();
}

#[test]
fn who_is_inside_a_ticket_lock_is_alone() {
    visits::<Ticket>(None, 1, 2);
    tries::<Ticket>();
}

#[test]
fn who_is_inside_an_adaptive_lock_is_alone_and_who_sleeps_is_woken() {
    visits::<Adaptive>(Some(3), 1, 2);
    tries::<Adaptive>();
}

#[test]
fn two_that_sleep_on_an_adaptive_lock_are_woken() {
    visits::<Adaptive>(Some(2), 2, 1);
}
