//! Event counts: a read returns the sum of the additions, and no wait ends while the count is still the same.

use crate::verdict::{assert_caught, assert_holds};
use millstream_history::{History, Kind, Op};
use millstream_recorder::{Log, Preemption, Recorder};
use millstream_sync::eventcount::parameters::{InPlace, Kind as CountKind, SoleKind, TwoWord};
use millstream_sync::eventcount::{Count, EventCount, EventCount64, SpinPolicy, Waited};
use millstream_verify_random::stress;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The longest wait.
const MAX_WAIT: Duration = Duration::from_micros(200);

/// A waiter's turn: reads the count and waits until it changes.
fn read_and_wait<K: CountKind>(count: &Count<K>, log: &mut Log) {
    let value = log.record(Op::READ, (), || count.value());
    let wait = || count.wait_with(count.key_of(value), Some(Instant::now() + MAX_WAIT), SpinPolicy::DEFAULT);
    let _recorded = log.record_as(Op::WAIT, value, wait, |waited| *waited == Waited::Changed);
}

/// An incrementer's turn, after a pause.
fn add_after_a_while(round: u64, log: &mut Log, add: impl FnOnce(u64)) {
    match round % 8 {
        0 => thread::sleep(Duration::from_micros(20)),
        1 => thread::yield_now(),
        2 => (0..500).for_each(|_| std::hint::spin_loop()),
        _ => (),
    }
    let amount = 1 + round % 3;
    log.record(Op::ADVANCE, amount, || add(amount));
}

/// Records incrementers, one for each function that adds, and waiters.
fn run<K: CountKind, A: FnMut(u64) + Send>(count: &Count<K>, adders: Vec<A>, waiters: usize) -> History {
    let rounds = 300 * stress();
    let recorder = Recorder::new().room(1 << 10);
    let preemption = Preemption::start().unwrap();
    thread::scope(|scope| {
        for mut add in adders {
            let mut log = recorder.log();
            scope.spawn(move || (0..rounds).for_each(|round| add_after_a_while(round, &mut log, &mut add)));
        }
        for _ in 0..waiters {
            let mut log = recorder.log();
            scope.spawn(move || (0..rounds).for_each(|_| read_and_wait(count, &mut log)));
        }
    });
    drop(preemption); // it would disturb the measurements at the end
    recorder.finish()
}

#[test]
fn counts_of_many_incrementers_are_linearizable() {
    for (incrementers, waiters) in [(1, 1), (2, 2), (3, 5)] {
        let (small, large) = (EventCount::new(), EventCount64::new());
        let adders = vec![|amount| small.add(amount); incrementers];
        assert_holds(&run(&small, adders, waiters), Kind::EventCount);
        let adders = vec![|amount| large.add(amount); incrementers];
        assert_holds(&run(&large, adders, waiters), Kind::EventCount);
    }
}

fn sole<K: SoleKind>(waiters: usize) {
    let mut count = Count::<K>::new();
    let (mut incrementer, count) = count.split();
    assert_holds(&run(count, vec![move |amount| incrementer.add(amount)], waiters), Kind::EventCount);
}

#[test]
fn counts_of_one_incrementer_are_linearizable() {
    for waiters in [1, 3, 7] {
        sole::<InPlace<u32>>(waiters);
        sole::<InPlace<u64>>(waiters);
        sole::<TwoWord<u32>>(waiters);
        sole::<TwoWord<u64>>(waiters);
    }
}

/// The single incrementer's addition, a load and a store, performed by two threads.
#[test]
fn two_incrementers_that_add_as_if_alone_are_caught() {
    assert_caught("lost-increment", "two incrementers that add as if alone", Kind::EventCount, || {
        let (twin, recorder) = (AtomicU64::new(0), Recorder::new().room(1 << 8));
        thread::scope(|scope| {
            for _ in 0..2 {
                let (twin, mut log) = (&twin, recorder.log());
                scope.spawn(move || {
                    for round in 0..40 {
                        log.record(Op::ADVANCE, 1, || {
                            let count = twin.load(Ordering::Relaxed);
                            if round % 4 == 0 {
                                thread::yield_now(); // preempted between the two
                            }
                            twin.store(count + 1, Ordering::Release);
                        });
                        log.record(Op::READ, (), || twin.load(Ordering::Acquire));
                    }
                });
            }
        });
        recorder.finish()
    });
}

/// A wait that ends at any wake-up, without checking the count.
#[test]
fn a_wait_that_does_not_recheck_is_caught() {
    assert_caught("dropped-recheck", "a wait that does not recheck after its wake-up", Kind::EventCount, || {
        let (twin, recorder) = (AtomicU64::new(0), Recorder::new().room(1 << 8));
        thread::scope(|scope| {
            let (count, mut log) = (&twin, recorder.log());
            let waiter = scope.spawn(move || {
                for _ in 0..40 {
                    let seen = log.record(Op::READ, (), || count.load(Ordering::Acquire));
                    log.record(Op::WAIT, seen, || {
                        if count.load(Ordering::Acquire) == seen {
                            thread::park_timeout(MAX_WAIT);
                        }
                        true
                    });
                }
            });
            let (count, mut log) = (&twin, recorder.log());
            scope.spawn(move || {
                for round in 0..40 {
                    if round % 2 == 0 {
                        log.record(Op::ADVANCE, 1, || count.fetch_add(1, Ordering::AcqRel));
                    }
                    // Every other time, another event wakes the waiter.
                    waiter.thread().unpark();
                    thread::sleep(Duration::from_micros(50));
                }
            });
        });
        recorder.finish()
    });
}
