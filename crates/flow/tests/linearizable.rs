//! The engine's queues as their units see them, recorded and checked: a resource is a semaphore, a pool is an
//! allocator, and a stage's queue delivers every unit exactly once and in order. Broken twins of the queues show that
//! the same checks catch mistakes.
//!
//! `MILLSTREAM_STRESS=n` makes the runs n times longer; `MILLSTREAM_PICTURES=folder` draws the counter-examples in that
//! folder.

#[path = "linearizable/entrance.rs"]
mod entrance;
#[path = "linearizable/keys.rs"]
mod keys;
#[path = "linearizable/rate.rs"]
mod rate;

use std::collections::VecDeque;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use millstream_flow::{Flow, Need};
use millstream_history::timeline::Timeline;
use millstream_history::{History, Kind, Model, Op, Options, Verdict, check};
use millstream_recorder::{Log, Preemption, Recorder};
use millstream_verify_random::stress;

fn assert_holds(history: &History, model: &Model) {
    let options = Options { time: Some(Duration::from_secs(60)), ..Options::default() };
    let verdict = check(history, model, &options).unwrap();
    assert_eq!(verdict.holds(), Some(true), "{model}: {verdict:?}");
}

/// Logs for the workers of a stage. Workers borrow them, because the test does not create the engine's threads. While
/// the logs exist, workers are sometimes stopped in the middle of their work.
#[derive(Clone)]
struct Logs {
    logs: Arc<Mutex<Vec<Log>>>,
    _preemption: Arc<Preemption>,
}

impl Logs {
    fn new(recorder: &Recorder, count: usize) -> Self {
        Logs {
            logs: Arc::new(Mutex::new((0..count).map(|_| recorder.log()).collect())),
            _preemption: Arc::new(Preemption::start().unwrap()),
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Log) -> T) -> T {
        let mut log = self.logs.lock().unwrap().pop().expect("a log for each worker");
        let done = work(&mut log);
        self.logs.lock().unwrap().push(log);
        done
    }

    /// Ends all logs.
    fn close(self) {
        self.logs.lock().unwrap().clear();
    }
}

/// The operation of a unit while it holds its needs.
fn busy(unit: u64) {
    match unit % 16 {
        0 => thread::sleep(Duration::from_micros(50)),
        1..4 => thread::yield_now(),
        _ => (0..unit % 300).for_each(|_| std::hint::spin_loop()),
    }
}

#[test]
fn tokens_are_a_semaphore() {
    for (tokens, workers) in [(1, 2), (2, 4), (3, 8)] {
        let recorder = Recorder::new();
        let logs = Logs::new(&recorder, workers);
        let mut flow = Flow::builder::<()>("tokens");
        flow.workers(workers);
        let slots = flow.tokens("slots", tokens);
        let (work, done) = (flow.inlet::<u64>("work"), flow.retire());
        let inside = logs.clone();
        // The token was taken before the stage began, and is released after it has ended. So the recorded operation is
        // shorter than the time for which the token was held.
        flow.stage(work, move |unit: &mut u64, _| {
            inside.with(|log| {
                log.record(Op::ACQUIRE, (), || ());
                busy(*unit);
                log.record(Op::RELEASE, (), || ());
            });
            Ok(())
        })
        .need(Need::tokens(slots, 1))
        .to(done);
        flow.build(work).unwrap().run(0..300 * stress());
        logs.close();
        // In the model, a mutex has a process as its holder, and a semaphore's permit has no holder. So one token is
        // checked as both.
        let history = recorder.finish();
        assert_eq!(history.len() as u64, 600 * stress());
        assert_holds(&history, &Model::new(Kind::Semaphore).with_capacity(tokens));
        if tokens == 1 {
            assert_holds(&history, &Kind::Mutex.into());
        }
    }
}

#[test]
fn a_pool_is_an_allocator() {
    for (objects, workers) in [(1, 2), (3, 4), (4, 8)] {
        let recorder = Recorder::new();
        let logs = Logs::new(&recorder, workers);
        let mut flow = Flow::builder::<()>("pool");
        flow.workers(workers);
        let pool = flow.pool("numbers", 0..objects);
        let (work, done) = (flow.inlet::<u64>("work"), flow.retire());
        let (inside, numbers) = (logs.clone(), pool.clone());
        flow.stage(work, move |unit: &mut u64, cx| {
            inside.with(|log| {
                let object = log.record_as(Op::ALLOC, (), || cx.object(&numbers), |object| **object);
                busy(*unit);
                log.record(Op::FREE, *object, || drop(object));
            });
            Ok(())
        })
        .need(Need::object(&pool))
        .to(done);
        flow.build(work).unwrap().run(0..2000 * stress());
        logs.close();
        assert_holds(&recorder.finish(), &Kind::Allocator.into());
    }
}

#[test]
fn every_unit_leaves_the_queue_once() {
    for workers in [1, 2, 8] {
        let recorder = Recorder::new();
        let logs = Logs::new(&recorder, workers + 1);
        let mut flow = Flow::builder::<()>("queue");
        flow.workers(workers).inflight(64);
        let (first, second, done) = (flow.inlet::<u64>("first"), flow.inlet::<u64>("second"), flow.retire());
        let (entering, leaving) = (logs.clone(), logs.clone());
        flow.update(first, move |unit: &mut u64, _| {
            let number = *unit;
            // After this, the unit enters the second stage's queue.
            entering.with(|log| log.record(Op::ADD, number, || true));
            busy(number);
            Ok(())
        })
        .to(second);
        flow.stage(second, move |unit: &mut u64, _| {
            leaving.with(|log| log.record(Op::REMOVE, *unit, || true));
            Ok(())
        })
        .to(done);
        flow.build(first).unwrap().run(0..5000 * stress());
        logs.close();
        let history = recorder.finish();
        assert_eq!(history.len() as u64, 10_000 * stress());
        assert_holds(&history, &Kind::Set.into());
    }
}

/// With one worker on each side, a stage's queue is first in, first out, whether or not its units have needs.
#[test]
fn a_stages_queue_is_first_in_first_out() {
    for needs in [false, true] {
        let recorder = Recorder::new();
        let logs = Logs::new(&recorder, 2);
        let mut flow = Flow::builder::<()>("in order");
        flow.workers(4).inflight(64);
        let slots = flow.tokens("slots", 3);
        let (first, second, done) = (flow.inlet::<u64>("first"), flow.inlet::<u64>("second"), flow.retire());
        let (entering, leaving) = (logs.clone(), logs.clone());
        flow.update(first, move |unit: &mut u64, _| {
            let number = *unit;
            busy(number);
            entering.with(|log| log.record(Op::ENQUEUE, number, || ()));
            Ok(())
        })
        .workers(0..=1)
        .to(second);
        let stage = flow.stage(second, move |unit: &mut u64, _| {
            leaving.with(|log| log.record(Op::DEQUEUE, (), || *unit));
            busy(*unit);
            Ok(())
        });
        let stage = if needs { stage.need(Need::tokens(slots, 1)) } else { stage };
        stage.workers(0..=1).to(done);
        flow.build(first).unwrap().run(0..5000 * stress());
        logs.close();
        let history = recorder.finish();
        assert_eq!(history.len() as u64, 10_000 * stress());
        assert_holds(&history, &Kind::Queue.into());
    }
}

/// The maximum number of runs in which a twin may go uncaught.
const MAX_RUNS: u32 = 200;

/// Checks that the twin is caught, and that the counter-example is small.
fn assert_caught(name: &str, title: &str, model: &Model, mut run: impl FnMut() -> History) {
    must_be_caught(name, title, |history, options| check(history, model, options).unwrap(), &mut run);
}

/// Like [`assert_caught`], with a custom specification.
fn must_be_caught(
    name: &str,
    title: &str,
    decide: impl Fn(&History, &Options) -> Verdict,
    mut run: impl FnMut() -> History,
) {
    let verdict = |history: &History, explain| decide(history, &Options { explain, ..Options::default() });
    let fails = |history: &History| verdict(history, false).holds() == Some(false);
    let history = (0..MAX_RUNS).map(|_| run()).find(fails);
    let history = history.unwrap_or_else(|| panic!("{title} was not caught in {MAX_RUNS} runs"));
    let verdict = verdict(&history, true);
    let Verdict::Fails(found) = &verdict else { panic!("{verdict:?}") };
    assert!((1..=10).contains(&found.operations.len()), "{title}: {found:?}");
    if let Some(folder) = std::env::var_os("MILLSTREAM_PICTURES").map(PathBuf::from) {
        fs::write(folder.join(format!("{name}.svg")), Timeline::new(title, &history, &verdict).svg()).unwrap();
    }
}

/// Runs `work` on several workers at once, each with a log.
fn workers(count: u32, work: impl Fn(&mut Log) + Sync) -> History {
    let recorder = Recorder::new().room(1 << 8);
    thread::scope(|scope| {
        for _ in 0..count {
            let (mut log, work) = (recorder.log(), &work);
            scope.spawn(move || work(&mut log));
        }
    });
    recorder.finish()
}

/// A grant in two steps without a mutex around both: a worker checks that a token is left, and then takes one.
#[test]
fn a_grant_in_two_steps_is_caught() {
    let tokens = 1;
    let model = Model::new(Kind::Semaphore).with_capacity(tokens);
    assert_caught("granted-twice", "a grant that first checks and then takes", &model, || {
        let left = AtomicU64::new(tokens);
        workers(3, |log| {
            for unit in 0..60 {
                if left.load(Ordering::Acquire) == 0 {
                    thread::yield_now();
                    continue;
                }
                busy(unit);
                left.fetch_sub(1, Ordering::AcqRel);
                log.record(Op::ACQUIRE, (), || ());
                busy(unit + 1);
                log.record(Op::RELEASE, (), || ());
                left.store(tokens, Ordering::Release);
            }
        })
    });
}

/// A worker reads the queue's head under one lock and removes it under another. So two workers can run the same unit,
/// and no worker runs the next one.
#[test]
fn a_unit_taken_with_two_locks_is_caught() {
    assert_caught("run-twice", "a unit that is removed from its queue under two locks", &Kind::Queue.into(), || {
        let queue = Mutex::new((0..200_u64).collect::<VecDeque<_>>());
        let recorder = Recorder::new().room(1 << 8);
        let mut entering = recorder.log();
        queue.lock().unwrap().iter().for_each(|&unit| entering.record(Op::ENQUEUE, unit, || ()));
        drop(entering);
        thread::scope(|scope| {
            for _ in 0..2 {
                let (queue, mut log) = (&queue, recorder.log());
                scope.spawn(move || {
                    loop {
                        let Some(head) = queue.lock().unwrap().front().copied() else { return };
                        busy(head + 1);
                        queue.lock().unwrap().pop_front();
                        log.record(Op::DEQUEUE, (), || head);
                    }
                });
            }
        });
        recorder.finish()
    });
}
