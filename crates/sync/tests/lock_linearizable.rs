//! Recorded runs of every lock and of the counter, checked for linearizability: nobody is inside beside another, and no increment
//! is lost. And a lock with a mistake, which the same check must catch. `MILLSTREAM_STRESS=n` makes the runs n times longer;
//! with `MILLSTREAM_PICTURES=folder` what was caught is drawn there.
#![cfg(not(loom))]

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use millstream_history::record::{Log, Recorder};
use millstream_history::timeline::Timeline;
use millstream_history::{History, Kind, Op, Options, Verdict, check};
use millstream_sync::counter::Counter;
use millstream_sync::lock::lock_api::RawMutex;
use millstream_sync::lock::{Adaptive, Tas, Ticket, Ttas, TtasBackoff};

fn stress() -> u64 {
    std::env::var("MILLSTREAM_STRESS").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}

/// Loses the core, sleeps, or does something.
fn busy(round: u64) {
    match round % 32 {
        0 => thread::sleep(Duration::from_micros(30)),
        1..4 => thread::yield_now(),
        _ => (0..round % 200).for_each(|_| std::hint::spin_loop()),
    }
}

/// Threads that do something so many times, each with a log.
fn record(threads: u64, rounds: u64, turn: impl Fn(&mut Log, u64) + Sync) -> History {
    let recorder = Recorder::new().room(1 << 10);
    thread::scope(|scope| {
        for thread in 0..threads {
            let (mut log, turn) = (recorder.log(), &turn);
            scope.spawn(move || (0..rounds).for_each(|round| turn(&mut log, 7 * thread + round)));
        }
    });
    recorder.finish()
}

fn verdict(history: &History, kind: Kind, explain: bool) -> Verdict {
    let options = Options { time: Some(Duration::from_secs(60)), explain, ..Options::default() };
    check(history, &kind.into(), &options).unwrap()
}

fn assert_holds(history: &History, kind: Kind) {
    let verdict = verdict(history, kind, true);
    assert_eq!(verdict.holds(), Some(true), "{kind}: {verdict:?}");
}

/// Every fourth attempt does not wait; that it fails is no promise, and so is no answer.
fn excludes<L: RawMutex + Sync>() {
    for threads in [1, 2, 8] {
        let lock = L::INIT;
        let rounds = 4000 / threads * stress();
        let history = record(threads, rounds, |log, round| {
            if round % 4 == 0 {
                log.begin(Op::ACQUIRE, ());
                if !lock.try_lock() {
                    return log.fail();
                }
                log.end(true);
            } else {
                log.record(Op::ACQUIRE, (), || lock.lock());
            }
            busy(round);
            // SAFETY: this thread has locked it above.
            log.record(Op::RELEASE, (), || unsafe { lock.unlock() });
            busy(round + 5);
        });
        assert_holds(&history, Kind::Mutex);
    }
}

#[test]
fn every_lock_excludes() {
    excludes::<Tas>();
    excludes::<Ttas>();
    excludes::<TtasBackoff>();
    excludes::<Ticket>();
    excludes::<Adaptive>();
}

/// While others count by ones, a sum is the count at some moment of its call.
#[test]
fn a_counter_of_ones_is_a_counter() {
    for threads in [1, 2, 4] {
        let counter = Counter::new();
        let history = record(threads, 3000 * stress(), |log, round| {
            busy(round + 4);
            if round % 8 == 7 {
                log.record(Op::GET, (), || counter.sum());
            } else {
                log.record(Op::ADD, 1, || counter.increment());
            }
        });
        assert_holds(&history, Kind::Counter);
    }
}

/// How often the twin may get away.
const RUNS_MOST: u32 = 200;

/// Test-and-test-and-set without the second test: that it was free a moment ago is taken for having it.
#[test]
fn a_lock_that_tests_and_does_not_set_atomically_is_caught() {
    let title = "a lock that looks whether it is free, and then takes it";
    let run = || {
        let taken = AtomicBool::new(false);
        record(3, 60, |log, round| {
            log.record(Op::ACQUIRE, (), || {
                while taken.load(Ordering::Acquire) {
                    thread::yield_now();
                }
                busy(round);
                taken.store(true, Ordering::Release);
            });
            busy(round + 1);
            log.record(Op::RELEASE, (), || taken.store(false, Ordering::Release));
        })
    };
    let fails = |history: &History| verdict(history, Kind::Mutex, false).holds() == Some(false);
    let history = (0..RUNS_MOST).map(|_| run()).find(fails);
    let history = history.unwrap_or_else(|| panic!("{title} was not caught in {RUNS_MOST} runs"));
    let verdict = verdict(&history, Kind::Mutex, true);
    let Verdict::Fails(found) = &verdict else { panic!("{verdict:?}") };
    assert!((1..=10).contains(&found.operations.len()), "{found:?}");
    if let Some(folder) = std::env::var_os("MILLSTREAM_PICTURES").map(PathBuf::from) {
        fs::write(folder.join("test-and-no-set.svg"), Timeline::new(title, &history, &verdict).svg()).unwrap();
    }
}
