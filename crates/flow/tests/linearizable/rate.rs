//! A rate: a bucket that gets a token at every tick, with its own specification. The broken twin is a rate that grants
//! in two steps.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use millstream_flow::{Flow, Need, Rate};
use millstream_history::{Builder, Call, History, Op, Operation, Options, Spec, Value, Verdict, check_spec};
use millstream_recorder::{Log, Preemption, Recorder};
use millstream_verify_random::stress;

use crate::{busy, must_be_caught};

/// A bucket of tokens.
///
/// A rate's tokens arrive evenly, and not at the recorded ticks. Over `t` ticks, the rate grants at most
/// `burst + t` tokens. A bucket with room for `burst + 1` tokens allows this, whenever the ticks happen.
struct Bucket {
    room: u64,
    tick: Op,
}

impl Spec for Bucket {
    type State = u64;

    fn initial(&self) -> u64 {
        self.room
    }

    fn step(&self, &tokens: &u64, call: &Call<'_>) -> Option<u64> {
        if call.op == self.tick { Some(self.room.min(tokens + 1)) } else { tokens.checked_sub(1) }
    }
}

/// Adds ticks to the history. Each tick happens between its own time and the time of the next tick.
fn ticking(takes: &History, period: Duration) -> History {
    let mut builder = Builder::new();
    builder.skew(takes.skew());
    let (tick, take) = (builder.op("tick"), builder.op("take"));
    for row in 0..takes.len() {
        builder.push(Operation { op: take, ..takes.get(row) }).unwrap();
    }
    let end = (0..takes.len()).filter_map(|row| takes.returned_at(row)).max().unwrap_or(0);
    for call in (0..=end).step_by(period.as_nanos() as usize) {
        let ticked = Operation::new(takes.processes().len() as u32, tick, Value::NULL);
        builder.push(Operation { call, ret: Some(call + period.as_nanos() as u64), ..ticked }).unwrap();
    }
    builder.finish().unwrap()
}

/// Checks a history with ticks. All histories give operations the same names, so a tick from a fresh builder matches.
fn verdict(history: &History, burst: u64, options: &Options) -> Verdict {
    check_spec(history, &Bucket { room: burst + 1, tick: Builder::new().op("tick") }, options)
}

/// A unit takes its token at some moment after the source makes it and before its stage runs.
#[test]
fn a_rate_is_a_bucket() {
    for (burst, workers) in [(1, 2), (5, 4)] {
        let (recorder, done) = (Recorder::new().room(1), Arc::new(Mutex::new(Vec::new())));
        let mut flow = Flow::builder::<()>("rate");
        flow.workers(workers).inflight(burst + 2);
        let rate = flow.rate("requests", Rate::per_second(2000.0).burst(burst));
        let (work, retired) = (flow.inlet::<Log>("work"), flow.retire());
        let ended = done.clone();
        flow.stage(work, move |log: &mut Log, _| {
            log.end(());
            busy(u64::from(log.process()));
            ended.lock().unwrap().push(());
            Ok(())
        })
        .need(Need::tokens(rate, 1))
        .to(retired);
        let units = 150 * stress() as usize;
        let logs: Vec<Log> = (0..units).map(|_| recorder.log()).collect();
        let _preemption = Preemption::start().unwrap();
        let began = logs.into_iter().map(|mut log| {
            // A quiet period lets the burst build up again.
            if log.process() % 40 == 39 {
                thread::sleep(Duration::from_millis(3));
            }
            log.begin(Op::ACQUIRE, ());
            log
        });
        flow.build(work).unwrap().run(began);
        assert_eq!(done.lock().unwrap().len(), units);
        let options = Options { time: Some(Duration::from_secs(60)), ..Options::default() };
        let history = ticking(&recorder.finish(), Duration::from_micros(500));
        let verdict = verdict(&history, burst, &options);
        assert_eq!(verdict.holds(), Some(true), "burst {burst}: {verdict:?}");
    }
}

/// A worker checks that the next token is there, and then advances the time of the following token.
#[test]
fn a_rate_that_grants_in_two_steps_is_caught() {
    const PERIOD: Duration = Duration::from_micros(200);
    let bucket = |history: &History, options: &Options| verdict(history, 1, options);
    must_be_caught("token-spent-twice", "a rate that first checks and then takes", bucket, || {
        let (began, next) = (Instant::now(), AtomicU64::new(0));
        let recorder = Recorder::new().room(1 << 8);
        thread::scope(|scope| {
            for _ in 0..4 {
                let (next, mut log) = (&next, recorder.log());
                scope.spawn(move || {
                    for unit in 0..10 {
                        log.record(Op::ACQUIRE, (), || {
                            loop {
                                let (now, there) = (began.elapsed().as_nanos() as u64, next.load(Ordering::Acquire));
                                if there <= now {
                                    busy(unit + 1);
                                    return next.store(there.max(now) + PERIOD.as_nanos() as u64, Ordering::Release);
                                }
                                thread::yield_now();
                            }
                        });
                    }
                });
            }
        });
        ticking(&recorder.finish(), PERIOD)
    });
}
