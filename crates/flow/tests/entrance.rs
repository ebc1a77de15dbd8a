//! Submitters at a flow's entrance: they enter first come, first served, are woken when they can enter, and are told
//! when they never will.

mod support;

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use std::time::{Duration, Instant};

use millstream_flow::{
    AfterFailure, Batch, BuildError, Failure, Flow, Inlet, MAX_WORKERS, Need, Outcome, Overload, SubmitError,
    Submitter, Unfinished, select,
};
use support::{Gate, LONG, in_time, ms};

/// Counts the wake-ups of a future.
#[derive(Default)]
struct Wakes(AtomicU64);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Wakes {
    fn count(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn poll<F: Future>(self: &Arc<Self>, future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(&Waker::from(self.clone())))
    }

    /// Polls the future once at the start and once after each wake-up.
    fn drive<F: Future>(self: &Arc<Self>, mut future: Pin<&mut F>) -> F::Output {
        loop {
            let seen = self.count();
            if let Poll::Ready(output) = self.poll(future.as_mut()) {
                return output;
            }
            while self.count() == seen {
                thread::sleep(ms(1));
            }
        }
    }
}

/// A unit that weighs `bytes` and stays in its stage until its gate opens.
struct Parcel {
    bytes: u64,
    gate: Gate,
}

/// A flow with four workers and a budget of 1000 bytes.
fn parcels(inflight: u64) -> Flow<Parcel, u64> {
    let mut flow = Flow::builder("parcels");
    flow.inflight(inflight).memory(1000).workers(4);
    let (hold, done) = (flow.inlet("hold"), flow.retire());
    flow.stage(hold, |parcel: &mut Parcel, cx| {
        parcel.gate.pass();
        Ok(cx.unit())
    })
    .batch(Batch::of(1))
    .bytes(|parcel| parcel.bytes)
    .to(done);
    flow.build(hold).unwrap()
}

fn opened() -> Gate {
    let gate = Gate::default();
    gate.open();
    gate
}

#[test]
fn a_stop_by_failure_tells_every_waiting_submitter() {
    in_time(|| {
        let gate = Gate::default();
        let mut flow = Flow::builder::<()>("stop");
        flow.inflight(1).workers(1);
        let (fail, done) = (flow.inlet::<u32>("fail"), flow.retire());
        let held = gate.clone();
        flow.stage(fail, move |_: &mut u32, _| -> Result<(), Failure> {
            held.pass();
            Err(Failure::msg("no"))
        })
        .after_failure(AfterFailure::StopFlow)
        .to(done);
        let service = flow.build(fail).unwrap().start();
        let first = service.submit(0).unwrap();
        let refused = |result: Result<(), SubmitError<u32>>, unit: u32| match result {
            Err(SubmitError::Closed(back)) => assert_eq!(back, unit),
            other => panic!("submitter {unit}: {other:?}"),
        };
        thread::scope(|scope| {
            let service = &service;
            scope.spawn(move || refused(service.submit(1).map(drop), 1));
            scope.spawn(move || refused(service.send(2), 2));
            scope.spawn(move || refused(service.submit_deadline(3, Instant::now() + 2 * LONG).map(drop), 3));
            scope.spawn(move || {
                let future = pin!(service.submit_async(4));
                refused(Arc::new(Wakes::default()).drive(future).map(drop), 4);
            });
            thread::sleep(ms(50));
            gate.open();
        });
        assert!(matches!(first.wait(), Err(Unfinished::Dead(_))));
        assert_eq!(service.drain().outcome, Outcome::StoppedByFailure);
    });
}

/// A task whose waker polls it at once, on whichever thread wakes it.
struct AtOnce {
    task: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
    woken: AtomicBool,
}

impl Wake for AtOnce {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        // The thread that held the task checks `woken` once more after it has unlocked the task.
        while self.woken.load(Ordering::SeqCst) {
            let Ok(mut task) = self.task.try_lock() else { return };
            self.woken.store(false, Ordering::SeqCst);
            let waker = Waker::from(self.clone());
            if task.as_mut().is_some_and(|task| task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready()) {
                *task = None;
            }
        }
    }
}

#[test]
fn a_task_that_is_polled_by_its_own_wake_up_waits_for_room() {
    const UNITS: u64 = 300;
    in_time(|| {
        let mut flow = Flow::builder::<()>("at once");
        flow.inflight(1).workers(1);
        let (work, done) = (flow.inlet::<u64>("work"), flow.retire());
        flow.stage(work, |_: &mut u64, _| Ok(())).to(done);
        let service = flow.build(work).unwrap().start();
        let (end, is_end) = std::sync::mpsc::channel();
        for _ in 0..3 {
            let (submitter, end) = (service.submitter(), end.clone());
            let task = async move {
                let mut result = Ok(());
                for unit in 0..UNITS {
                    match submitter.submit_async(unit).await {
                        Ok(ticket) => ticket.await.unwrap(),
                        Err(refused) => result = Err(refused),
                    }
                }
                end.send(result).unwrap();
            };
            Arc::new(AtOnce { task: Mutex::new(Some(Box::pin(task))), woken: AtomicBool::new(false) }).wake();
        }
        for _ in 0..3 {
            is_end.recv().unwrap().unwrap();
        }
        assert_eq!(service.drain().retired, 3 * UNITS);
    });
}

#[test]
fn a_future_that_does_not_fit_is_not_woken_in_a_spin() {
    in_time(|| {
        let service = parcels(100).start();
        let gate = Gate::default();
        let held = service.submit(Parcel { bytes: 900, gate: gate.clone() }).unwrap();
        let mut waits = pin!(service.submit_async(Parcel { bytes: 500, gate: opened() }));
        let wakes = Arc::new(Wakes::default());
        let until = Instant::now() + ms(100);
        let mut polls = 0;
        let mut seen = u64::MAX;
        while Instant::now() < until {
            if std::mem::replace(&mut seen, wakes.count()) != wakes.count() {
                polls += 1;
                assert!(wakes.poll(waits.as_mut()).is_pending());
            }
        }
        assert!(polls <= 10, "polled {polls} times while nothing changed");
        gate.open();
        wakes.drive(waits).unwrap().wait().unwrap();
        held.wait().unwrap();
    });
}

#[test]
fn a_unit_dropped_while_the_flow_drains_is_counted() {
    in_time(|| {
        let dropping = Gate::default();
        let mut flow = Flow::builder::<()>("drop");
        flow.inflight(2).workers(1);
        let (is_dropping, gate) = (dropping.clone(), Gate::default());
        flow.on_dead_letter(move |_| {
            is_dropping.open();
            thread::sleep(ms(100));
        });
        let (hold, done) = (flow.inlet::<u32>("hold"), flow.retire());
        let held = gate.clone();
        flow.stage(hold, move |_: &mut u32, _| {
            held.pass();
            Ok(())
        })
        .batch(Batch::of(1))
        .to(done);
        let service = flow.build(hold).unwrap().start_with(Overload::DropOldest);
        drop(service.submit(1).unwrap());
        while service.control().snapshot().stages[0].running == 0 {
            thread::sleep(ms(1));
        }
        drop(service.submit(2).unwrap());
        let submitter = service.submitter();
        let third = thread::spawn(move || submitter.submit(3).is_ok());
        dropping.pass();
        let opener = thread::spawn(move || {
            thread::sleep(ms(20));
            gate.open();
        });
        let report = service.drain();
        opener.join().unwrap();
        let third = u64::from(third.join().unwrap());
        assert_eq!((report.admitted, report.retired, report.dead_lettered), (2 + third, 1 + third, 1));
    });
}

#[test]
fn no_unit_is_dropped_for_a_newcomer_that_would_not_fit_anyway() {
    in_time(|| {
        let service = parcels(10).start_with(Overload::DropOldest);
        let gate = Gate::default();
        let tickets: Vec<_> =
            (0..8).map(|_| service.submit(Parcel { bytes: 1, gate: gate.clone() }).unwrap()).collect();
        for bytes in [999, 10_000] {
            let large = service.submit(Parcel { bytes, gate: gate.clone() });
            assert!(matches!(large, Err(SubmitError::Full(_))), "{large:?}");
        }
        gate.open();
        assert!(tickets.into_iter().all(|ticket| ticket.wait().is_ok()));
        let report = service.drain();
        assert_eq!((report.admitted, report.retired, report.dead_lettered), (8, 8, 0));
    });
}

#[test]
fn the_oldest_is_found_among_those_that_wait_for_a_resource() {
    in_time(|| {
        let gate = Gate::default();
        let mut flow = Flow::builder::<u32>("needy");
        flow.inflight(4).workers(4);
        let token = flow.tokens("token", 1);
        let (hold, done) = (flow.inlet::<u32>("hold"), flow.retire());
        let held = gate.clone();
        flow.stage(hold, move |n: &mut u32, _| {
            held.pass();
            Ok(*n)
        })
        .need(Need::tokens(token, 1))
        .to(done);
        let service = flow.build(hold).unwrap().start_with(Overload::DropOldest);
        let first = service.submit(0).unwrap();
        while service.control().snapshot().stages[0].running == 0 {
            thread::sleep(ms(1));
        }
        let tickets: Vec<_> = (1..6).map(|n| service.submit(n).unwrap()).collect();
        gate.open();
        assert_eq!(first.wait().unwrap(), 0);
        let kept: Vec<u32> = tickets.into_iter().filter_map(|ticket| ticket.wait().ok()).collect();
        assert_eq!(kept, [3, 4, 5]);
    });
}

#[test]
fn an_abandoned_units_ticket_says_so_and_the_report_counts_it() {
    in_time(|| {
        let gate = Gate::default();
        let mut flow = Flow::builder::<()>("abandon");
        flow.workers(1);
        let (hold, after, done) = (flow.inlet::<u64>("hold"), flow.inlet::<u64>("after"), flow.retire());
        let held = gate.clone();
        flow.stage(hold, move |n: &mut u64, _| {
            held.pass();
            Ok(*n)
        })
        .to(after);
        flow.stage(after, |_: &mut u64, _| Ok(())).to(done);
        let service = flow.build(hold).unwrap().start();
        let ticket = service.submit(1).unwrap();
        let control = service.control();
        while control.snapshot().stages[0].running == 0 {
            thread::sleep(ms(1));
        }
        control.abandon();
        // The drain returns although the stage's code does not return.
        assert_eq!(service.drain().left, 1);
        gate.open();
        assert!(matches!(ticket.wait(), Err(Unfinished::Abandoned)));
    });
}

#[test]
fn submitters_enter_in_the_order_they_came() {
    in_time(|| {
        let service = parcels(1).start();
        let gate = Gate::default();
        let held = service.submit(Parcel { bytes: 1, gate: gate.clone() }).unwrap();
        let mut line: Vec<_> =
            (0..5).map(|_| Box::pin(service.submit_async(Parcel { bytes: 1, gate: opened() }))).collect();
        let wakes: Vec<Arc<Wakes>> = line.iter().map(|_| Arc::default()).collect();
        for (future, wakes) in line.iter_mut().zip(&wakes) {
            assert!(wakes.poll(future.as_mut()).is_pending());
        }
        gate.open();
        held.wait().unwrap();
        for (n, (future, wakes)) in (1..).zip(line.iter_mut().zip(&wakes)) {
            assert_eq!(wakes.drive(future.as_mut()).unwrap().wait().unwrap(), n, "numbers are given at admission");
        }
    });
}

#[test]
fn no_newcomer_overtakes_a_waiting_submitter() {
    in_time(|| {
        let service = parcels(100).start();
        let gate = Gate::default();
        let held = service.submit(Parcel { bytes: 900, gate: gate.clone() }).unwrap();
        let mut large = pin!(service.submit_async(Parcel { bytes: 500, gate: opened() }));
        let wakes = Arc::new(Wakes::default());
        assert!(wakes.poll(large.as_mut()).is_pending());
        let small = || Parcel { bytes: 50, gate: opened() };
        assert!(matches!(service.try_submit(small()), Err(SubmitError::Full(_))));
        let late = service.submit_deadline(small(), Instant::now() + ms(20));
        assert!(matches!(late, Err(SubmitError::Timeout(_))));
        gate.open();
        assert_eq!(wakes.drive(large).unwrap().wait().unwrap(), 1);
        held.wait().unwrap();
        service.submit(small()).unwrap().wait().unwrap();
    });
}

#[test]
fn a_dropped_future_lets_the_next_submitter_enter() {
    in_time(|| {
        let service = parcels(100).start();
        let gate = Gate::default();
        let _held = service.submit(Parcel { bytes: 900, gate: gate.clone() }).unwrap();
        let mut large = Box::pin(service.submit_async(Parcel { bytes: 500, gate: opened() }));
        let mut small = pin!(service.submit_async(Parcel { bytes: 50, gate: opened() }));
        let wakes = [Arc::new(Wakes::default()), Arc::new(Wakes::default())];
        assert!(wakes[0].poll(large.as_mut()).is_pending());
        assert!(wakes[1].poll(small.as_mut()).is_pending());
        drop(large);
        // The unit that the first submitter had to wait for is still in flight.
        wakes[1].drive(small).unwrap().wait().unwrap();
        gate.open();
    });
}

#[test]
fn a_waiting_submitter_gets_in_among_endless_newcomers() {
    in_time(|| {
        let mut flow = Flow::builder::<()>("barging");
        flow.workers(1).inflight(8);
        let (work, done) = (flow.inlet::<u64>("work"), flow.retire());
        flow.stage(work, |_: &mut u64, _| {
            thread::sleep(ms(2));
            Ok(())
        })
        .to(done);
        let service = flow.build(work).unwrap().start();
        for n in 0..8 {
            service.send(n).unwrap();
        }
        let submitter = service.submitter();
        let waiter = thread::spawn(move || submitter.submit(99).map(drop).unwrap());
        while !waiter.is_finished() {
            let _ = service.try_submit(1);
        }
        waiter.join().unwrap();
    });
}

#[test]
fn the_first_in_line_is_woken_by_the_first_unit_whose_bytes_suffice() {
    in_time(|| {
        let service = parcels(10).start();
        let (first, second) = (Gate::default(), Gate::default());
        let stays = service.submit(Parcel { bytes: 900, gate: first.clone() }).unwrap();
        let goes = service.submit(Parcel { bytes: 100, gate: second.clone() }).unwrap();
        let mut small = pin!(service.submit_async(Parcel { bytes: 50, gate: opened() }));
        let mut large = pin!(service.submit_async(Parcel { bytes: 900, gate: opened() }));
        let wakes = [Arc::new(Wakes::default()), Arc::new(Wakes::default())];
        assert!(wakes[0].poll(small.as_mut()).is_pending());
        assert!(wakes[1].poll(large.as_mut()).is_pending());
        second.open();
        goes.wait().unwrap();
        // The unit of 900 bytes stays in flight until the small unit, which now has room, has run.
        wakes[0].drive(small).unwrap().wait().unwrap();
        assert!(wakes[1].poll(large.as_mut()).is_pending());
        first.open();
        stays.wait().unwrap();
        wakes[1].drive(large).unwrap().wait().unwrap();
    });
}

#[test]
fn a_unit_larger_than_the_budget_gets_in_among_endless_small_ones() {
    in_time(|| {
        let service = parcels(10).start();
        let over = Arc::new(AtomicBool::new(false));
        let source = thread::spawn({
            let (submitter, over) = (service.submitter(), over.clone());
            move || {
                while !over.load(Ordering::SeqCst) {
                    submitter.send(Parcel { bytes: 10, gate: opened() }).unwrap();
                }
            }
        });
        thread::sleep(ms(10));
        service.submit(Parcel { bytes: 2000, gate: opened() }).unwrap().wait().unwrap();
        over.store(true, Ordering::SeqCst);
        source.join().unwrap();
        let report = service.drain();
        assert_eq!((report.oversize, report.left), (1, 0));
    });
}

#[test]
fn a_unit_that_waits_for_memory_gets_it_although_another_is_delayed() {
    in_time(|| {
        let mut flow = Flow::builder::<()>("memory");
        flow.inflight(10).memory(100).workers(2);
        let (grow, done) = (flow.inlet::<u64>("grow"), flow.retire());
        flow.stage(grow, |n: &mut u64, cx| {
            if *n == 11 {
                cx.reserve(95)?;
            }
            Ok(())
        })
        .batch(Batch::of(1))
        .idempotent()
        .bytes(|_| 10)
        .to(done);
        let service = flow.build(grow).unwrap().start();
        let control = service.control();
        let _delayed = service.submit_at(1, Instant::now() + 10 * LONG).unwrap();
        let waits = service.submit(11).unwrap();
        while control.snapshot().waiting_for_memory == 0 {
            thread::sleep(ms(1));
        }
        service.submit(2).unwrap().wait().unwrap();
        waits.wait().unwrap();
        control.abandon();
        assert_eq!(service.drain().left, 1);
    });
}

#[test]
fn a_stage_that_submits_to_its_own_full_flow_is_refused_at_once() {
    in_time(|| {
        type Refused = Arc<Mutex<Vec<String>>>;
        let own: Arc<OnceLock<Submitter<u64, ()>>> = Arc::default();
        let (refused, accepted): (Refused, _) = (Arc::default(), Arc::new(AtomicU64::new(0)));
        let mut flow = Flow::builder::<()>("own");
        flow.inflight(1).workers(1);
        let (work, done) = (flow.inlet::<u64>("work"), flow.retire());
        let (submitter, said, sent) = (own.clone(), refused.clone(), accepted.clone());
        flow.stage(work, move |n: &mut u64, _| {
            if *n == 0 {
                let submitter = submitter.get().expect("set before the first unit");
                let mut said = said.lock().unwrap();
                said.push(format!("{:?}", submitter.submit(1).err()));
                said.push(format!("{:?}", submitter.submit_deadline(1, Instant::now() + 10 * LONG).err()));
                // The gate still takes some units, which wait there; after that, a send is refused as well.
                while submitter.send(1).is_ok() {
                    sent.fetch_add(1, Ordering::SeqCst);
                }
            }
            Ok(())
        })
        .to(done);
        let service = flow.build(work).unwrap().start();
        let _ = own.set(service.submitter());
        service.submit(0).unwrap().wait().unwrap();
        assert_eq!(*refused.lock().unwrap(), ["Some(Full(…))", "Some(Full(…))"]);
        let report = service.drain();
        assert_eq!(report.retired, 1 + accepted.load(Ordering::SeqCst));
    });
}

#[test]
fn a_time_limit_applies_to_each_unit_of_a_batch() {
    in_time(|| {
        let mut flow = Flow::builder::<()>("limit");
        flow.inflight(10_000).workers(1);
        let (work, done) = (flow.inlet::<u64>("work"), flow.retire());
        flow.stage(work, |n: &mut u64, cx| {
            if *n == 3000 {
                let late = cx.deadline().expect("the stage has a limit") + ms(1);
                thread::sleep(late.saturating_duration_since(Instant::now()));
            }
            Ok(())
        })
        .batch(Batch::of(64))
        .timeout(ms(2000))
        .to(done);
        let report = flow.build(work).unwrap().run(0..4000);
        let late: Vec<u64> = report.dead_letters.iter().map(|letter| letter.unit).collect();
        assert_eq!((late.as_slice(), report.retired), ([3000].as_slice(), 3999));
    });
}

#[test]
fn the_longest_time_limit_never_expires() {
    in_time(|| {
        let mut flow = Flow::builder::<()>("no limit");
        let (work, done) = (flow.inlet::<u64>("work"), flow.retire());
        flow.stage(work, |_: &mut u64, _| Ok(())).timeout(Duration::MAX).to(done);
        let report = flow.build(work).unwrap().run(0..3);
        assert_eq!((report.retired, report.dead_lettered), (3, 0), "{:?}", report.dead_letters);
    });
}

#[test]
fn an_input_that_panics_when_dropped_fails_no_other_unit() {
    struct Bomb(bool);
    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(!self.0 || thread::panicking(), "dropped");
        }
    }
    in_time(|| {
        let mut flow = Flow::builder::<()>("bombs");
        flow.workers(1);
        let (fail, done) = (flow.inlet::<Bomb>("fail"), flow.retire());
        flow.stage(fail, |bomb: &mut Bomb, _| if bomb.0 { Err(Failure::msg("skip")) } else { Ok(()) })
            .after_failure(AfterFailure::Skip)
            .to(done);
        let report = flow.build(fail).unwrap().run([true, false, true, false].map(Bomb));
        assert_eq!((report.admitted, report.retired, report.left), (4, 4, 0));
        assert_eq!(report.skipped, 2);
    });
}

#[test]
fn an_inlet_of_another_flow_is_refused_everywhere() {
    let mut other = Flow::builder::<()>("other");
    let far: Inlet<u64> = (0..6).map(|n| other.inlet(n.to_string())).last().unwrap();
    let mut flow = Flow::builder::<()>("until");
    let token = flow.tokens("token", 1);
    let (work, done) = (flow.inlet::<u64>("work"), flow.retire());
    flow.stage(work, |_: &mut u64, _| Ok(())).need(Need::tokens(token, 1).until(far)).to(done);
    assert_eq!(flow.build(work).unwrap_err(), BuildError::Foreign { stage: "work".into() });

    let mut flow = Flow::builder::<u64>("exit");
    let (work, done) = (flow.inlet::<u64>("work"), flow.retire());
    flow.update(work, |_, _| Ok(())).to(select(|_| 0, [done.into(), far.into()]));
    assert_eq!(flow.build(work).unwrap_err(), BuildError::Foreign { stage: "work".into() });
}

#[test]
fn a_ceiling_above_the_maximum_of_workers_is_refused() {
    let mut flow = Flow::builder::<()>("ceiling");
    let (work, done) = (flow.inlet::<u64>("work"), flow.retire());
    flow.stage(work, |_: &mut u64, _| Ok(())).workers(0..=MAX_WORKERS + 1).to(done);
    let error = flow.build(work).unwrap_err();
    assert_eq!(
        error,
        BuildError::Workers { stage: "work".into(), floor: 0, ceiling: MAX_WORKERS + 1, most: MAX_WORKERS }
    );
}
