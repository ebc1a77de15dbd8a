//! The snapshot cell: a register for threads that read and replace it, and a counter without lost steps for threads
//! that update it.

use crate::recorded::{a_while, disturb, record};
use crate::verdict::{assert_caught, assert_holds};
use millstream_history::{History, Kind, Model, Op, Value};
use millstream_recorder::{Log, Recorder};
use millstream_sync::reclaim::Snapshot;
use millstream_verify_random::{Random, stress};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Runs `turns` turns on each thread; each turn has a different number.
fn run(threads: u64, turns: u64, random: &mut Random, turn: impl Fn(&mut Log, u64, &mut Random) + Sync) -> History {
    record(threads, random, |log, random| {
        // The cell initially holds 0.
        let first = 1 + u64::from(log.process()) * turns;
        for number in first..first + turns {
            disturb(random);
            turn(log, number, random);
        }
    })
}

#[test]
fn a_snapshot_that_is_replaced_is_a_register() {
    let mut random = Random::new(millstream_verify_random::seed());
    for threads in [1, 2, 3, 8] {
        let cell = Snapshot::new(0_u64);
        let history =
            run(threads, 60_000 / threads * stress(), &mut random, |log, number, random| match random.below(4) {
                0 => log.record(Op::WRITE, number, || cell.set(number)),
                1 => drop(log.record_as(Op::READ, (), || cell.get(), |value| **value)),
                _ => drop(log.record_as(Op::READ, (), || cell.read(), |value| **value)),
            });
        assert_holds(&history, Model::new(Kind::Register).with_initial(Value::int(0)));
    }
}

#[test]
fn a_snapshot_that_is_updated_loses_no_update() {
    let mut random = Random::new(millstream_verify_random::seed());
    for threads in [1, 2, 4] {
        let cell = Snapshot::new(0_u64);
        let history = run(threads, 2000 / threads * stress(), &mut random, |log, _, random| {
            if random.below(2) == 0 {
                let stop = random.below(16) == 0;
                let next = |value: &u64| {
                    if stop {
                        thread::yield_now();
                    }
                    value + 1
                };
                log.record_as(Op::FETCH_ADD, 1, || cell.update(next), |after| **after - 1);
            } else {
                log.record_as(Op::READ, (), || cell.read(), |value| **value);
            }
        });
        assert_holds(&history, Kind::FetchAdd);
    }
}

/// The same cell with an update that is a load and a store: it overwrites an update that comes in between.
fn updated_without_comparing() -> History {
    let (twin, recorder) = (AtomicU64::new(0), Recorder::new());
    let update = |between: &mut dyn FnMut()| {
        let before = twin.load(Ordering::Acquire);
        between();
        twin.store(before + 1, Ordering::Release);
        before
    };
    let (mut stopped, mut other) = (recorder.log(), recorder.log());
    stopped.begin(Op::FETCH_ADD, 1);
    let before = update(&mut || {
        other.record(Op::FETCH_ADD, 1, || update(&mut || ()));
    });
    stopped.end(before);
    a_while();
    other.record(Op::READ, (), || twin.load(Ordering::Acquire));
    drop((stopped, other));
    recorder.finish()
}

#[test]
fn a_cell_that_updates_without_comparing_is_caught() {
    assert_caught("lost-update", "a cell that is updated without comparing", Kind::FetchAdd, updated_without_comparing);
}
