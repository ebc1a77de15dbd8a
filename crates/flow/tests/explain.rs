//! Explanations: they find a unit wherever it is, and name the resource that it waits for and the holders of that
//! resource.

mod support;

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use millstream_flow::{Batch, Doing, Failure, Flow, Held, Need, NoLine, Rate, Retry, WaitsFor, select};
use support::{Gate, in_time, ms};

/// Longer than any test.
const HOUR: Duration = Duration::from_secs(3600);

/// The time within which something must happen, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until a condition is true.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(ms(1));
    }
}

#[test]
fn a_unit_in_line_is_explained_with_its_position_and_the_holder_of_its_key() {
    in_time(|| {
        let gate = Gate::default();
        let mut flow = Flow::builder::<()>("keys");
        flow.inflight(100);
        let host = flow.keyed_tokens("host", 1);
        let (visit, done) = (flow.inlet::<u64>("visit"), flow.retire());
        let held = gate.clone();
        flow.stage(visit, move |_: &mut u64, _| {
            held.pass();
            Ok(())
        })
        .blocking()
        .workers(0..=8)
        .batch(Batch::of(1))
        .need(Need::keyed(host, |n: &u64| format!("{}.example", n % 2)))
        .to(done);
        let service = flow.build(visit).unwrap().start();
        let control = service.control();
        let tickets: Vec<_> = (0..8).map(|n| service.submit(n).unwrap()).collect();
        until("two run, and six wait", || {
            let now = control.snapshot();
            now.stages[0].running == 2 && now.resources[0].waiters == 6
        });

        let first = control.explain_unit(1).unwrap();
        assert_eq!((first.doing, first.stage.as_deref(), first.waits_for), (Doing::Running, Some("visit"), None));
        let [Held { resource, key, amount, .. }] = &first.holds[..] else { panic!("{:?}", first.holds) };
        assert_eq!((resource.as_str(), key.as_deref(), *amount), ("host", Some("1.example"), 1));
        let last = control.explain_unit(7).unwrap();
        assert_eq!((last.doing, last.holds.len(), last.attempts), (Doing::Waiting, 0, 0));
        let Some(WaitsFor::Resource { amount: 1, ahead: 2, line }) = last.waits_for else { panic!("{last:?}") };
        assert_eq!((line.resource.as_str(), line.key.as_deref()), ("host", Some("1.example")));
        assert_eq!((line.in_use, line.capacity, line.waiters, line.in_use_unnamed), (1, 1, 3, 0));
        assert_eq!((line.holders[0].unit, line.holders[0].doing, line.holders_in_all), (1, Doing::Running, 1));
        assert_eq!(line.first_in_line.iter().map(|place| place.unit).collect::<Vec<_>>(), [3, 5, 7]);
        assert!(line.oldest_ns >= Some(last.for_ns.unwrap()) && last.age_ns >= last.for_ns.unwrap());

        assert_eq!(control.explain_line("host", Some("1.example")).unwrap().holders[0].unit, 1);
        let busiest = control.busiest_keys(1);
        assert_eq!((busiest.len(), busiest[0].waiters, busiest[0].in_use), (1, 3, 1));
        let unknown = control.explain_line("host", Some("3.example")).unwrap_err();
        let NoLine::NoKey { keys: 2, mut some, .. } = unknown else { panic!("{unknown:?}") };
        some.sort();
        assert_eq!(some, ["0.example", "1.example"]);
        assert!(matches!(control.explain_line("host", None), Err(NoLine::NoKey { key: None, .. })));
        assert!(control.explain_line("hots", None).unwrap_err().to_string().contains("`host`"));
        let absent = control.explain_unit(99).unwrap_err();
        assert_eq!((absent.next, absent.seen, absent.unseen), (8, Some((0, 7)), 0));

        gate.open();
        tickets.into_iter().for_each(|ticket| ticket.wait().unwrap());
        until("the last one is settled", || control.snapshot().in_flight == 0);
        let gone = control.explain_unit(1).unwrap_err();
        assert_eq!((gone.next, gone.seen), (8, None));
        assert!(control.busiest_keys(9).is_empty());
    });
}

#[test]
fn tokens_held_across_stages_lead_to_their_holder_there() {
    in_time(|| {
        let gate = Gate::default();
        let mut flow = Flow::builder::<()>("across");
        let slot = flow.tokens("slot", 1);
        let (open, close, done) = (flow.inlet::<u64>("open"), flow.inlet::<u64>("close"), flow.retire());
        flow.stage(open, |n: &mut u64, _| Ok(*n)).need(Need::tokens(slot, 1).until(close)).to(close);
        let held = gate.clone();
        flow.stage(close, move |_: &mut u64, _| {
            held.pass();
            Ok(())
        })
        .blocking()
        .workers(0..=1)
        .to(done);
        let service = flow.build(open).unwrap().start();
        let control = service.control();
        let tickets: Vec<_> = (0..3).map(|n| service.submit(n).unwrap()).collect();
        until("one closes", || control.snapshot().stages[1].running == 1);
        let line = control.explain_line("slot", None).unwrap();
        assert_eq!((line.in_use, line.holders_in_all, line.waiters), (1, 1, 2));
        assert_eq!((line.holders[0].unit, line.holders[0].stage.as_deref()), (0, Some("close")));
        gate.open();
        tickets.into_iter().for_each(|ticket| ticket.wait().unwrap());
    });
}

#[test]
fn pauses_rates_queues_and_batches_are_told_apart() {
    // With batches of one, a worker has few seats, so most units stay in the queue behind the units in the rate's line.
    in_time(|| [1, 64].map(told_apart));
}

fn told_apart(batch: usize) {
    let gate = Gate::default();
    let mut flow = Flow::builder::<()>("places");
    flow.workers(1);
    let api = flow.rate("api", Rate::per_second(0.001).burst(1));
    let names = ["fails", "asks", "queues", "fills"];
    let [fails, asks, queues, fills] = names.map(|name| flow.inlet::<u64>(name));
    let (entry, done) = (flow.inlet::<u64>("entry"), flow.retire());
    let exits = [fails.into(), asks.into(), queues.into(), fills.into()];
    flow.stage(entry, |n: &mut u64, _| Ok(*n)).to(select(|n: &u64| (*n % 4) as usize, exits));
    flow.stage(fails, |_: &mut u64, _| Err::<(), _>(Failure::msg("again")))
        .retry(Retry::times(3).backoff(HOUR..HOUR))
        .to(done);
    flow.stage(asks, |_: &mut u64, _| Ok(())).need(Need::tokens(api, 1)).batch(Batch::of(batch)).to(done);
    let held = gate.clone();
    flow.stage(queues, move |_: &mut u64, _| {
        held.pass();
        Ok(())
    })
    .blocking()
    .workers(0..=1)
    .batch(Batch::of(1))
    .to(done);
    flow.stage(fills, |_: &mut u64, _| Ok(())).batch(Batch::of(10).wait(HOUR)).to(done);
    let service = flow.build(entry).unwrap().start();
    let control = service.control();
    let _tickets: Vec<_> = (0..16).map(|n| service.submit(n).unwrap()).collect();
    until("everything has come to rest", || {
        let now = control.snapshot();
        let [queues, fills] = ["queues", "fills"].map(|name| now.stages.iter().find(|s| s.name == name).unwrap());
        let runs = (queues.running, queues.workers_busy, queues.waiting + queues.granted) == (1, 1, 3);
        now.delayed == 4 && now.resources[0].waiters == 3 && runs && fills.granted == 4
    });
    let waits_for = |unit: u64| control.explain_unit(unit).unwrap_or_else(|error| panic!("{error:?}")).waits_for;
    assert!(matches!(waits_for(0), Some(WaitsFor::Time { left_ns }) if left_ns > 1_000_000_000_000));
    assert_eq!(control.explain_unit(0).unwrap().attempts, 1);
    let Some(WaitsFor::Resource { ahead: 1, line, .. }) = waits_for(9) else { panic!("{:?}", waits_for(9)) };
    assert!(line.ready_in_ns > Some(1_000_000_000) && line.holders.is_empty() && line.in_use == 0);
    assert!(matches!(waits_for(14), Some(WaitsFor::Worker { busy: 1, ceiling: 1, .. })), "{:?}", waits_for(14));
    assert_eq!(control.explain_unit(7).unwrap().doing, Doing::Granted, "its batch is filling");
    control.abandon();
    gate.open();
}

#[test]
fn a_unit_is_found_among_many_while_they_move() {
    in_time(|| {
        let gate = Gate::default();
        let mut flow = Flow::builder::<()>("many");
        flow.inflight(300_000).workers(2);
        let slot = flow.tokens("slot", 1);
        let (work, done) = (flow.inlet::<u64>("work"), flow.retire());
        let held = gate.clone();
        let (began, begins) = channel();
        flow.stage(work, move |n: &mut u64, _| {
            if *n == 0 {
                began.send(()).unwrap();
                held.pass();
            }
            Ok(())
        })
        .batch(Batch::of(1))
        .need(Need::tokens(slot, 1))
        .to(done);
        let flow = flow.build(work).unwrap();
        let control = flow.control();
        let run = std::thread::spawn(move || flow.run(0..300_000));
        begins.recv().unwrap();
        until("the other worker has pulled them", || control.snapshot().in_flight > 250_000);
        let found = control.explain_unit(249_999).unwrap();
        assert_eq!((found.unit, found.doing), (249_999, Doing::Waiting));
        gate.open();
        // Units leave while the test searches for them. Each unit is either found or gone, and is never confused with
        // another unit.
        for unit in (0..300_000).step_by(29_999) {
            assert!(control.explain_unit(unit).map_or(true, |found| found.unit == unit));
        }
        assert_eq!(run.join().unwrap().retired, 300_000);
    });
}

#[test]
fn explanations_asked_back_to_back_leave_the_flow_to_others() {
    const UNITS: u64 = 50_000;
    in_time(|| {
        let mut flow = Flow::builder::<()>("crowd");
        flow.inflight(UNITS);
        let host = flow.keyed_tokens("host", 1);
        flow.max_keys(host, 20_000);
        let (visit, done) = (flow.inlet::<u64>("visit"), flow.retire());
        flow.stage(visit, |_: &mut u64, _| Ok(())).need(Need::keyed(host, |n: &u64| (n % 20_000).to_string())).to(done);
        let service = flow.build(visit).unwrap().start();
        let control = service.control();
        control.set_capacity("host", 0).unwrap();
        service.send_all(0..UNITS).unwrap();
        until("all wait", || control.snapshot().resources[0].waiters == UNITS);
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let asks = scope.spawn(|| {
                // Relaxed: the flag publishes nothing.
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    assert_eq!(control.explain_unit(UNITS - 1).unwrap().doing, Doing::Waiting);
                    assert_eq!(control.explain_unit(7).unwrap().doing, Doing::Waiting);
                }
            });
            for _ in 0..30 {
                assert_eq!(control.snapshot().in_flight, UNITS);
            }
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            asks.join().unwrap();
        });
        assert_eq!(control.explain_unit(UNITS).unwrap_err().seen, Some((0, UNITS - 1)), "each unit was seen");
        control.set_capacity("host", 1).unwrap();
        assert_eq!(service.drain().retired, UNITS);
    });
}

#[test]
fn a_child_that_a_run_is_bringing_out_is_not_reported_as_gone() {
    in_time(|| {
        let gate = Gate::default();
        let mut flow = Flow::builder::<()>("children");
        let (pack, child) = (flow.inlet::<u64>("pack"), flow.inlet::<u64>("child"));
        let done = flow.retire();
        let held = gate.clone();
        flow.split(pack, move |_: &mut u64, _| {
            let held = held.clone();
            Ok((0..2).map(move |n| {
                if n == 1 {
                    held.pass();
                }
                Ok(n)
            }))
        })
        .to(child);
        flow.stage(child, |_: &mut u64, _| Ok(())).to(done);
        let service = flow.build(pack).unwrap().start();
        service.send(7).unwrap();
        let control = service.control();
        until("the run has brought the first child out", || control.explain_unit(1).is_err_and(|no| no.next > 1));
        // The child either still belongs to its parent's run or has reached its own stage.
        match control.explain_unit(1) {
            Err(absent) => assert!(absent.unseen > 0, "{absent:?}"),
            Ok(child) => assert_eq!(child.parent, Some(0), "{child:?}"),
        }
        gate.open();
        assert_eq!(service.drain().retired, 3);
    });
}

#[test]
fn units_are_found_by_their_payloads_and_a_label_that_panics_does_no_harm() {
    const UNITS: u64 = 5_000;
    in_time(|| {
        let mut flow = Flow::builder::<()>("payloads");
        flow.inflight(UNITS);
        let door = flow.tokens("door", 1);
        let (visit, done) = (flow.inlet::<u64>("visit"), flow.retire());
        flow.stage(visit, |_: &mut u64, _| Ok(())).need(Need::tokens(door, 1)).to(done);
        let service = flow.build(visit).unwrap().start();
        let control = service.control();
        control.set_capacity("door", 0).unwrap();
        service.send_all(0..UNITS).unwrap();
        until("all wait", || {
            let now = control.snapshot();
            now.in_flight == UNITS && now.stages[0].running == 0
        });
        let found = control.find_units(3, |n: &u64| (n % 100 == 7).then_some(*n));
        assert_eq!((found.units.len(), found.in_all, found.in_hand), (3, UNITS / 100, 0));
        for (place, label) in found.units {
            assert_eq!((place.unit, place.doing, place.stage.as_deref()), (label, Doing::Waiting, Some("visit")));
        }
        assert_eq!(control.find_units(3, |_: &String| Some(())).in_all, 0, "no payload has this type");
        let panicking =
            std::panic::AssertUnwindSafe(|| control.find_units(1, |_: &u64| -> Option<()> { panic!("label") }));
        std::panic::catch_unwind(panicking).unwrap_err();
        control.set_capacity("door", 1).unwrap();
        assert_eq!(service.drain().retired, UNITS);
    });
}
