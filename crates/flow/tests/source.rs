//! The source: workers pull it as long as there is room, and it may block, panic or be endless.

mod support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, channel};
use std::sync::{Arc, Barrier, Condvar, Mutex};
use std::thread;
use std::time::Instant;

use millstream_flow::{Batch, Either, Flow, Outcome, SourceEnd};
use support::{Gate, LONG, in_time, ms};

/// A source that gives its next unit when the test sends it.
fn by_hand() -> (mpsc::Sender<u64>, mpsc::IntoIter<u64>) {
    let (give, units) = channel();
    (give, units.into_iter())
}

#[test]
fn units_pulled_before_a_source_blocks_do_not_wait_for_it() {
    let (out, results) = channel();
    let mut flow = Flow::builder::<u64>("drip");
    let (step, done) = (flow.inlet("step"), flow.retire());
    flow.update(step, |_: &mut u64, _| Ok(())).batch(Batch::of(64)).to(done);
    flow.on_retire(move |n| out.send(n).unwrap());
    let (give, units) = by_hand();
    let service = flow.build(step).unwrap().start_from(units, |_| ());
    let mut next = 0;
    // Bursts make the source fast, so that a pull takes many units. Then the source blocks in the middle of a pull.
    for burst in [1, 10, 1000, 3, 1, 500, 7] {
        for _ in 0..burst {
            give.send(next).unwrap();
            next += 1;
        }
        for _ in 0..burst {
            results.recv_timeout(LONG).expect("a unit that was pulled waits for a later one");
        }
    }
    drop(give);
    assert_eq!(service.drain().retired, next);
}

#[test]
fn a_blocked_source_keeps_no_worker_from_pulled_units() {
    let (give, units) = by_hand();
    let mut flow = Flow::builder::<()>("one worker");
    flow.workers(1);
    let (out, results) = channel();
    let (step, done) = (flow.inlet("step"), flow.retire());
    flow.stage(step, move |n: &mut u64, _| {
        out.send(*n).unwrap();
        thread::sleep(ms(1));
        Ok(())
    })
    .to(done);
    let service = flow.build(step).unwrap().start_from(units, |_| ());
    for n in 0..20 {
        give.send(n).unwrap();
    }
    // The pull that waits for unit 20 must lose the slot of the only worker.
    let ran: Vec<u64> = (0..20).map(|_| results.recv_timeout(LONG).expect("the source keeps the worker")).collect();
    assert_eq!(ran, (0..20).collect::<Vec<_>>());
    drop(give);
    assert_eq!(service.drain().retired, 20);
}

#[test]
fn the_source_is_pulled_while_all_units_but_one_wait_for_each_other() {
    // Both stages are known to be fast before the workers meet, so the engine does not expect them to block.
    let meet = Arc::new(Barrier::new(3));
    let mut flow = Flow::builder::<()>("meet");
    flow.workers(3);
    let (step, done) = (flow.inlet("step"), flow.retire());
    let here = meet.clone();
    flow.stage(step, move |n: &mut u64, _| {
        if *n >= 3000 {
            here.wait();
        }
        Ok(())
    })
    .batch(Batch::of(1))
    .to(done);
    let (tell, over) = channel();
    thread::spawn(move || drop(tell.send(flow.build(step).unwrap().run(0..3003))));
    assert_eq!(over.recv_timeout(LONG).expect("the flow hangs").retired, 3003);
}

#[test]
fn a_waiting_worker_with_many_units_takes_no_other_workers_seat() {
    // Units are fast at first, so a worker takes many at once. One of its units then waits for the last unit of all.
    // Slow units come in between, after which a worker would get only one unit at a time.
    const WAITS: u64 = 20_000;
    const SLOW: u64 = WAITS + 200;
    const ALL: u64 = SLOW + 50;
    in_time(|| {
        let gate = Gate::default();
        let mut flow = Flow::builder::<()>("seats");
        // More units may be in flight than one worker takes at once.
        flow.workers(2).inflight(10_000);
        let (step, done) = (flow.inlet("step"), flow.retire());
        let slow = Arc::new(AtomicU64::new(SLOW));
        let (held, counts) = (gate.clone(), slow.clone());
        flow.stage(step, move |n: &mut u64, _| {
            match *n {
                WAITS => held.pass(),
                SLOW..ALL => {
                    thread::sleep(ms(1));
                    counts.fetch_add(1, Ordering::Relaxed);
                }
                ALL => held.open(),
                _ => {}
            }
            Ok(())
        })
        .to(done);
        let service = flow.build(step).unwrap().start_from(0..ALL, |_| ());
        while slow.load(Ordering::Relaxed) < ALL || service.control().snapshot().workers_busy > 1 {
            thread::sleep(ms(1));
        }
        service.submit(ALL).unwrap().wait().unwrap();
        assert_eq!(service.drain().retired, ALL + 1);
    });
}

#[test]
fn a_waiting_unit_holds_up_no_other_under_a_small_cap() {
    // Units are so fast that a worker takes as many as may be in flight. Then one of its units waits for a later
    // unit.
    const WAITS: u64 = 20_000;
    const OPENS: u64 = WAITS + 100;
    for (workers, cap) in [(2, 2), (2, 3), (2, 8), (3, 40), (4, 4)] {
        in_time(move || {
            let gate = Gate::default();
            let mut flow = Flow::builder::<()>("few");
            flow.workers(workers).inflight(cap);
            let (step, done) = (flow.inlet("step"), flow.retire());
            flow.stage(step, move |n: &mut u64, _| {
                match *n {
                    WAITS => gate.pass(),
                    OPENS => gate.open(),
                    _ => {}
                }
                Ok(())
            })
            .to(done);
            assert_eq!(flow.build(step).unwrap().run(0..OPENS + 1).retired, OPENS + 1);
        });
    }
}

#[test]
fn finished_units_go_on_while_their_worker_waits_in_the_next() {
    // The first stage's units are so fast that a worker takes several at once. Then each unit waits until the previous
    // unit has passed the second stage.
    const WAITS: u64 = 20_000;
    const ALL: u64 = WAITS + 40;
    for round in 0..5 {
        in_time(move || {
            let passed = Arc::new((Mutex::new(0), Condvar::new()));
            let mut flow = Flow::builder::<()>("in turn");
            flow.workers(2);
            let (step, after, done) = (flow.inlet("step"), flow.inlet("after"), flow.retire());
            let waits = passed.clone();
            flow.stage(step, move |n: &mut u64, _| {
                if *n > WAITS + round && *n % 16 == round {
                    let (number, changed) = &*waits;
                    drop(changed.wait_while(number.lock().unwrap(), |number| *number < *n - 1).unwrap());
                }
                Ok(*n)
            })
            .batch(Batch::of(1))
            .to(after);
            flow.stage(after, move |n: &mut u64, _| {
                let (number, changed) = &*passed;
                let mut number = number.lock().unwrap();
                *number = (*n).max(*number);
                changed.notify_all();
                Ok(())
            })
            .blocking()
            .to(done);
            assert_eq!(flow.build(step).unwrap().run(0..ALL).retired, ALL);
        });
    }
}

#[test]
fn a_ceiling_of_one_holds_while_the_worker_is_in_another_stage() {
    // The worker has several batches of the first stage in hand while it runs one of them in the second stage.
    const ALL: u64 = 60_000;
    in_time(|| {
        let (inside, most) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let mut flow = Flow::builder::<()>("alone");
        flow.workers(3);
        let (step, after, done) = (flow.inlet("step"), flow.inlet("after"), flow.retire());
        let counts = most.clone();
        flow.stage(step, move |n: &mut u64, _| {
            counts.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            // The spin lasts long enough for two workers to meet.
            (0..20).for_each(|_| std::hint::spin_loop());
            inside.fetch_sub(1, Ordering::SeqCst);
            Ok(*n)
        })
        .batch(Batch::of(1))
        .workers(0..=1)
        .to(after);
        flow.stage(after, |n: &mut u64, _| {
            if n.is_multiple_of(600) {
                thread::sleep(ms(1 + *n / 600 % 4));
            }
            Ok(())
        })
        .batch(Batch::of(1))
        .to(done);
        let service = flow.build(step).unwrap().start_from(0..ALL, |_| ());
        let mut snapshot = service.control().snapshot();
        while snapshot.retired < ALL {
            let there: u64 = snapshot.stages.iter().map(|stage| stage.waiting + stage.running).sum();
            assert!(there <= snapshot.in_flight, "{snapshot:?}");
            thread::yield_now();
            snapshot = service.control().snapshot();
        }
        assert_eq!((service.drain().retired, most.load(Ordering::SeqCst)), (ALL, 1));
    });
}

#[test]
fn a_source_is_pulled_while_all_workers_are_busy_for_long() {
    // The blocking stage has its own threads. It must not starve for lack of a pull, however often the flow is full in
    // the meantime.
    for cap in [2, 3, 10, 100] {
        in_time(move || {
            let gate = Gate::default();
            let seen = Arc::new(AtomicU64::new(0));
            let mut flow = Flow::builder::<()>("starve");
            flow.workers(1).inflight(cap);
            let first = flow.inlet::<u64>("first");
            let (long, wait, done) = (flow.inlet("long"), flow.inlet("wait"), flow.retire());
            let branch = |n: &mut u64| if *n == 0 { Either::Left(*n) } else { Either::Right(*n) };
            flow.stage(first, move |n: &mut u64, _| Ok(branch(n))).blocking().to((long, wait));
            let held = gate.clone();
            flow.stage(long, move |_: &mut u64, _| {
                held.pass();
                Ok(())
            })
            .to(done);
            let counts = seen.clone();
            flow.stage(wait, move |_: &mut u64, _| {
                thread::sleep(ms(10));
                counts.fetch_add(1, Ordering::Relaxed);
                Ok(())
            })
            .blocking()
            .to(done);
            let service = flow.build(first).unwrap().start_from(0..50, |_| ());
            while seen.load(Ordering::Relaxed) < 49 {
                thread::sleep(ms(1));
            }
            gate.open();
            assert_eq!(service.drain().retired, 50);
        });
    }
}

#[test]
fn a_panic_in_the_source_end_listener_is_contained() {
    for workers in [1, 2] {
        in_time(move || {
            let mut flow = Flow::builder::<()>("told");
            flow.workers(workers);
            let (step, done) = (flow.inlet("step"), flow.retire());
            flow.stage(step, |_: &mut u64, _| Ok(())).to(done);
            let service = flow.build(step).unwrap().start_from(0..100, |_| panic!("not interested"));
            while service.control().snapshot().retired < 100 {
                thread::sleep(ms(1));
            }
            service.submit(7).unwrap().wait().unwrap();
            assert_eq!(service.drain().retired, 101);
        });
    }
}

#[test]
fn a_source_panic_after_a_stop_is_reported() {
    // The source panics in three situations: at once; after another worker has taken over the slot of the pulling
    // worker; and after the drain has stopped waiting for the source.
    for pause in [0, 10, 150] {
        in_time(move || {
            let mut flow = Flow::builder::<()>("late");
            let (step, done) = (flow.inlet("step"), flow.retire());
            flow.stage(step, |_: &mut u64, _| Ok(())).to(done);
            let flow = flow.build(step).unwrap();
            let control = flow.control();
            let units = (0..2000u64).inspect(move |n| {
                if *n == 1000 {
                    control.stop();
                    thread::sleep(ms(pause));
                    panic!("unit 1000 cannot be made");
                }
            });
            let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| flow.run(units)));
            let panic = run.expect_err("the source panics");
            assert_eq!(panic.downcast_ref(), Some(&"unit 1000 cannot be made"), "after {pause} ms");
        });
    }
}

#[test]
fn a_drain_admits_units_the_source_has_given() {
    // The drain waits for a pull of less than 0.1 s. If the machine keeps the source's thread from running for that
    // long, the test tries again.
    let is_kept = |round: u64| {
        let (give, units) = channel();
        let taken = Arc::new(AtomicU64::new(0));
        let count = taken.clone();
        let units = units.into_iter().inspect(move |_: &u64| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        let mut flow = Flow::builder::<()>("drained");
        let (step, done) = (flow.inlet("step"), flow.retire());
        flow.stage(step, |_: &mut u64, _| Ok(())).to(done);
        let begun = Instant::now();
        let service = flow.build(step).unwrap().start_from(units, |_| ());
        (0..20_000).for_each(|n| give.send(n).unwrap());
        thread::sleep(std::time::Duration::from_micros(round * 37 % 700));
        let report = service.drain();
        let (took, taken) = (begun.elapsed(), taken.load(Ordering::Relaxed));
        assert_eq!(report.admitted, report.retired);
        assert!(report.admitted == taken || took >= ms(100), "round {round}: {taken} given, {} kept", report.admitted);
        report.admitted == taken
    };
    for round in 0..60 {
        assert!((0..5).any(|_| is_kept(round)), "round {round}: what the source gave before the drain is lost");
    }
}

#[test]
fn a_drain_waits_briefly_for_a_pull_in_progress() {
    // The drain waits for 0.1 s. If the machine keeps the source's thread from running for that long, the test tries
    // again.
    let is_kept = |_: u32| {
        let (begun, taken) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (begins, count) = (begun.clone(), taken.clone());
        let units = (0..).inspect(move |n: &u64| {
            if *n == 5 {
                begins.store(true, Ordering::SeqCst);
                thread::sleep(ms(20));
            }
            count.fetch_add(1, Ordering::SeqCst);
        });
        let mut flow = Flow::builder::<()>("about to give");
        let (step, done) = (flow.inlet("step"), flow.retire());
        flow.stage(step, |_: &mut u64, _| Ok(())).to(done);
        let service = flow.build(step).unwrap().start_from(units, |_| ());
        while !begun.load(Ordering::SeqCst) {
            thread::sleep(ms(1));
        }
        // After this sleep, the thread that pulls no longer counts as busy.
        thread::sleep(ms(6));
        let admitted = service.drain().admitted;
        thread::sleep(ms(40));
        admitted > 5 && admitted == taken.load(Ordering::SeqCst)
    };
    assert!((0..5).any(is_kept), "what the source gave after the drain began is lost");
}

#[test]
fn a_batch_waits_to_fill_while_others_are_taken() {
    const WAIT: u64 = 300;
    // The last four units should open a new batch. If sending the earlier units takes as long as a batch waits, one of
    // their batches may run before it is full. Then the last units join a batch that opened earlier, and the test tries
    // again.
    let waits = |_: u32| {
        let (give, units) = by_hand();
        let ran = Arc::new(Mutex::new(Vec::new()));
        let mut flow = Flow::builder::<()>("fill");
        let (step, done) = (flow.inlet("step"), flow.retire());
        let list = ran.clone();
        flow.stage(step, move |n: &mut u64, _| {
            if *n >= 8000 {
                list.lock().unwrap().push(Instant::now());
            }
            Ok(())
        })
        .batch(Batch::of(8).wait(ms(WAIT)))
        .to(done);
        let begun = Instant::now();
        let service = flow.build(step).unwrap().start_from(units, |_| ());
        (0..8000).for_each(|n| give.send(n).unwrap());
        let sent = Instant::now();
        (8000..8004).for_each(|n| give.send(n).unwrap());
        drop(give);
        while ran.lock().unwrap().len() < 4 {
            thread::sleep(ms(1));
        }
        // The batch cannot have opened before its first unit was sent, so this is true on a machine of any speed.
        let waited = ran.lock().unwrap()[0] - sent;
        assert!(waited >= ms(WAIT) || sent - begun >= ms(WAIT), "it ran {waited:?} after it came");
        assert_eq!(service.drain().retired, 8004);
        waited >= ms(WAIT)
    };
    assert!((0..3).any(waits), "no batch waited to fill");
}

#[test]
fn weights_are_right_after_a_chain() {
    // A unit weighs 100 bytes, then 10, and then the weight that the third stage computes. In a stage without a weight
    // function, it weighs as much as before.
    for (third, each) in [(None, 10), (Some(10), 10), (Some(60), 60), (Some(100), 100)] {
        in_time(move || {
            let gate = Gate::default();
            let mut flow = Flow::builder::<()>("weights");
            flow.inflight(10_000);
            let (a, b, c, done) = (flow.inlet("a"), flow.inlet("b"), flow.inlet("c"), flow.retire());
            flow.update(a, |_: &mut u64, _| Ok(())).bytes(|_| 100).to(b);
            flow.update(b, |_: &mut u64, _| Ok(())).bytes(|_| 10).to(c);
            let held = gate.clone();
            let mut stage = flow.stage(c, move |_: &mut u64, _| {
                held.pass();
                Ok(())
            });
            stage = stage.blocking();
            if let Some(bytes) = third {
                stage = stage.bytes(move |_| bytes);
            }
            stage.to(done);
            let service = flow.build(a).unwrap().start_from(0..2000, |_| ());
            loop {
                let now = service.control().snapshot();
                if now.stages[2].waiting + now.stages[2].running == 2000 {
                    assert_eq!(now.bytes_in_flight, 2000 * each, "third stage {third:?}");
                    break;
                }
                thread::sleep(ms(1));
            }
            gate.open();
            assert_eq!(service.drain().left, 0);
        });
    }
}

#[test]
fn a_source_is_not_pulled_beyond_the_cap() {
    let pulled = Arc::new(AtomicU64::new(0));
    let release = Arc::new(AtomicBool::new(false));
    let mut flow = Flow::builder::<()>("cap");
    flow.inflight(10);
    let (step, done) = (flow.inlet("step"), flow.retire());
    let open = release.clone();
    flow.stage(step, move |_: &mut u64, _| {
        while !open.load(Ordering::Relaxed) {
            thread::sleep(ms(1));
        }
        Ok(())
    })
    .to(done);
    let counts = pulled.clone();
    let units = (0..100u64).inspect(move |_| {
        counts.fetch_add(1, Ordering::Relaxed);
    });
    let service = flow.build(step).unwrap().start_from(units, |_| ());
    thread::sleep(ms(200));
    assert!(pulled.load(Ordering::Relaxed) <= 10, "{} pulled", pulled.load(Ordering::Relaxed));
    release.store(true, Ordering::Relaxed);
    let report = service.drain();
    assert!(report.peak_in_flight <= 10, "{}", report.peak_in_flight);
}

#[test]
fn units_are_numbered_from_zero_without_a_gap() {
    for batch in [1, 7, 64] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut flow = Flow::builder::<()>("numbers");
        let (step, done) = (flow.inlet("step"), flow.retire());
        let list = seen.clone();
        flow.stage(step, move |n: &mut u64, cx| {
            list.lock().unwrap().push((*n, cx.unit()));
            Ok(())
        })
        .batch(Batch::of(batch))
        .to(done);
        // The source blocks now and then, so pulls are cut short.
        let units = (0..3000u64).inspect(|n| {
            if n % 700 == 699 {
                thread::sleep(ms(5));
            }
        });
        assert_eq!(flow.build(step).unwrap().run(units).retired, 3000);
        let mut seen = std::mem::take(&mut *seen.lock().unwrap());
        seen.sort_unstable();
        assert!(seen.iter().enumerate().all(|(i, &(n, id))| (n, id) == (i as u64, i as u64)), "batches of {batch}");
    }
}

#[test]
fn the_listener_is_told_once_how_a_source_ended() {
    let build = |name: &str| {
        let mut flow = Flow::builder::<u64>(name);
        let (step, done) = (flow.inlet("step"), flow.retire());
        flow.update(step, |_: &mut u64, _| Ok(())).to(done);
        flow.build(step).unwrap()
    };
    let (tell, told) = channel();
    let ended = tell.clone();
    let service = build("whole").start_from(0..100, move |end| ended.send(end).unwrap());
    assert!(matches!(told.recv_timeout(LONG), Ok(SourceEnd::Exhausted)));
    assert_eq!(service.drain().retired, 100);

    let ended = tell.clone();
    let service = build("stopped").start_from(0.., move |end| ended.send(end).unwrap());
    thread::sleep(ms(20));
    service.control().stop();
    assert!(matches!(told.recv_timeout(LONG), Ok(SourceEnd::Closed)));
    let report = service.drain();
    assert_eq!((report.outcome, report.left), (Outcome::Stopped, 0));

    let ended = tell.clone();
    let units = (0..).inspect(|n| assert!(*n < 5000, "unit {n} cannot be made"));
    let service = build("panics").start_from(units, move |end| ended.send(end).unwrap());
    assert!(matches!(told.recv_timeout(LONG), Ok(SourceEnd::Panicked(_))));
    let report = service.drain();
    assert_eq!(report.outcome, Outcome::Abandoned);
    assert_eq!(report.admitted, report.retired + report.left);
    drop(tell);
    assert!(told.recv_timeout(LONG).is_err(), "told twice");
}

#[test]
fn a_flow_drains_although_its_source_is_stuck() {
    let (give, units) = by_hand();
    let mut flow = Flow::builder::<u64>("stuck");
    let (step, done) = (flow.inlet("step"), flow.retire());
    flow.update(step, |_: &mut u64, _| Ok(())).to(done);
    let service = flow.build(step).unwrap().start_from(units, |_| ());
    for n in 0..10 {
        give.send(n).unwrap();
    }
    while service.control().snapshot().retired < 10 {
        thread::sleep(ms(1));
    }
    let (tell, over) = channel();
    thread::spawn(move || drop(tell.send(service.drain())));
    let report = over.recv_timeout(LONG).expect("the flow waits for its source");
    assert_eq!((report.retired, report.left), (10, 0));
    drop(give);
}

#[test]
fn a_borrowed_source_is_not_used_after_the_run() {
    let words: Vec<String> = (0..10_000).map(|n| n.to_string()).collect();
    let mut flow = Flow::builder::<()>("borrow");
    let (step, done) = (flow.inlet::<usize>("step"), flow.retire());
    let control = {
        flow.stage(step, |_: &mut usize, _| Ok(())).to(done);
        flow.build(step).unwrap()
    };
    let handle = control.control();
    let stopper = thread::spawn(move || {
        thread::sleep(ms(2));
        handle.stop();
    });
    let report = control.run(words.iter().map(String::len).cycle());
    stopper.join().unwrap();
    drop(words);
    assert_eq!(report.admitted, report.retired);
}

#[test]
fn a_snapshot_shows_where_a_chained_batch_is() {
    let release = Arc::new(AtomicBool::new(false));
    let (tell, ended) = channel();
    let mut flow = Flow::builder::<u64>("chain");
    flow.workers(1);
    let (one, two, done) = (flow.inlet("one"), flow.inlet("two"), flow.retire());
    flow.update(one, |_: &mut u64, _| Ok(())).batch(Batch::of(4)).to(two);
    let open = release.clone();
    flow.update(two, move |n: &mut u64, _| {
        while *n == 5000 && !open.load(Ordering::Relaxed) {
            thread::sleep(ms(1));
        }
        Ok(())
    })
    .batch(Batch::of(4))
    .to(done);
    let service = flow.build(one).unwrap().start_from(0..6000, move |end| tell.send(end).unwrap());
    let deadline = Instant::now() + LONG;
    loop {
        let now = service.control().snapshot();
        if now.stages[1].running > 0 && now.retired >= 4980 {
            assert_eq!((now.stages[0].running, now.stages[1].workers_busy), (0, 1));
            break;
        }
        assert!(Instant::now() < deadline, "the batch is not seen in its stage: {now:?}");
        thread::sleep(ms(1));
    }
    release.store(true, Ordering::Relaxed);
    assert!(matches!(ended.recv_timeout(LONG), Ok(SourceEnd::Exhausted)));
    assert_eq!(service.drain().retired, 6000);
}
