//! Tests of scopes: fibers that borrow, and every way in which a scope can end.

#[path = "support/modes.rs"]
mod modes;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use millstream_fiber::{JoinError, park, scope, sleep, spawn, yield_now};
use modes::under_each;

#[test]
fn nested_scopes_borrow_from_all_enclosing_scopes() {
    under_each(|runtime| {
        let mut sums = vec![0u32; 8];
        runtime.scope(|outer| {
            for (index, sum) in sums.iter_mut().enumerate() {
                outer.spawn(move || {
                    let mut parts = [0; 4];
                    scope(|inner| {
                        for (n, part) in parts.iter_mut().enumerate() {
                            inner.spawn(move || {
                                yield_now();
                                *part = (index * n) as u32;
                            });
                        }
                    });
                    *sum = parts.iter().sum();
                });
            }
        });
        assert_eq!(sums, (0..8).map(|index| index * 6).collect::<Vec<_>>());
    });
}

#[test]
fn a_fiber_of_the_scope_spawns_into_the_scope() {
    under_each(|runtime| {
        let count = AtomicUsize::new(0);
        runtime.scope(|scope| {
            scope.spawn(|| {
                for _ in 0..5 {
                    scope.spawn(|| {
                        sleep(Duration::from_millis(1));
                        count.fetch_add(1, SeqCst)
                    });
                }
            });
        });
        assert_eq!(count.load(SeqCst), 5);
    });
}

#[test]
fn forgotten_handles_do_not_let_a_scope_end_early() {
    under_each(|runtime| {
        let is_done = AtomicBool::new(false);
        runtime.scope(|scope| {
            std::mem::forget(scope.spawn(|| {
                sleep(Duration::from_millis(5));
                is_done.store(true, SeqCst);
            }));
        });
        assert!(is_done.load(SeqCst));
    });
}

#[test]
fn a_panic_in_the_scope_waits_for_its_fibers() {
    under_each(|runtime| {
        let is_done = AtomicBool::new(false);
        let result = catch_unwind(AssertUnwindSafe(|| {
            runtime.scope(|scope| {
                scope.spawn(|| {
                    sleep(Duration::from_millis(5));
                    is_done.store(true, SeqCst);
                });
                resume_unwind(Box::new("body"));
            })
        }));
        assert_eq!(result.unwrap_err().downcast_ref(), Some(&"body"));
        assert!(is_done.load(SeqCst));
    });
}

#[test]
fn a_panic_that_was_not_joined_makes_the_scope_panic() {
    under_each(|runtime| {
        let unjoined = catch_unwind(AssertUnwindSafe(|| {
            runtime.scope(|scope| {
                scope.spawn(|| resume_unwind(Box::new("fiber")));
            });
        }));
        assert!(unjoined.is_err());
        runtime.scope(|scope| {
            let joined = scope.spawn(|| resume_unwind(Box::new("fiber")));
            assert!(matches!(joined.join(), Err(JoinError::Panicked(_))));
        });
    });
}

/// A result whose destructor reads a borrowed value.
struct Reader<'a>(&'a AtomicUsize);

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn results_are_dropped_before_their_scope_ends() {
    under_each(|runtime| {
        for _ in 0..100 {
            let drops = AtomicUsize::new(0);
            runtime.scope(|scope| {
                drop(scope.spawn(|| Reader(&drops)));
                drop(scope.spawn(|| Reader(&drops)));
            });
            assert_eq!(drops.load(SeqCst), 2);
        }
    });
}

#[test]
fn a_cancelled_owner_cancels_its_fibers_and_waits_for_them() {
    under_each(|runtime| {
        let ended = std::sync::Arc::new(AtomicUsize::new(0));
        let theirs = std::sync::Arc::clone(&ended);
        let owner = runtime.spawn(move || {
            let ended = &theirs;
            scope(|scope| {
                for _ in 0..5 {
                    let reader = Reader(ended);
                    scope.spawn(move || {
                        let _reader = reader;
                        park();
                    });
                }
            });
            park();
        });
        sleep(Duration::from_millis(2));
        owner.cancel();
        assert!(matches!(owner.join(), Err(JoinError::Cancelled)));
        assert!([0, 5].contains(&ended.load(SeqCst)), "all spawned fibers have ended");
    });
}

#[test]
fn a_scope_in_a_destructor_works_while_the_fiber_unwinds() {
    struct Scoped;
    impl Drop for Scoped {
        fn drop(&mut self) {
            let count = AtomicUsize::new(0);
            scope(|scope| {
                scope.spawn(|| {
                    yield_now();
                    count.fetch_add(1, SeqCst)
                });
            });
            assert_eq!(count.load(SeqCst), 1);
        }
    }
    under_each(|runtime| {
        let bad = runtime.spawn(|| {
            let _scoped = Scoped;
            resume_unwind(Box::new("body"));
        });
        assert!(matches!(bad.join(), Err(JoinError::Panicked(_))));
        // The fiber is cancelled during its wait, or before it starts.
        for pause in [Duration::from_millis(2), Duration::ZERO] {
            let scoped = Scoped;
            let cancelled = runtime.spawn(move || {
                let _scoped = scoped;
                park();
            });
            sleep(pause);
            cancelled.cancel();
            assert!(matches!(cancelled.join(), Err(JoinError::Cancelled)));
        }
    });
}

#[test]
fn deep_nesting_of_scopes_ends() {
    fn nest(depth: u32) -> u32 {
        if depth == 0 { 0 } else { scope(|scope| scope.spawn(move || nest(depth - 1) + 1).join().unwrap()) }
    }
    under_each(|runtime| assert_eq!(runtime.spawn(|| nest(50)).join().unwrap(), 50));
}

#[test]
fn a_scope_outside_a_fiber_says_so() {
    let error = catch_unwind(|| scope(|_| ())).unwrap_err();
    assert!(error.downcast_ref::<&str>().copied().is_none_or(|text| text.contains("Runtime")));
    assert!(catch_unwind(|| spawn(|| ())).is_err());
}
