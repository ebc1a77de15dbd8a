//! The engine's queues as their units see them, recorded and checked: a resource is a semaphore, a pool an allocator, a
//! stage's queue hands every unit over once. `MILLSTREAM_STRESS=n` makes the runs n times longer.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use millstream_flow::{Flow, Need};
use millstream_history::record::{Log, Recorder};
use millstream_history::{History, Kind, Model, Op, Options, check};

fn stress() -> u64 {
    std::env::var("MILLSTREAM_STRESS").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}

fn assert_holds(history: &History, model: &Model) {
    let options = Options { time: Some(Duration::from_secs(60)), ..Options::default() };
    let verdict = check(history, model, &options).unwrap();
    assert_eq!(verdict.holds(), Some(true), "{model}: {verdict:?}");
}

/// A log for whichever worker runs a stage: logs are lent, because the engine's threads are its own.
#[derive(Clone)]
struct Logs(Arc<Mutex<Vec<Log>>>);

impl Logs {
    fn new(recorder: &Recorder, count: usize) -> Self {
        Logs(Arc::new(Mutex::new((0..count).map(|_| recorder.log()).collect())))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Log) -> T) -> T {
        let mut log = self.0.lock().unwrap().pop().expect("a log for each worker");
        let done = work(&mut log);
        self.0.lock().unwrap().push(log);
        done
    }

    /// Ends all logs.
    fn close(self) {
        self.0.lock().unwrap().clear();
    }
}

/// What a unit does while it has what it needs.
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
        // The token was there before the stage began and goes back after it has ended: what is recorded is less than what is held.
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
        // A mutex's holder is a process, and so is a semaphore's permit nobody's: one token is checked as both.
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
            // It enters the second stage's queue after this.
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
