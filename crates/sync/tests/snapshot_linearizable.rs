//! Recorded runs of the snapshot cell: it is a register for those who read and replace it, and a counter without lost steps for
//! those who update it. And a cell with a mistake, which the same check must catch. `MILLSTREAM_STRESS=n` makes the runs
//! n times longer; with `MILLSTREAM_PICTURES=folder` what was caught is drawn there.
#![cfg(not(loom))]

#[path = "support/length.rs"]
mod length;
#[path = "support/random.rs"]
mod random;

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use length::stress;
use millstream_history::record::{Log, Recorder};
use millstream_history::timeline::Timeline;
use millstream_history::{History, Kind, Model, Op, Options, Value, Verdict, check};
use millstream_sync::reclaim::Snapshot;
use random::Random;

/// What the threads do, each disturbed between its turns.
fn run(threads: u64, turns: u64, random: &mut Random, turn: impl Fn(&mut Log, u64, &mut Random) + Sync) -> History {
    let recorder = Recorder::new().room(1 << 10);
    thread::scope(|scope| {
        for _ in 0..threads {
            let (mut log, mut random) = (recorder.log(), Random::new(random.below(u64::MAX)));
            let turn = &turn;
            scope.spawn(move || {
                // 0 is what the cell holds at first.
                let first = 1 + u64::from(log.process()) * turns;
                for number in first..first + turns {
                    match random.below(256) {
                        0..4 => thread::yield_now(),
                        4 => thread::sleep(Duration::from_micros(random.below(50))),
                        5..64 => (0..random.below(100)).for_each(|_| std::hint::spin_loop()),
                        _ => (),
                    }
                    turn(&mut log, number, &mut random);
                }
            });
        }
    });
    recorder.finish()
}

fn verdict(history: &History, model: Model) -> Verdict {
    let options = Options { time: Some(Duration::from_secs(60)), ..Options::default() };
    check(history, &model, &options).unwrap()
}

fn assert_holds(history: &History, model: Model) {
    let verdict = verdict(history, model);
    assert_eq!(verdict.holds(), Some(true), "{verdict:?}");
}

#[test]
fn a_snapshot_that_is_replaced_is_a_register() {
    let mut random = Random::new(Random::seed());
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
    let mut random = Random::new(Random::seed());
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
        assert_holds(&history, Kind::FetchAdd.into());
    }
}

/// The same cell, whose update is a look and a store: whoever was in between is overwritten.
#[test]
fn a_cell_that_updates_without_comparing_is_caught() {
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
    // Longer than the clocks of two cores may differ.
    thread::sleep(Duration::from_micros(10));
    other.record(Op::READ, (), || twin.load(Ordering::Acquire));
    drop((stopped, other));

    let history = recorder.finish();
    let verdict = verdict(&history, Kind::FetchAdd.into());
    let Verdict::Fails(found) = &verdict else { panic!("a lost update was not caught: {verdict:?}") };
    assert!((1..=10).contains(&found.operations.len()), "{found:?}");
    if let Some(folder) = std::env::var_os("MILLSTREAM_PICTURES").map(PathBuf::from) {
        let title = "a cell that is updated without comparing";
        fs::write(folder.join("lost-update.svg"), Timeline::new(title, &history, &verdict).svg()).unwrap();
    }
}
