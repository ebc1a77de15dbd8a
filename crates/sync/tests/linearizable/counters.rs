//! Counters: while all threads add ones, a sum is the count at some moment of its call.
//!
//! Gauges, minima, maxima and histograms make no promise about a single moment; `tests/counter.rs` tests their
//! promises.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::decided::assert_holds_once_decided;
use crate::recorded::{a_while, disturb, record};
use crate::verdict::assert_caught;
use millstream_history::{History, Kind, Op};
use millstream_recorder::Recorder;
use millstream_sync::counter::{Counter, SharedCounters};
use millstream_verify_random::{Random, stress};

/// Each thread adds through its own adder, which it replaces now and then, and takes sums.
fn assert_counts<A: Fn()>(adder: impl Fn() -> A + Sync, sum: impl Fn() -> u64 + Sync) {
    let mut random = Random::new(millstream_verify_random::seed());
    for threads in [1, 2, 8] {
        assert_holds_once_decided(Kind::Counter, || {
            let before = sum();
            record(threads, &mut random, |log, random| {
                let mut add = adder();
                for _ in 0..12_000 / threads * stress() {
                    disturb(random);
                    match random.below(256) {
                        0 => add = adder(),
                        1..32 => {
                            log.record_as(Op::GET, (), &sum, |sum| sum - before);
                        }
                        _ => log.record(Op::ADD, 1, &add),
                    }
                }
            })
        });
    }
}

#[test]
fn ones_added_from_anywhere_are_linearizable() {
    let counter = Counter::new();
    assert_counts(|| || counter.increment(), || counter.sum());
}

#[test]
fn ones_added_by_adders_are_linearizable() {
    let counter = Counter::new();
    assert_counts(
        || {
            let adder = counter.adder();
            move || adder.increment()
        },
        || counter.sum(),
    );
}

#[test]
fn ones_added_by_locals_are_linearizable() {
    let counter = Counter::new();
    assert_counts(
        || {
            let local = counter.local();
            move || local.increment()
        },
        || counter.sum(),
    );
}

#[test]
fn ones_added_to_a_shared_counter_are_linearizable() {
    let file = tempfile::tempfile().unwrap();
    let (here, elsewhere) = (SharedCounters::create(&file, 3).unwrap(), SharedCounters::open(&file).unwrap());
    assert_counts(|| || here.add(1, 1), || elsewhere.sum(1));
}

/// The mistake: shares are added to the sum only every third time, so a sum lacks finished additions.
fn handed_in_late() -> History {
    let (total, recorder) = (AtomicU64::new(0), Recorder::new());
    let (mut counting, mut summing) = (recorder.log(), recorder.log());
    let mut share = 0;
    for number in 1..=4 {
        counting.record(Op::ADD, 1, || {
            share += 1;
            if number % 3 == 0 {
                total.fetch_add(share, Ordering::Relaxed);
                share = 0;
            }
        });
        a_while();
        summing.record(Op::GET, (), || total.load(Ordering::Relaxed));
        a_while();
    }
    drop((counting, summing));
    recorder.finish()
}

#[test]
fn a_share_that_is_handed_in_late_is_caught() {
    assert_caught("handed-in-late", "a share that is handed in late", Kind::Counter, handed_in_late);
}
