//! Stages whose units run on fibers. They behave like stages on threads.

#[path = "support/time.rs"]
mod time;
#[path = "../../ring/tests/support/watchdog.rs"]
mod watchdog;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use millstream_fiber::{JoinError, current, sleep};
use millstream_flow::{
    AfterFailure, Batch, BuildError, Cause, Failure, Flow, FlowBuilder, Inlet, MAX_FIBERS, Need, Retry, SetError,
    select,
};
use millstream_verify_random::{Random, seed};
use time::ms;
use watchdog::in_time;

/// Waits until the condition is true, for at most two minutes.
fn eventually(holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(120), "the condition never became true");
        std::thread::sleep(ms(1));
    }
}

fn patient(units: u64) -> (FlowBuilder<u64>, Inlet<u64>) {
    let mut flow = Flow::builder::<u64>("patient");
    flow.inflight(units);
    let inlet = flow.inlet("wait");
    (flow, inlet)
}

/// Counts the units that run a section of code at once, and keeps the maximum.
#[derive(Default)]
struct Gauge {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Gauge {
    fn inside<T>(&self, work: impl FnOnce() -> T) -> T {
        self.most.fetch_max(self.now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        let result = work();
        self.now.fetch_sub(1, Ordering::SeqCst);
        result
    }
}

#[test]
fn units_wait_at_once_up_to_the_ceiling_and_each_on_a_fiber() {
    in_time(|| {
        let (mut flow, wait) = patient(1000);
        let gauge = Arc::new(Gauge::default());
        let (inside, done) = (gauge.clone(), flow.retire());
        flow.stage(wait, move |n: &mut u64, _| {
            assert_eq!(current().name(), Some("wait"));
            inside.inside(|| sleep(ms(2)));
            Ok(*n)
        })
        .fibers(20)
        .to(done);
        let report = flow.build(wait).unwrap().run(0..400);
        assert_eq!((report.retired, report.dead_lettered), (400, 0));
        let most = gauge.most.load(Ordering::SeqCst);
        assert!((10..=20).contains(&most), "{most} at once");
    });
}

#[test]
fn the_report_shows_the_deepest_stack_of_a_stage_on_fibers() {
    in_time(|| {
        let (mut flow, deep) = patient(100);
        let (plain, done) = (flow.inlet::<u64>("plain"), flow.retire());
        flow.stage(deep, |n: &mut u64, _| {
            std::hint::black_box([1_u8; 20 << 10]);
            Ok(*n)
        })
        .fibers(4)
        .to(plain);
        flow.stage(plain, |n: &mut u64, _| Ok(*n)).to(done);
        let report = flow.build(deep).unwrap().run(0..100);
        let stacks = report.stages[0].stacks.unwrap();
        assert!((20 << 10..=stacks.stack_bytes).contains(&stacks.deepest_bytes), "{stacks:?}");
        assert_eq!(report.stages[1].stacks, None, "the stage does not run on fibers");
        assert_eq!(report.refused_fibers, 0);
    });
}

#[test]
fn a_panic_is_the_failure_of_one_unit_and_a_failure_is_retried() {
    in_time(|| {
        let (mut flow, wait) = patient(100);
        let done = flow.retire();
        flow.stage(wait, |n: &mut u64, cx| {
            sleep(ms(1));
            match *n % 5 {
                0 => panic!("unit {n} panics"),
                1 if cx.attempt() == 1 => Err(Failure::msg("not yet")),
                2 => Err(Failure::permanent("never")),
                _ => Ok(*n),
            }
        })
        .fibers(50)
        .retry(Retry::times(1).backoff(ms(1)..ms(2)))
        .to(done);
        let report = flow.build(wait).unwrap().run(0..100);
        assert_eq!((report.retired, report.dead_lettered), (60, 40));
        let panics = report.dead_letters.iter().filter(|letter| letter.cause == Cause::Panic).count();
        assert_eq!(panics, 20);
    });
}

#[test]
fn a_time_limit_fails_the_unit_that_slept_too_long() {
    in_time(|| {
        let (mut flow, wait) = patient(100);
        let done = flow.retire();
        flow.stage(wait, |n: &mut u64, _| {
            sleep(ms(if *n == 3 { 300 } else { 1 }));
            Ok(*n)
        })
        .fibers(10)
        .timeout(ms(100))
        .to(done);
        let report = flow.build(wait).unwrap().run(0..10);
        assert_eq!((report.retired, report.dead_lettered), (9, 1));
        assert_eq!((report.dead_letters[0].cause, report.dead_letters[0].unit), (Cause::Timeout, 3));
    });
}

#[test]
fn a_drop_and_a_stop_let_sleeping_units_finish() {
    in_time(|| {
        for stop in [false, true] {
            let (mut flow, wait) = patient(100);
            let finished = Arc::new(AtomicUsize::new(0));
            let (count, done) = (finished.clone(), flow.retire());
            flow.stage(wait, move |n: &mut u64, _| {
                sleep(ms(20));
                count.fetch_add(1, Ordering::SeqCst);
                Ok(*n)
            })
            .fibers(40)
            .to(done);
            let service = flow.build(wait).unwrap().start();
            let tickets: Vec<_> = (0..40).map(|n| service.submit(n).unwrap()).collect();
            if stop {
                service.control().stop();
            }
            drop(service);
            assert_eq!(finished.load(Ordering::SeqCst), 40);
            assert!(tickets.into_iter().all(|ticket| ticket.wait().is_ok()));
        }
    });
}

#[test]
fn an_abandoned_flow_unwinds_the_fibers_that_wait() {
    struct Unwound(Arc<AtomicUsize>);
    impl Drop for Unwound {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    in_time(|| {
        let (mut flow, wait) = patient(100);
        let (inside, unwound) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (entered, guards, done) = (inside.clone(), unwound.clone(), flow.retire());
        flow.stage(wait, move |n: &mut u64, _| {
            let _guard = Unwound(guards.clone());
            entered.fetch_add(1, Ordering::SeqCst);
            sleep(Duration::from_secs(3600));
            Ok(*n)
        })
        .fibers(30)
        .to(done);
        let service = flow.build(wait).unwrap().start();
        let tickets: Vec<_> = (0..50).map(|n| service.submit(n).unwrap()).collect();
        eventually(|| inside.load(Ordering::SeqCst) == 30);
        service.control().abandon();
        let report = service.drain();
        assert_eq!((report.retired, report.left), (0, 50));
        assert_eq!(unwound.load(Ordering::SeqCst), 30, "the destructors ran before the drain returned");
        assert!(tickets.into_iter().all(|ticket| ticket.wait().is_err()));
    });
}

#[test]
fn a_unit_that_never_waits_again_is_left_behind_by_an_abandoned_flow() {
    in_time(|| {
        let (mut flow, wait) = patient(10);
        let (free, inside) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (freed, entered, done) = (free.clone(), inside.clone(), flow.retire());
        flow.stage(wait, move |n: &mut u64, _| {
            entered.store(true, Ordering::SeqCst);
            while !freed.load(Ordering::SeqCst) {
                std::thread::sleep(ms(1));
            }
            Ok(*n)
        })
        .fibers(3)
        .to(done);
        let service = flow.build(wait).unwrap().start();
        let ticket = service.submit(1).unwrap();
        eventually(|| inside.load(Ordering::SeqCst));
        service.control().abandon();
        assert_eq!(service.drain().left, 1);
        free.store(true, Ordering::SeqCst);
        // The result of a flow's last stage is delivered even after the drain.
        assert_eq!(ticket.wait().unwrap(), 1);
    });
}

/// Never inlined, so that the call has its own frame in every build.
#[inline(never)]
fn blocks_its_thread(gate: &Mutex<Receiver<()>>) {
    let _ = gate.lock().unwrap().recv();
    std::hint::black_box(gate);
}

#[test]
fn code_that_blocks_its_thread_is_reported_and_the_other_thread_goes_on() {
    in_time(|| {
        let (mut flow, wait) = patient(100);
        flow.fiber_threads(2);
        let (open, gate) = channel::<()>();
        let (gate, done) = (Mutex::new(gate), flow.retire());
        flow.stage(wait, move |n: &mut u64, _| {
            if *n == 0 {
                blocks_its_thread(&gate);
            } else {
                sleep(ms(1));
            }
            Ok(*n)
        })
        .fibers(50)
        .to(done);
        let service = flow.build(wait).unwrap().start();
        let control = service.control();
        let blocked = service.submit(0).unwrap();
        eventually(|| control.fibers().trouble.stalls > 0);
        let trouble = control.fibers().trouble;
        let stall = trouble.latest_stall.unwrap();
        assert!(stall.contains("fiber `wait` (unit 0) has kept"), "{stall}");
        // A build without debug information names only the function. A build with debug information names the line.
        let names = ["blocks_its_thread", "tests/fibers.rs"];
        let is_named = trouble.stalled_at.iter().any(|frame| names.iter().any(|name| frame.contains(name)));
        assert!(is_named || stall.contains("did not answer"), "{stall} {:?}", trouble.stalled_at);
        for n in 1..50 {
            assert_eq!(service.submit(n).unwrap().wait().unwrap(), n);
        }
        drop(open);
        assert_eq!(blocked.wait().unwrap(), 0);
        assert_eq!(service.drain().retired, 50);
    });
}

#[test]
fn the_dump_names_stage_unit_wait_and_stack() {
    in_time(|| {
        let (mut flow, wait) = patient(100);
        let done = flow.retire();
        flow.stage(wait, |n: &mut u64, _| {
            sleep(ms(300));
            Ok(*n)
        })
        .fibers(20)
        .to(done);
        let service = flow.build(wait).unwrap().start();
        let control = service.control();
        assert_eq!(control.fibers().to_string(), "0 fibers");
        let tickets: Vec<_> = (0..20).map(|n| service.submit(n).unwrap()).collect();
        eventually(|| control.fibers().groups.iter().any(|group| group.fibers == 20));
        let fibers = control.fibers();
        let group = &fibers.groups[0];
        assert_eq!((group.stage.as_str(), group.doing.as_str(), group.units.len()), ("wait", "sleeping", 5));
        assert!(group.at.as_ref().unwrap().contains("tests/fibers.rs:"), "{group:?}");
        assert!(group.deepest_bytes > 0 && group.deepest_bytes <= fibers.stack_bytes, "{fibers:?}");
        let text = fibers.to_string();
        assert!(text.contains("20 × `wait` sleeping at ") && text.contains(", units "), "{text}");
        tickets.into_iter().for_each(|ticket| assert!(ticket.wait().is_ok()));
        service.drain();
        assert_eq!(control.fibers().groups, []);
    });
}

#[test]
fn a_changed_ceiling_applies_from_then_on() {
    in_time(|| {
        let (mut flow, wait) = patient(2000);
        let gauge = Arc::new(Gauge::default());
        let (inside, done) = (gauge.clone(), flow.retire());
        flow.stage(wait, move |n: &mut u64, _| {
            inside.inside(|| sleep(ms(5)));
            Ok(*n)
        })
        .fibers(4)
        .to(done);
        let service = flow.build(wait).unwrap().start();
        let control = service.control();
        let tickets: Vec<_> = (0..1500).map(|n| service.submit(n).unwrap()).collect();
        eventually(|| gauge.now.load(Ordering::SeqCst) == 4);
        control.set_workers("wait", 0..=100).unwrap();
        eventually(|| gauge.now.load(Ordering::SeqCst) >= 90);
        control.set_workers("wait", 0..=2).unwrap();
        eventually(|| gauge.now.load(Ordering::SeqCst) <= 2);
        assert!(matches!(control.set_workers("wait", 0..=MAX_FIBERS + 1), Err(SetError::BadValue { .. })));
        control.set_workers("wait", 0..=MAX_FIBERS).unwrap();
        tickets.into_iter().for_each(|ticket| assert!(ticket.wait().is_ok()));
        assert_eq!(service.drain().retired, 1500);
    });
}

#[test]
fn invalid_numbers_are_refused_by_the_build() {
    let error = |fibers: usize, stack: Option<usize>| {
        let (mut flow, wait) = patient(10);
        let done = flow.retire();
        let stage = flow.stage(wait, |n: &mut u64, _| Ok(*n)).fibers(fibers);
        match stack {
            Some(bytes) => stage.stack(bytes).to(done),
            None => stage.to(done),
        }
        flow.build(wait).err()
    };
    let refused = |ceiling| BuildError::Workers { stage: "wait".into(), floor: 0, ceiling, most: MAX_FIBERS };
    assert_eq!(error(0, None), Some(refused(0)));
    assert_eq!(error(MAX_FIBERS + 1, None), Some(refused(MAX_FIBERS + 1)));
    assert_eq!(error(MAX_FIBERS, Some(1 << 30)), None);
    for bytes in [0, (16 << 10) - 1, (1 << 30) + 1, usize::MAX] {
        assert!(matches!(error(1, Some(bytes)), Some(BuildError::Stack { .. })), "{bytes}");
    }
    let (mut flow, wait) = patient(10);
    let done = flow.retire();
    flow.stage(wait, |n: &mut u64, _| Ok(*n)).blocking().stack(1 << 20).to(done);
    assert_eq!(flow.build(wait).err(), Some(BuildError::StackWithoutFibers { stage: "wait".into() }));
    for (threads, refused) in [(0, "zero threads"), (5000, "5000 threads for fibers")] {
        let (mut flow, wait) = patient(10);
        let done = flow.retire();
        flow.fiber_threads(threads).stage(wait, |n: &mut u64, _| Ok(*n)).to(done);
        let error = flow.build(wait).err().unwrap().to_string();
        assert!(error.contains(refused), "{error}");
    }
}

#[test]
fn a_unit_may_spawn_fibers_and_join_them() {
    in_time(|| {
        let (mut flow, wait) = patient(10);
        let done = flow.retire();
        flow.stage(wait, |n: &mut u64, _| {
            let parts = [1, 2, 3].map(|k| millstream_fiber::spawn(move || sleep(ms(k))));
            let ended: Result<Vec<()>, JoinError> = parts.into_iter().map(|part| part.join()).collect();
            ended.map_err(|error| Failure::msg(error.to_string()))?;
            Ok(*n)
        })
        .fibers(5)
        .batch(Batch::of(2))
        .to(done);
        assert_eq!(flow.build(wait).unwrap().run(0..20).retired, 20);
    });
}

/// Fiber, blocking and plain stages in one flow, with failures, panics, tokens that are held across stages, a loop, and
/// ceilings that keep changing.
fn mixed(seed: u64, units: u64) {
    let mut random = Random::new(seed);
    let mut flow = Flow::builder::<u64>(format!("mixed {seed}"));
    flow.inflight(1 + random.below(300))
        .workers(1 + random.below(3) as usize)
        .fiber_threads(1 + random.below(3) as usize);
    let (retired, letters) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
    let (taken, lost) = (retired.clone(), letters.clone());
    flow.on_retire(move |unit| taken.lock().unwrap().push(unit));
    flow.on_dead_letter(move |letter| lost.lock().unwrap().push(*letter.input.unwrap().downcast::<u64>().unwrap()));
    let held = flow.tokens("held", 1 + random.below(40));
    let narrow = flow.tokens("narrow", 1 + random.below(8));
    let [plain, fiber, blocking, again] = ["plain", "fiber", "blocking", "again"].map(|name| flow.inlet::<u64>(name));
    let done = flow.retire();
    let fate = move |unit: u64, stage: u64, attempt: u32| -> Result<(), Failure> {
        let mut random = Random::new(seed ^ unit.rotate_left(24) ^ (stage << 8) ^ u64::from(attempt));
        let pause = Duration::from_micros(random.below(400));
        match (random.below(40), stage) {
            (0, _) => panic!("stage {stage} panics on unit {unit}"),
            (1..3, _) => Err(Failure::msg("unlucky")),
            (3, _) => Err(Failure::permanent("hopeless")),
            // `sleep` suspends a fiber and blocks a thread.
            (4..20, 1..) => {
                sleep(pause);
                Ok(())
            }
            (20..22, 1) => {
                std::thread::sleep(pause);
                Ok(())
            }
            _ => Ok(()),
        }
    };
    let retry = |times: u64| Retry::times(times as u32).backoff(ms(1)..ms(2));
    flow.update(plain, move |unit, cx| fate(*unit, 0, cx.attempt()))
        .need(Need::tokens(held, 1).until(blocking))
        .retry(retry(random.below(3)))
        .to(fiber);
    flow.update(fiber, move |unit, cx| fate(*unit, 1, cx.attempt()))
        .need(Need::tokens(narrow, 1))
        .batch(Batch::of(1 + random.below(4) as usize))
        .retry(retry(random.below(3)))
        .fibers(1 + random.below(100) as usize)
        .to(blocking);
    flow.update(blocking, move |unit, cx| fate(*unit, 2, cx.attempt()))
        .blocking()
        .workers(0..=1 + random.below(6) as usize)
        .queue(1 + random.below(50))
        .to(again);
    let seen = Mutex::new(HashSet::new());
    flow.update(again, move |unit, cx| fate(*unit, 3, cx.attempt()))
        .fibers(1 + random.below(30) as usize)
        .after_failure(if random.below(2) == 0 { AfterFailure::Skip } else { AfterFailure::DeadLetter })
        .to(select(
            move |unit: &u64| usize::from(unit.is_multiple_of(8) && seen.lock().unwrap().insert(*unit)),
            [done.into(), fiber.into()],
        ));
    let flow = flow.build(plain).unwrap();
    let control = flow.control();
    let over = Arc::new(AtomicBool::new(false));
    let steerer = std::thread::spawn({
        let over = over.clone();
        move || {
            while !over.load(Ordering::Relaxed) {
                let most = 1 + random.below(60) as usize;
                control.set_workers(if random.below(2) == 0 { "fiber" } else { "again" }, 0..=most).unwrap();
                control.set_inflight(1 + random.below(300)).unwrap();
                control.set_capacity("narrow", 1 + random.below(8)).unwrap();
                let _ = control.fibers();
                std::thread::sleep(Duration::from_micros(random.below(3000)));
            }
        }
    });
    let report = flow.run(0..units);
    over.store(true, Ordering::Relaxed);
    steerer.join().unwrap();
    let (retired, letters) = (retired.lock().unwrap(), letters.lock().unwrap());
    assert_eq!(report.retired, retired.len() as u64 + report.skipped);
    assert_eq!((report.admitted, report.left), (units, 0));
    assert_eq!(report.dead_lettered, letters.len() as u64);
    assert_eq!(report.retired + report.dead_lettered, units);
    let distinct: HashSet<u64> = retired.iter().chain(letters.iter()).copied().collect();
    assert_eq!(distinct.len(), retired.len() + letters.len(), "no unit ends twice");
}

#[test]
fn fiber_blocking_and_plain_stages_together_lose_nothing() {
    in_time(|| {
        let first = seed();
        for seed in first..first + 4 {
            eprintln!("seed {seed}");
            mixed(seed, 3000);
        }
    });
}
