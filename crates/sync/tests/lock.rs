//! Locks that four threads contend for: only one thread at a time is in the critical section, every waiter gets the
//! lock, and recorded histories are those of a mutex.
#![cfg(all(feature = "std", not(loom)))]

use millstream_history::{Kind, Op, Options, check};
use millstream_recorder::Recorder;
use millstream_sync::lock::lock_api::{Mutex, RawMutex};
use millstream_sync::lock::{Adaptive, Tas, Ticket, Ttas, TtasBackoff};
use millstream_verify_random::stress;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const THREADS: u64 = 4;

/// Runs the same tests for every lock.
macro_rules! for_every_lock {
    ($($test:ident: $lock:ty,)*) => {$(
        mod $test {
            use super::*;

            #[test]
            fn the_holder_is_alone() {
                visits::<$lock>();
            }

            #[test]
            fn a_try_fails_exactly_while_the_lock_is_held() {
                tries::<$lock>();
            }

            #[test]
            fn histories_are_those_of_a_mutex() {
                history::<$lock>();
            }
        }
    )*};
}
for_every_lock!(tas: Tas, ttas: Ttas, ttas_back_off: TtasBackoff, ticket: Ticket, adaptive: Adaptive,);

fn visits<R: RawMutex + Send + Sync>() {
    let each = 2_000 * stress();
    // These two numbers are equal except while a thread is in the critical section.
    let pair = Mutex::<R, [u64; 2]>::new([0, 0]);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for i in 0..each {
                    let mut pair = pair.lock();
                    assert_eq!(pair[0], pair[1]);
                    pair[0] += 1;
                    if i % 256 == 0 {
                        thread::yield_now();
                    }
                    pair[1] += 1;
                }
            });
        }
    });
    assert_eq!(pair.into_inner(), [THREADS * each; 2]);
}

fn tries<R: RawMutex + Send + Sync>() {
    let lock = Mutex::<R, ()>::new(());
    assert!(!lock.is_locked());
    let guard = lock.lock();
    assert!(lock.is_locked() && lock.try_lock().is_none());
    drop(guard);
    drop(lock.try_lock().unwrap());
    assert!(!lock.is_locked());
}

fn history<R: RawMutex + Send + Sync>() {
    let lock = Mutex::<R, ()>::new(());
    let recorder = Recorder::new();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (mut log, lock) = (recorder.log(), &lock);
            scope.spawn(move || {
                for i in 0..500 {
                    if (i + thread) % 3 == 0 {
                        if let Some(guard) = log.record_as(Op::ACQUIRE, (), || lock.try_lock(), Option::is_some) {
                            log.record(Op::RELEASE, (), || drop(guard));
                        }
                    } else {
                        let guard = log.record_as(Op::ACQUIRE, (), || lock.lock(), |_| true);
                        log.record(Op::RELEASE, (), || drop(guard));
                    }
                }
            });
        }
    });
    let options = Options { time: Some(Duration::from_secs(60)), explain: true, ..Options::default() };
    let verdict = check(&recorder.finish(), &Kind::Mutex.into(), &options).unwrap();
    assert_eq!(verdict.holds(), Some(true), "{verdict:?}");
}

#[test]
fn a_sleeper_on_an_adaptive_lock_is_woken() {
    let lock = Mutex::<Adaptive, u64>::new(0);
    for round in 0..20 * stress() {
        let (entered, inside) = mpsc::channel();
        thread::scope(|scope| {
            let guard = lock.lock();
            for _ in 0..3 {
                scope.spawn({
                    let (entered, lock) = (entered.clone(), &lock);
                    move || {
                        *lock.lock() += 1;
                        entered.send(()).unwrap();
                    }
                });
            }
            // This is long enough for all waiters to fall asleep.
            thread::sleep(Duration::from_millis(2 + round % 3));
            drop(guard);
            for _ in 0..3 {
                inside.recv_timeout(Duration::from_secs(120)).expect("every sleeper is woken");
            }
        });
    }
    assert_eq!(lock.into_inner(), 60 * stress());
}
