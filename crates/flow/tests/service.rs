//! A flow as a service: tickets, overload, deadlines, async, drain.

#[path = "../../ring/tests/support/block_on.rs"]
mod block_on;
#[path = "support/gated.rs"]
mod gated;
mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use block_on::block_on;
use gated::gated;
use millstream_flow::{
    AfterFailure, Batch, Cause, Cx, Failure, Flow, Outcome, Overload, Retry, SubmitError, Unfinished, parallel_map,
    select,
};
use support::in_time;

#[test]
fn many_threads_get_their_own_results() {
    let mut flow = Flow::builder("square");
    flow.inflight(100);
    let (square, done) = (flow.inlet("square"), flow.retire());
    flow.stage(square, |n: &mut u64, _| Ok(*n * *n)).to(done);
    let service = flow.build(square).unwrap().start();
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let submitter = service.submitter();
            scope.spawn(move || {
                let tickets: Vec<_> = (0..2000).map(|n| (n, submitter.submit(thread * 10_000 + n).unwrap())).collect();
                for (n, ticket) in tickets {
                    let n = thread * 10_000 + n;
                    assert_eq!(ticket.wait().unwrap(), n * n);
                }
            });
        }
    });
    let report = service.drain();
    assert_eq!((report.admitted, report.retired, report.outcome), (16_000, 16_000, Outcome::Complete));
    assert!(report.peak_in_flight <= 100);
}

#[test]
fn a_full_flow_treats_submitters_by_its_policy() {
    let (flow, gate) = gated(3);
    let service = flow.start_with(Overload::Reject);
    let mut tickets: Vec<_> = (0..3).map(|n| service.submit(n).unwrap()).collect();
    assert!(matches!(service.submit(9), Err(SubmitError::Full(9))));
    assert!(matches!(service.try_submit(9), Err(SubmitError::Full(9))));
    let started = Instant::now();
    let late = service.submit_deadline(9, Instant::now() + Duration::from_millis(30));
    assert!(matches!(late, Err(SubmitError::Timeout(9))));
    assert!(started.elapsed() >= Duration::from_millis(30));
    gate.open();
    tickets.push(service.submit_deadline(3, Instant::now() + Duration::from_secs(10)).unwrap());
    for (n, ticket) in (0..).zip(tickets) {
        assert_eq!(ticket.wait().unwrap(), n * 2);
    }
    assert_eq!(service.drain().retired, 4);
}

#[test]
fn dropping_the_oldest_makes_room_and_tells_its_ticket() {
    let (flow, gate) = gated(3);
    let service = flow.start_with(Overload::DropOldest);
    let first = service.submit(0).unwrap();
    while service.control().snapshot().stages[0].running == 0 {
        std::thread::yield_now();
    }
    let tickets: Vec<_> = (1..=10).map(|n| service.submit(n)).collect();
    gate.open();
    assert_eq!(first.wait().unwrap(), 0);
    let mut dropped = 0;
    let mut done = 0;
    for ticket in tickets {
        match ticket.map(millstream_flow::Ticket::wait) {
            Ok(Ok(_)) => done += 1,
            Ok(Err(Unfinished::Dead(letter))) => {
                assert_eq!((letter.cause, letter.attempts), (Cause::Overload, 0));
                assert!(letter.input::<u64>().is_some());
                dropped += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((done, dropped), (2, 8));
    let report = service.drain();
    assert_eq!((report.admitted, report.retired, report.dead_lettered), (11, 3, 8));
}

#[test]
fn async_submitters_wait_without_a_thread() {
    let (flow, gate) = gated(2);
    let service = flow.start();
    let opener = std::thread::spawn({
        let gate = gate.clone();
        move || {
            std::thread::sleep(Duration::from_millis(20));
            gate.open();
        }
    });
    let results: Vec<u64> =
        (0..20).map(|n| block_on(service.submit_async(n)).unwrap()).map(|ticket| block_on(ticket).unwrap()).collect();
    assert_eq!(results, (0..20).map(|n| n * 2).collect::<Vec<_>>());
    opener.join().unwrap();
    service.drain();
}

#[test]
fn a_unit_does_not_run_before_its_time() {
    let mut flow = Flow::builder("later");
    let (now, done) = (flow.inlet("now"), flow.retire());
    flow.stage(now, |(): &mut (), _| Ok(Instant::now())).to(done);
    let service = flow.build(now).unwrap().start();
    // If the machine is too slow to run the second unit before the first one's time, the test tries a later time.
    let runs_before = |wait| {
        let at = Instant::now() + Duration::from_millis(wait);
        let later = service.submit_at((), at).unwrap();
        let soon = service.submit(()).unwrap();
        assert!(later.wait().unwrap() >= at);
        soon.wait().unwrap() < at
    };
    assert!([60, 600, 6000].into_iter().any(runs_before), "a unit without a start time waits for one that has one");
    service.drain();
}

#[test]
fn drain_waits_for_retries_and_refuses_newcomers() {
    let mut flow = Flow::builder("flaky");
    let (flaky, done) = (flow.inlet("flaky"), flow.retire());
    flow.stage(flaky, |n: &mut u64, cx| if cx.attempt() < 3 { Err(Failure::msg("again")) } else { Ok(*n) })
        .retry(Retry::times(2).backoff(Duration::from_millis(5)..Duration::from_millis(20)))
        .to(done);
    let service = flow.build(flaky).unwrap().start();
    let submitter = service.submitter();
    let tickets: Vec<_> = (0..50).map(|n| service.submit(n).unwrap()).collect();
    let report = service.drain();
    assert_eq!((report.retired, report.stages[0].failures, report.stages[0].retries), (50, 100, 100));
    assert!(tickets.into_iter().all(|ticket| ticket.wait().is_ok()));
    assert!(matches!(submitter.submit(1), Err(SubmitError::Closed(1))));
    assert!(matches!(submitter.send(1), Err(SubmitError::Closed(1))));
}

#[test]
fn a_panicking_unit_fails_alone() {
    let mut flow = Flow::builder("panic");
    let (work, done) = (flow.inlet("work"), flow.retire());
    flow.stage(work, |n: &mut u64, _| if *n % 10 == 3 { panic!("number {n}") } else { Ok(*n) }).to(done);
    let service = flow.build(work).unwrap().start();
    let tickets: Vec<_> = (0..100).map(|n| service.submit(n).unwrap()).collect();
    for (n, ticket) in (0..).zip(tickets) {
        match ticket.wait() {
            Ok(value) => assert!(value == n && n % 10 != 3),
            Err(Unfinished::Dead(letter)) => {
                assert_eq!((letter.cause, letter.message.as_str()), (Cause::Panic, format!("number {n}").as_str()));
                assert_eq!(letter.input::<u64>(), Some(&n));
            }
            Err(other) => panic!("{other}"),
        }
    }
    let report = service.drain();
    assert_eq!((report.retired, report.dead_lettered), (90, 10));
}

#[test]
fn a_stage_may_skip_failures_or_stop_the_flow() {
    let mut flow = Flow::builder("skip");
    let (work, done) = (flow.inlet("work"), flow.retire());
    flow.stage(work, |n: &mut u64, _| if (*n).is_multiple_of(2) { Err(Failure::msg("even")) } else { Ok(*n) })
        .after_failure(AfterFailure::Skip)
        .to(done);
    let report = flow.build(work).unwrap().run(0..100);
    assert_eq!((report.retired, report.skipped, report.dead_lettered), (100, 50, 0));

    let mut flow = Flow::builder("stop");
    flow.inflight(10);
    let (work, done) = (flow.inlet("work"), flow.retire());
    flow.stage(work, |n: &mut u64, _| if *n == 500 { Err(Failure::msg("enough")) } else { Ok(*n) })
        .after_failure(AfterFailure::StopFlow)
        .to(done);
    let report = flow.build(work).unwrap().run(0..);
    assert_eq!((report.outcome, report.dead_lettered, report.left), (Outcome::StoppedByFailure, 1, 0));
    assert_eq!(report.retired + 1, report.admitted);
}

#[test]
fn a_late_result_is_a_timeout() {
    let mut flow = Flow::builder("late");
    let (work, done) = (flow.inlet("work"), flow.retire());
    flow.stage(work, |n: &mut u64, cx| {
        let deadline = cx.deadline().expect("the stage has a limit");
        if *n == 1 {
            let late = deadline + Duration::from_millis(1);
            std::thread::sleep(late.saturating_duration_since(Instant::now()));
        }
        cx.check().map(|()| *n)
    })
    .timeout(Duration::from_secs(1))
    .to(done);
    let report = flow.build(work).unwrap().run([0, 1, 2]);
    assert_eq!((report.retired, report.dead_lettered), (2, 1));
    assert_eq!((report.dead_letters[0].unit, report.dead_letters[0].cause), (1, Cause::Timeout));
    assert!(report.dead_letters[0].message.contains("limit of 1s"), "{}", report.dead_letters[0]);
}

#[test]
fn stop_admits_no_more_and_finishes_units_in_flight() {
    let mut flow = Flow::builder("stop");
    flow.inflight(16);
    let (work, done) = (flow.inlet("work"), flow.retire());
    flow.stage(work, |n: &mut u64, _| {
        std::thread::sleep(Duration::from_millis(1));
        Ok(*n)
    })
    .to(done);
    let flow = flow.build(work).unwrap();
    let control = flow.control();
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        control.stop();
    });
    let report = flow.run(0..);
    stopper.join().unwrap();
    assert_eq!((report.outcome, report.left), (Outcome::Stopped, 0));
    assert_eq!(report.admitted, report.retired);
}

#[test]
fn neither_kind_of_stage_starves_the_other() {
    // One stage computes and one sleeps. Both always have work, and they share two workers. A stage may be passed over
    // for 50 ms. Every unit takes at least 1 ms, so even on a slow machine the two workers run at most about 100 units
    // of the other stage in 50 ms. After 1400 units of the other stage, the stage has therefore been served at least
    // 14 times.
    const MANY: u64 = 1400;
    const FEW: u64 = 8;
    fn spin(_: &mut u64, _: &mut Cx<'_>) -> Result<(), Failure> {
        let until = Instant::now() + Duration::from_millis(1);
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        Ok(())
    }
    fn sleep(_: &mut u64, _: &mut Cx<'_>) -> Result<(), Failure> {
        std::thread::sleep(Duration::from_millis(1));
        Ok(())
    }
    for compute_last in [false, true] {
        in_time(move || {
            let mut flow = Flow::builder::<u64>("starve");
            flow.workers(2).inflight(400);
            let (a, b, done) = (flow.inlet::<u64>("a"), flow.inlet::<u64>("b"), flow.retire());
            // Odd units stay in `a` and even ones in `b` until the test ends, so both stages always have work.
            let onwards = select(|n: &u64| (*n % 2) as usize, [b.into(), a.into()]);
            let for_ever = select(|_: &u64| 0, [b.into(), done.into()]);
            if compute_last {
                flow.update(a, sleep).to(onwards);
                flow.update(b, spin).to(for_ever);
            } else {
                flow.update(a, spin).to(onwards);
                flow.update(b, sleep).to(for_ever);
            }
            let service = flow.build(a).unwrap().start();
            let control = service.control();
            for n in 0..40 {
                service.send(n).unwrap();
            }
            let units = || control.snapshot().stages.iter().map(|stage| stage.units).collect::<Vec<_>>();
            let once_one_has = |many| {
                while units().iter().all(|&units| units < many) {
                    std::thread::sleep(Duration::from_millis(5));
                }
                units()
            };
            // By then both stages have work.
            let before = once_one_has(100);
            let after = once_one_has(before[0].max(before[1]) + MANY);
            control.abandon();
            service.drain();
            let ran = [after[0] - before[0], after[1] - before[1]];
            assert!(ran.iter().all(|&units| units >= FEW), "one starves: {ran:?} units were run");
        });
    }
}

#[test]
fn units_at_the_gate_of_an_abandoned_flow_count_as_left_but_not_in_its_peak() {
    for _ in 0..20 {
        let mut flow = Flow::builder::<()>("abandoned");
        flow.inflight(2).workers(1);
        let (work, done) = (flow.inlet::<u64>("work"), flow.retire());
        flow.stage(work, |_: &mut u64, _| Ok(())).bytes(|_| 10).to(done);
        let service = flow.build(work).unwrap().start();
        let control = service.control();
        let report = std::thread::scope(|scope| {
            for _ in 0..2 {
                let submitter = service.submitter();
                scope.spawn(move || while submitter.send(1).is_ok() {});
            }
            while control.snapshot().retired < 1000 {
                std::thread::yield_now();
            }
            control.abandon();
            service.drain()
        });
        assert_eq!(report.admitted, report.retired + report.left);
        assert!(report.peak_in_flight <= 2 && report.peak_bytes_in_flight <= 20, "{report:?}");
    }
}

#[test]
fn a_blocking_stage_takes_no_shared_worker() {
    let mut flow = Flow::builder::<()>("blocking");
    flow.workers(1).inflight(100);
    let (wait, count, done) = (flow.inlet::<u64>("wait"), flow.inlet::<u64>("count"), flow.retire());
    let together = Arc::new(Barrier::new(20));
    let theirs = together.clone();
    // Twenty units must be in `wait` at once, on a flow with one shared worker.
    flow.update(wait, move |_, _| {
        theirs.wait();
        Ok(())
    })
    .blocking()
    .workers(0..=20)
    .to(count);
    flow.stage(count, |_: &mut u64, _| Ok(())).to(done);
    let report = flow.build(wait).unwrap().run(0..60);
    assert_eq!(report.retired, 60);
}

#[test]
fn a_floor_is_extra_to_busy_shared_workers() {
    let mut flow = Flow::builder::<()>("floor");
    flow.workers(1).inflight(10);
    let (hog, quick, done) = (flow.inlet::<u64>("hog"), flow.inlet::<u64>("quick"), flow.retire());
    let passed = Arc::new(AtomicBool::new(false));
    let (wait, mark) = (passed.clone(), passed.clone());
    // Unit 1 keeps the only shared worker busy until unit 0, which returns later, has passed `quick`.
    flow.update(hog, move |n, cx| {
        if *n == 0 {
            cx.delay(Duration::from_millis(30));
        }
        while *n == 1 && !wait.load(Ordering::SeqCst) {
            cx.check()?;
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    })
    .batch(Batch::of(1))
    .timeout(Duration::from_secs(20))
    .to(quick);
    flow.stage(quick, move |_: &mut u64, _| {
        mark.store(true, Ordering::SeqCst);
        Ok(())
    })
    .workers(1..=1)
    .to(done);
    let report = flow.build(hog).unwrap().run([0, 1]);
    assert_eq!((report.retired, report.dead_lettered), (2, 0), "{:?}", report.dead_letters);
}

#[test]
fn parallel_map_keeps_order_and_failures() {
    let results = parallel_map(
        0..10_000u64,
        |_| vec![],
        |n| if n.is_multiple_of(100) { Err(Failure::msg("round")) } else { Ok(*n + 1) },
    );
    let results = results.unwrap();
    assert_eq!(results.len(), 10_000);
    for (n, result) in (0..).zip(results) {
        match result {
            Ok(value) => assert_eq!(value, n + 1),
            Err(letter) => assert!(n % 100 == 0 && letter.unit == n),
        }
    }
}
