//! Caps and workers that are changed while a flow runs.

mod support;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use millstream_flow::{Batch, Flow, MAX_WORKERS, SetError};
use millstream_sync::reclaim::epoch;
use support::{Gate, in_time, ms};

#[test]
fn concurrent_settings_are_all_kept() {
    let mut flow = Flow::builder("steered");
    let (first, last, done) = (flow.inlet("first"), flow.inlet("last"), flow.retire());
    flow.stage(first, |n: &mut u64, _| Ok(*n)).to(last);
    flow.stage(last, |n: &mut u64, _| Ok(*n)).to(done);
    let service = flow.build(first).unwrap().start();
    let control = service.control();
    for round in 1..300_u64 {
        let (start, workers) = (&Barrier::new(4), round as usize);
        let setters: [&(dyn Fn() + Sync); 4] = [
            &|| control.set_inflight(round).unwrap(),
            &|| control.set_memory(round).unwrap(),
            &|| control.set_workers("first", 0..=workers).unwrap(),
            &|| control.set_workers("last", 1..=workers).unwrap(),
        ];
        thread::scope(|scope| {
            for set in setters {
                scope.spawn(move || {
                    start.wait();
                    set();
                });
            }
        });
        let now = control.snapshot();
        assert_eq!((now.inflight_cap, now.memory_cap), (round, round));
        let bounds = now.stages.iter().map(|stage| (stage.workers_min, stage.workers_max));
        assert!(bounds.eq([(0, round), (1, round)]), "round {round}");
    }
    let _report = service.drain();
}

/// A payload that takes a snapshot of the flow when it is dropped.
struct Onlooker(millstream_flow::Control);

static LOOKED: AtomicBool = AtomicBool::new(false);

impl Drop for Onlooker {
    fn drop(&mut self) {
        let _snapshot = self.0.snapshot();
        LOOKED.store(true, Relaxed);
    }
}

#[test]
fn destructors_run_by_a_setter_may_use_the_flow() {
    let mut flow = Flow::builder("watched");
    let (only, done) = (flow.inlet("only"), flow.retire());
    flow.stage(only, |n: &mut u64, _| Ok(*n)).to(done);
    let control = flow.build(only).unwrap().control();
    let onlooker = Onlooker(control.clone());
    epoch::pin().defer(move || drop(onlooker));
    // The loop replaces settings until the epoch examines a batch of retired values and frees this value.
    let mut units = 1;
    let began = Instant::now();
    while !LOOKED.load(Relaxed) {
        assert!(began.elapsed() < Duration::from_secs(120), "the retired value is never freed");
        units = units % 1000 + 1;
        control.set_inflight(units).unwrap();
    }
}

#[test]
fn shared_workers_come_and_go_while_the_flow_runs() {
    in_time(|| {
        let ends = Gate::default();
        let mut flow = Flow::builder::<()>("workers");
        flow.workers(1);
        let (bound, free, done) = (flow.inlet::<u64>("bound"), flow.inlet::<u64>("free"), flow.retire());
        let gate = ends.clone();
        flow.stage(free, move |_: &mut u64, _| {
            gate.pass();
            Ok(())
        })
        .batch(Batch::of(1))
        .to(done);
        flow.stage(bound, |unit: &mut u64, _| Ok(*unit)).workers(0..=1).to(free);
        let service = flow.build(bound).unwrap().start();
        let control = service.control();
        (0..64).for_each(|unit| service.send(unit).unwrap());
        for workers in [1, 3, 8] {
            control.set_shared_workers(workers).unwrap();
            while control.snapshot().stages[1].running != workers as u64 {
                thread::sleep(ms(1));
            }
        }
        let now = control.snapshot();
        assert_eq!((now.workers, now.stages[0].workers_max, now.stages[1].workers_max), (8, 1, 8));
        control.set_shared_workers(2).unwrap();
        assert_eq!(control.snapshot().stages[1].workers_max, 2);
        for senseless in [0, MAX_WORKERS + 1] {
            assert!(matches!(control.set_shared_workers(senseless), Err(SetError::BadValue { .. })));
        }
        ends.open();
        assert_eq!(service.drain().retired, 64);
    });
}
