//! Keys, lines and bounded queues: a flow that passes the checks cannot hang, whatever its units need.

mod support;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use millstream_flow::{
    Batch, BuildError, Control, Either, Failure, Flow, Inlet, Need, Rate, Report, Resource, Retry, Snapshot, select,
};
use millstream_verify_random::cases;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use support::{Gate, in_time, ms};

#[test]
fn each_unit_takes_exactly_what_it_needs() {
    in_time(|| {
        let mut flow = Flow::builder::<()>("amounts");
        flow.inflight(1).workers(1);
        let token = flow.tokens("token", 5);
        let (first, second, done) = (flow.inlet::<u64>("first"), flow.inlet::<u64>("second"), flow.retire());
        flow.stage(first, |n: &mut u64, _| Ok(*n)).to(second);
        let control: Arc<OnceLock<Control>> = Arc::default();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (look, note) = (control.clone(), seen.clone());
        flow.stage(second, move |n: &mut u64, _| {
            let in_use = look.get().expect("set before the run").snapshot().resources[0].in_use;
            note.lock().unwrap().push((*n, in_use));
            Ok(())
        })
        .need(Need::tokens(token, 1).amount_with(|n| *n))
        .to(done);
        let flow = flow.build(first).unwrap();
        let _ = control.set(flow.control());
        flow.run([3, 0, 0, 2, 0]);
        assert_eq!(*seen.lock().unwrap(), [(3, 3), (0, 0), (0, 0), (2, 2), (0, 0)]);
    });
}

#[test]
fn units_with_two_new_keys_each_finish_under_a_bound_of_two_or_three() {
    for max_keys in [2, 3] {
        let report = in_time(move || {
            let mut flow = Flow::builder::<()>("pairs");
            flow.inflight(10).workers(4);
            let host = flow.keyed_tokens("host", 1);
            flow.max_keys(host, max_keys);
            let (copy, done) = (flow.inlet::<u32>("copy"), flow.retire());
            flow.stage(copy, |_: &mut u32, _| {
                thread::sleep(ms(1));
                Ok(())
            })
            .batch(Batch::of(1))
            .need(Need::keyed(host, |n: &u32| format!("from {n}")))
            .need(Need::keyed(host, |n: &u32| format!("to {}", n / 2)))
            .to(done);
            flow.build(copy).unwrap().run(0..40)
        });
        assert_eq!((report.retired, report.resources[0].peak_in_use), (40, 1));
    }
}

#[test]
fn no_newcomer_makes_a_key_before_a_unit_that_waits_for_two_keys() {
    in_time(|| {
        let ran = Arc::new(Mutex::new(Vec::new()));
        let held = Gate::default();
        let mut flow = Flow::builder::<()>("places");
        flow.inflight(100).workers(4);
        // A unit that needs the same key twice takes both of its tokens.
        let host = flow.keyed_tokens("host", 2);
        flow.max_keys(host, 2);
        let (visit, done) = (flow.inlet::<u64>("visit"), flow.retire());
        let (log, gate) = (ran.clone(), held.clone());
        flow.stage(visit, move |n: &mut u64, _| {
            if *n == 0 {
                gate.pass();
            }
            log.lock().unwrap().push(*n);
            Ok(())
        })
        .batch(Batch::of(1))
        .need(Need::keyed(host, |n: &u64| n.to_string()))
        .need(Need::keyed(host, |n: &u64| if *n == 1 { "another".into() } else { n.to_string() }))
        .to(done);
        let service = flow.build(visit).unwrap().start();
        let control = service.control();
        let in_line = || control.snapshot().stages[0].waiting_for.iter().map(|waits| waits.units).sum::<u64>();
        let first = service.submit(0).unwrap();
        while control.snapshot().stages[0].running == 0 {
            thread::sleep(ms(1));
        }
        let two = service.submit(1).unwrap();
        let newcomers: Vec<_> = (2..20).map(|n| service.submit(n).unwrap()).collect();
        while in_line() < 19 {
            assert!(ran.lock().unwrap().is_empty(), "a newcomer ran");
            thread::sleep(ms(1));
        }
        held.open();
        first.wait().unwrap();
        two.wait().unwrap();
        newcomers.into_iter().for_each(|ticket| ticket.wait().unwrap());
        assert_eq!(ran.lock().unwrap()[..2], [0, 1]);
    });
}

#[test]
fn more_keys_for_one_unit_than_may_exist_are_refused() {
    let mut flow = Flow::builder::<()>("pairs");
    let host = flow.keyed_tokens("host", 1);
    flow.max_keys(host, 1);
    let (copy, done) = (flow.inlet::<u32>("copy"), flow.retire());
    flow.stage(copy, |_: &mut u32, _| Ok(()))
        .need(Need::keyed(host, |n: &u32| format!("from {n}")))
        .need(Need::keyed(host, |n: &u32| format!("to {n}")))
        .to(done);
    let error = flow.build(copy).unwrap_err();
    assert_eq!(error, BuildError::TooFewKeys { stage: "copy".into(), resource: "host".into(), keys: 2, max_keys: 1 });
}

#[test]
fn a_unit_waiting_for_a_token_keeps_no_key_from_its_holder() {
    let report = in_time(|| {
        let mut flow = Flow::builder::<()>("slots");
        flow.inflight(10).workers(2);
        let token = flow.tokens("token", 1);
        let host = flow.keyed_tokens("host", 1);
        flow.max_keys(host, 1);
        let (first, second, done) = (flow.inlet::<u32>("first"), flow.inlet::<u32>("second"), flow.retire());
        flow.stage(first, |n: &mut u32, _| {
            thread::sleep(ms(2));
            Ok(*n)
        })
        .batch(Batch::of(1))
        .need(Need::tokens(token, 1).until(second))
        .need(Need::keyed(host, |n: &u32| format!("a{n}")))
        .to(second);
        flow.stage(second, |_: &mut u32, _| {
            thread::sleep(ms(2));
            Ok(())
        })
        .batch(Batch::of(1))
        .need(Need::keyed(host, |n: &u32| format!("b{n}")))
        .to(done);
        flow.build(first).unwrap().run(0..20)
    });
    assert_eq!(report.retired, 20);
}

#[test]
fn the_key_of_a_rate_is_forgotten_for_a_unit_that_needs_another() {
    for units in [["a", "b", "a"], ["a", "a", "b"], ["a", "b", "c"]] {
        let report = in_time(move || {
            let mut flow = Flow::builder::<()>("one key");
            flow.inflight(10).workers(2);
            let host = flow.keyed_rate("host", Rate::per_second(20.0));
            flow.max_keys(host, 1);
            let (get, done) = (flow.inlet::<&str>("get"), flow.retire());
            flow.stage(get, |_: &mut &str, _| Ok(()))
                .batch(Batch::of(1))
                .need(Need::keyed(host, |name: &&str| (*name).to_string()))
                .to(done);
            flow.build(get).unwrap().run(units)
        });
        assert_eq!(report.retired, 3, "{units:?}");
        assert!(report.wall_s >= 0.095, "{units:?} took {} s at 20 a second", report.wall_s);
    }
}

/// This test measures the whole process, so it runs in its own process.
#[cfg(target_os = "linux")]
#[test]
fn units_of_one_key_of_a_rate_leave_nothing_behind() {
    const NAME: &str = "units_of_one_key_of_a_rate_leave_nothing_behind";
    const ALONE: &str = "MILLSTREAM_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let this = std::env::current_exe().unwrap();
        let arguments = ["--exact", NAME, "--nocapture", "--test-threads=1"];
        let output =
            in_time(move || std::process::Command::new(this).args(arguments).env(ALONE, "1").output().unwrap());
        let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let resident_pages = || -> u64 {
        let numbers = std::fs::read_to_string("/proc/self/statm").unwrap();
        numbers.split(' ').nth(1).unwrap().parse().unwrap()
    };
    let mut flow = Flow::builder::<()>("one key");
    flow.inflight(64).workers(1);
    let host = flow.keyed_rate("host", Rate::per_second(1e8).burst(1000));
    let (get, done) = (flow.inlet::<u32>("get"), flow.retire());
    flow.stage(get, |_: &mut u32, _| Ok(())).need(Need::keyed(host, |_: &u32| "k".to_string())).to(done);
    let service = flow.build(get).unwrap().start();
    service.send_all(0..100_000).unwrap();
    let before = resident_pages();
    service.send_all(0..500_000).unwrap();
    let grown_bytes = resident_pages().saturating_sub(before) * 4096;
    // A list of the units would take at least four bytes for each unit.
    assert!(grown_bytes < 1_000_000, "{grown_bytes} bytes more after 500 000 units");
    assert_eq!(service.drain().retired, 600_000);
}

#[test]
fn a_raised_rate_serves_waiting_units_at_once() {
    in_time(|| {
        let mut flow = Flow::builder::<()>("raised");
        flow.inflight(10).workers(2);
        let api = flow.rate("api", Rate::per_second(0.001));
        let (get, done) = (flow.inlet::<u32>("get"), flow.retire());
        flow.stage(get, |_: &mut u32, _| Ok(())).batch(Batch::of(1)).need(Need::tokens(api, 1)).to(done);
        let service = flow.build(get).unwrap().start();
        let (first, second) = (service.submit(1).unwrap(), service.submit(2).unwrap());
        first.wait().unwrap();
        let Err(second) = second.wait_until(Instant::now() + ms(20)) else { panic!("there was no second token") };
        service.control().set_rate("api", Rate::per_second(1000.0)).unwrap();
        second.wait().unwrap();
    });
}

#[test]
fn a_busy_floor_leaves_the_shared_workers_to_other_stages() {
    in_time(|| {
        let over = Gate::default();
        let mut flow = Flow::builder::<()>("floor");
        flow.workers(1).inflight(10);
        let (enter, spin, quick, done) =
            (flow.inlet::<u64>("enter"), flow.inlet::<u64>("spin"), flow.inlet::<u64>("quick"), flow.retire());
        flow.update(enter, |_, _| Ok(())).to(select(|n| *n as usize, [spin.into(), quick.into()]));
        let end = over.clone();
        flow.stage(spin, move |n: &mut u64, _| {
            thread::sleep(ms(2));
            Ok(if end.is_open() { Either::Right(()) } else { Either::Left(*n) })
        })
        .workers(1..=1)
        .to((spin, done));
        flow.stage(quick, |_: &mut u64, _| Ok(())).to(done);
        let service = flow.build(enter).unwrap().start();
        service.send(0).unwrap();
        service.send(0).unwrap();
        while service.control().snapshot().stages[1].units == 0 {
            thread::sleep(ms(1));
        }
        service.submit(1).unwrap().wait().unwrap();
        over.open();
        assert_eq!(service.drain().retired, 3);
    });
}

#[test]
fn a_unit_that_goes_elsewhere_releases_its_slot_in_the_queue() {
    in_time(|| {
        let gate = Gate::default();
        let mut flow = Flow::builder::<()>("branch");
        flow.workers(2).inflight(20);
        let (choose, quick, slow, done) =
            (flow.inlet::<u64>("choose"), flow.inlet::<u64>("quick"), flow.inlet::<u64>("slow"), flow.retire());
        flow.update(choose, |_, _| Ok(()))
            .batch(Batch::of(1))
            .to(select(|n| (*n % 2) as usize, [quick.into(), slow.into()]));
        flow.stage(quick, |_: &mut u64, _| Ok(())).queue(2).to(done);
        let held = gate.clone();
        flow.stage(slow, move |_: &mut u64, _| {
            held.pass();
            Ok(())
        })
        .blocking()
        .batch(Batch::of(1))
        .to(done);
        let service = flow.build(choose).unwrap().start();
        for n in [1, 3, 5, 7] {
            service.send(n).unwrap();
        }
        // All four units are in the slow branch.
        while service.control().snapshot().stages[0].units < 4 {
            thread::sleep(ms(1));
        }
        service.submit(2).unwrap().wait().unwrap();
        gate.open();
        assert_eq!(service.drain().retired, 5);
    });
}

#[test]
fn a_loop_before_a_bounded_queue_is_accepted_and_finishes() {
    let report = in_time(|| {
        let mut flow = Flow::builder::<()>("pages");
        let (page, row, done) = (flow.inlet::<u64>("page"), flow.inlet::<u64>("row"), flow.retire());
        flow.stage(page, |n: &mut u64, _| Ok(if *n > 0 { Either::Left(*n - 1) } else { Either::Right(0) }))
            .to((page, row));
        flow.stage(row, |_: &mut u64, _| Ok(())).queue(2).to(done);
        flow.build(page).unwrap().run(0..50)
    });
    assert_eq!(report.retired, 50);
    assert_eq!(report.stages[0].units, (0..50).map(|n| n + 1).sum::<u64>());
    assert!(report.resources.iter().all(|queue| queue.peak_in_use <= queue.capacity), "{:?}", report.resources);
}

#[test]
fn a_direct_loop_to_a_bounded_entry_queue_is_refused() {
    let mut flow = Flow::builder::<()>("pages");
    let (page, done) = (flow.inlet::<u64>("page"), flow.retire());
    flow.stage(page, |n: &mut u64, _| Ok(if *n > 0 { Either::Left(*n - 1) } else { Either::Right(()) }))
        .queue(2)
        .to((page, done));
    // Two units that hold the two slots would each wait for a second slot.
    assert!(matches!(flow.build(page), Err(BuildError::NeedsCycle(_))));
}

#[test]
fn units_without_a_seat_in_their_stage_hold_no_tokens() {
    in_time(|| {
        let gate = Gate::default();
        let mut flow = Flow::builder::<()>("seats");
        flow.inflight(100).workers(8);
        let net = flow.tokens("net", 2);
        let (enter, slow, quick, done) =
            (flow.inlet::<u64>("enter"), flow.inlet::<u64>("slow"), flow.inlet::<u64>("quick"), flow.retire());
        flow.update(enter, |_, _| Ok(())).to(select(|n| *n as usize, [slow.into(), quick.into()]));
        let held = gate.clone();
        flow.stage(slow, move |_: &mut u64, _| {
            held.pass();
            Ok(())
        })
        .workers(0..=1)
        .batch(Batch::of(1))
        .need(Need::tokens(net, 1))
        .to(done);
        flow.stage(quick, |_: &mut u64, _| Ok(())).batch(Batch::of(1)).need(Need::tokens(net, 1)).to(done);
        let service = flow.build(enter).unwrap().start();
        let control = service.control();
        control.set_capacity("net", 0).unwrap();
        for _ in 0..30 {
            service.send(0).unwrap();
        }
        while control.snapshot().stages[0].units < 30 {
            thread::sleep(ms(1));
        }
        let last = service.submit(1).unwrap();
        while control.snapshot().stages[0].units < 31 {
            thread::sleep(ms(1));
        }
        // Thirty units are in line before the stage, but only one of them can run.
        control.set_capacity("net", 2).unwrap();
        last.wait().unwrap();
        gate.open();
        let report = service.drain();
        assert_eq!((report.retired, report.stages[1].units), (31, 30));
    });
}

// ---- random flows ---------------------------------------------------------------------------------------

/// The need of one stage of a random flow for one resource.
#[derive(Debug, Clone)]
enum Needed {
    Tokens { which: usize, amount: u64, until: Option<usize>, by_unit: bool },
    Permit { which: usize },
    Keys { pair: bool, until: Option<usize> },
    Rate,
}

#[derive(Debug, Clone)]
struct StagePlan {
    needs: Vec<Needed>,
    queue: Option<u64>,
    batch: Option<usize>,
    workers: Option<(usize, usize)>,
    blocking: bool,
    /// A later stage, the exit, or an earlier stage. Some units go there instead of to the next stage.
    also: Option<usize>,
    retries: u32,
}

#[derive(Debug, Clone)]
struct FlowPlan {
    inflight: u64,
    workers: usize,
    tokens: [u64; 2],
    max_keys: usize,
    memory: Option<u64>,
    stages: Vec<StagePlan>,
    units: u64,
}

fn needed() -> impl Strategy<Value = Needed> {
    let until = || prop::option::weighted(0.4, 0..5usize);
    prop_oneof![
        4 => (0..2usize, 1..5u64, until(), any::<bool>())
            .prop_map(|(which, amount, until, by_unit)| Needed::Tokens { which, amount, until, by_unit }),
        1 => (0..2usize).prop_map(|which| Needed::Permit { which }),
        3 => (any::<bool>(), until()).prop_map(|(pair, until)| Needed::Keys { pair, until }),
        1 => Just(Needed::Rate),
    ]
}

fn stage_plan() -> impl Strategy<Value = StagePlan> {
    (
        prop::collection::vec(needed(), 0..4),
        prop::option::weighted(0.3, 1..4u64),
        prop::option::of(1..5usize),
        prop::option::weighted(0.4, (0..2usize, 1..4usize)),
        prop::bool::weighted(0.2),
        prop::option::weighted(0.4, 0..6usize),
        0..3u32,
    )
        .prop_map(|(needs, queue, batch, workers, blocking, also, retries)| StagePlan {
            needs,
            queue,
            batch,
            workers,
            blocking,
            also,
            retries,
        })
}

fn flow_plan() -> impl Strategy<Value = FlowPlan> {
    (
        1..13u64,
        1..4usize,
        [1..5u64, 1..5u64],
        2..5usize,
        prop::option::weighted(0.3, 10..100u64),
        prop::collection::vec(stage_plan(), 2..6),
        1..60u64,
    )
        .prop_map(|(inflight, workers, tokens, max_keys, memory, stages, units)| FlowPlan {
            inflight,
            workers,
            tokens,
            max_keys,
            memory,
            stages,
            units,
        })
}

/// A unit, with the number of stages that it has passed.
#[derive(Debug, Clone, Hash)]
struct Walker {
    n: u64,
    steps: u64,
}

impl Walker {
    /// A pseudo-random number that is the same in every run.
    fn chance(&self, salt: &str, below: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self, salt).hash(&mut hasher);
        hasher.finish() % below
    }
}

/// The needs of a stage, at most one for each resource. Several needs of one resource would be granted as one amount,
/// which might exceed the capacity.
fn needs(
    plan: &FlowPlan,
    stage: &StagePlan,
    [first, second, host, api]: [Resource; 4],
    inlets: &[Inlet<Walker>],
) -> Vec<Need<Walker>> {
    let mut seen = HashSet::new();
    let mut needs = Vec::new();
    let until = |need: Need<Walker>, until: Option<usize>| match until.and_then(|stage| inlets.get(stage)) {
        Some(&inlet) => need.until(inlet),
        None => need,
    };
    for needed in &stage.needs {
        let resource = match needed {
            Needed::Tokens { which, .. } | Needed::Permit { which } => [first, second][*which],
            Needed::Keys { .. } => host,
            Needed::Rate => api,
        };
        if !seen.insert(resource) {
            continue;
        }
        match *needed {
            Needed::Tokens { which, amount, until: stage, by_unit } => {
                let amount = amount.min(plan.tokens[which]);
                let need = Need::tokens(resource, amount);
                let by_chance = move |unit: &Walker| unit.chance("amount", amount + 1);
                let need = if by_unit { need.amount_with(by_chance) } else { need };
                needs.push(until(need, stage));
            }
            Needed::Permit { .. } => needs.push(Need::tokens(resource, 1).per_batch()),
            Needed::Keys { pair, until: stage } => {
                let keyed = |side: &'static str| {
                    Need::keyed(resource, move |unit: &Walker| format!("{side} {}", unit.chance(side, 4)))
                };
                needs.push(until(keyed("from"), stage));
                if pair {
                    needs.push(until(keyed("to"), stage));
                }
            }
            Needed::Rate => needs.push(Need::tokens(resource, 2)),
        }
    }
    needs
}

fn build(plan: &FlowPlan) -> Result<Flow<Walker, Walker>, BuildError> {
    let mut flow = Flow::builder::<Walker>("random");
    flow.inflight(plan.inflight).workers(plan.workers).memory(plan.memory.unwrap_or(u64::MAX));
    let resources = [
        flow.tokens("first", plan.tokens[0]),
        flow.tokens("second", plan.tokens[1]),
        flow.keyed_tokens("host", 1),
        flow.rate("api", Rate::per_second(1e5).burst(3)),
    ];
    flow.max_keys(resources[2], plan.max_keys);
    let inlets: Vec<Inlet<Walker>> = (0..plan.stages.len()).map(|s| flow.inlet(format!("s{s}"))).collect();
    let done = flow.retire();
    for (s, stage) in plan.stages.iter().enumerate() {
        let mut define = flow.update(inlets[s], |unit: &mut Walker, cx| {
            if unit.chance("fails", 40) == 0 && cx.attempt() == 1 {
                return Err(Failure::msg("unlucky"));
            }
            if unit.chance("works", 4) == 0 {
                thread::sleep(Duration::from_micros(unit.chance("long", 100)));
            }
            unit.steps += 1;
            Ok(())
        });
        for need in needs(plan, stage, resources, &inlets) {
            define = define.need(need);
        }
        define = define
            .bytes(|unit| 1 + unit.n % 10)
            .retry(Retry::times(stage.retries).backoff(ms(0)..ms(1)))
            .batch(stage.batch.map_or(Batch::auto(), Batch::of));
        if let Some(queue) = stage.queue {
            define = define.queue(queue);
        }
        if let Some((floor, ceiling)) = stage.workers {
            define = define.workers(floor..=ceiling);
        }
        if stage.blocking {
            define = define.blocking();
        }
        let onwards = |s: usize| inlets.get(s).map_or(Either::Right(done), |&inlet| Either::Left(inlet));
        let also = stage.also.map_or(s + 1, |also| if also == s + 1 { usize::MAX } else { also });
        // After a few steps, every unit proceeds to the next stage, so that loops end.
        let choose = |unit: &Walker| usize::from(unit.steps < 8 && unit.chance("turns", 3) == 0);
        define.to(select(choose, [onwards(s + 1), onwards(also)]));
    }
    flow.build(inlets[0])
}

/// Runs a random flow. Returns `None` if the checks refuse the flow, or a description if the flow hangs.
fn run(plan: &FlowPlan) -> Option<Result<(Report, Snapshot), Box<Snapshot>>> {
    let flow = build(plan).ok()?;
    let control = flow.control();
    let (over, is_over) = mpsc::channel();
    let units = plan.units;
    thread::spawn(move || {
        // After a hang was reported, the channel has no receiver.
        let _ = over.send(flow.run((0..units).map(|n| Walker { n, steps: 0 })));
    });
    Some(match is_over.recv_timeout(Duration::from_secs(120)) {
        Ok(report) => Ok((report, control.snapshot())),
        Err(_) => Err(Box::new(control.snapshot())),
    })
}

#[test]
fn every_checked_flow_finishes_within_capacity_and_returns_all() {
    let config = ProptestConfig { max_shrink_time: 30_000, ..cases(600) };
    let mut runner = TestRunner::new(config);
    let started = Instant::now();
    let finished = std::cell::Cell::new(0);
    let failed = std::cell::Cell::new(false);
    let result = runner.run(&flow_plan(), |plan| {
        // On a busy machine, fewer cases are enough. A failure is always shrunk.
        if started.elapsed() > Duration::from_secs(6) && !failed.get() {
            return Ok(());
        }
        let Some(ended) = run(&plan) else { return Ok(()) };
        let check = || {
            let (report, after) = match &ended {
                Ok(ended) => ended,
                Err(snapshot) => return Err(TestCaseError::fail(format!("it hangs: {snapshot:#?}"))),
            };
            prop_assert_eq!((report.admitted, report.left), (plan.units, 0));
            prop_assert_eq!(report.retired + report.dead_lettered, plan.units);
            prop_assert!(report.peak_in_flight <= plan.inflight);
            prop_assert!(report.peak_bytes_in_flight <= report.memory_cap);
            for resource in &report.resources {
                prop_assert!(resource.peak_in_use <= resource.capacity, "{:?}", resource);
            }
            for resource in after.resources.iter().filter(|resource| resource.kind != "rate") {
                prop_assert_eq!((resource.in_use, resource.waiters, resource.keys), (0, 0, 0), "{:?}", resource);
            }
            prop_assert_eq!((after.in_flight, after.bytes_in_flight), (0, 0));
            Ok(())
        };
        let checked = check();
        failed.set(failed.get() || checked.is_err());
        finished.set(finished.get() + 1);
        checked
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    println!("{} random flows accepted and run", finished.get());
    assert!(finished.get() >= 20, "only {} random flows were accepted", finished.get());
}
