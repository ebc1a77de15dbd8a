//! User code that panics, or calls back into the flow, at awkward moments: in wakers, destructors and listeners.

#[path = "support/gated.rs"]
mod gated;
mod support;
#[path = "support/waker.rs"]
mod waker;

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use gated::gated;
use millstream_flow::{Batch, Cause, Failure, Flow, Gather, Need, Retry, Unfinished};
use support::{in_time, ms};
use waker::Hooks;

fn poll<F: Future + Unpin>(future: &mut F, waker: &Waker) -> Poll<F::Output> {
    std::pin::Pin::new(future).poll(&mut Context::from_waker(waker))
}

/// Polls the future until it is ready.
fn drive<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return output;
        }
        thread::sleep(ms(1));
    }
}

fn explode() {
    panic!("the test's waker panics");
}

#[test]
fn a_submitter_whose_wake_up_panics_only_loses_its_position() {
    in_time(|| {
        let (flow, gate) = gated(1);
        let service = flow.start();
        let first = service.submit(1).unwrap();
        let mut lost = service.submit_async(2);
        let mut next = service.submit_async(3);
        let woken = Arc::new(AtomicU64::new(0));
        let count = woken.clone();
        let bad = Hooks { wake: Box::new(explode), ..Hooks::default() }.into_waker();
        let wake = move || {
            count.fetch_add(1, Ordering::SeqCst);
        };
        let good = Hooks { wake: Box::new(wake), ..Hooks::default() };
        assert!(poll(&mut lost, &bad).is_pending() && poll(&mut next, &good.into_waker()).is_pending());
        gate.open();
        assert_eq!(first.wait().unwrap(), 2);
        // The worker continues, and the next submitter in line is woken although the first one never enters.
        while woken.load(Ordering::SeqCst) == 0 {
            thread::sleep(ms(1));
        }
        assert_eq!(drive(drive(next).unwrap()).unwrap(), 6);
        assert_eq!(drive(drive(lost).unwrap()).unwrap(), 4);
        let report = service.drain();
        assert_eq!((report.admitted, report.retired, report.left), (3, 3, 0));
    });
}

#[test]
fn a_ticket_keeps_its_result_when_its_wakers_panic() {
    in_time(|| {
        let (flow, gate) = gated(1);
        let service = flow.start();
        let mut ticket = service.submit(7).unwrap();
        let unclonable = Hooks { clone: Box::new(explode), ..Hooks::default() }.into_waker();
        let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| poll(&mut ticket, &unclonable)));
        assert!(panics.is_err());
        // The ticket's clone of the first waker panics when the ticket drops it. The second waker panics when the unit
        // wakes it.
        let undroppable = Hooks { drop: Box::new(explode), ..Hooks::default() }.into_waker();
        assert!(poll(&mut ticket, &undroppable).is_pending());
        let unwakable = Hooks { wake: Box::new(explode), ..Hooks::default() }.into_waker();
        assert!(poll(&mut ticket, &unwakable).is_pending());
        std::mem::forget(undroppable);
        gate.open();
        assert_eq!(drive(ticket).unwrap(), 14);
        assert_eq!(service.submit(8).unwrap().wait().unwrap(), 16);
    });
}

#[test]
fn a_waker_may_use_the_flow_in_every_step() {
    in_time(|| {
        let (flow, gate) = gated(1);
        let service = flow.start();
        let looks = || -> Box<dyn Fn() + Send + Sync> {
            let control = service.control();
            Box::new(move || drop(control.snapshot()))
        };
        let hooks = || Hooks { clone: looks(), wake: looks(), drop: looks() }.into_waker();
        let mut ticket = service.submit(1).unwrap();
        let mut waits = service.submit_async(2);
        for _ in 0..2 {
            assert!(poll(&mut ticket, &hooks()).is_pending() && poll(&mut waits, &hooks()).is_pending());
        }
        gate.open();
        assert_eq!(drive(ticket).unwrap(), 2);
        assert_eq!(drive(drive(waits).unwrap()).unwrap(), 4);
    });
}

#[test]
fn a_submission_whose_waker_panics_keeps_its_unit() {
    in_time(|| {
        let (flow, gate) = gated(1);
        let service = flow.start();
        let first = service.submit(1).unwrap();
        let mut waits = service.submit_async(2);
        let unclonable = Hooks { clone: Box::new(explode), ..Hooks::default() }.into_waker();
        let panics =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| poll(&mut waits, &unclonable).is_pending()));
        assert!(panics.is_err());
        gate.open();
        assert_eq!(first.wait().unwrap(), 2);
        assert_eq!(drive(drive(waits).unwrap()).unwrap(), 4);
    });
}

#[test]
fn wake_ups_that_poll_at_once_do_not_nest() {
    in_time(|| {
        const TASKS: u64 = 20_000;
        let (flow, gate) = gated(1);
        let service = flow.start();
        let submitter: &'static _ = Box::leak(Box::new(service.submitter()));
        let control = service.control();
        let first = service.submit(0).unwrap();
        let entered = Arc::new(AtomicU64::new(0));
        for n in 0..TASKS {
            let task = Arc::new(Mutex::new(Some(submitter.submit_async(n))));
            let (count, its) = (entered.clone(), task.clone());
            let wake = move || {
                let Some(mut future) = its.lock().unwrap().take() else { return };
                match poll(&mut future, Waker::noop()) {
                    Poll::Ready(ticket) => drop((ticket.unwrap(), count.fetch_add(1, Ordering::SeqCst))),
                    Poll::Pending => *its.lock().unwrap() = Some(future),
                }
            };
            let waker = Hooks { wake: Box::new(wake), ..Hooks::default() }.into_waker();
            assert!(poll(task.lock().unwrap().as_mut().unwrap(), &waker).is_pending());
        }
        control.set_inflight(2 * TASKS).unwrap();
        while entered.load(Ordering::SeqCst) < TASKS {
            thread::sleep(ms(1));
        }
        gate.open();
        first.wait().unwrap();
        assert_eq!(service.drain().retired, TASKS + 1);
    });
}

/// A payload that panics when it is dropped, even during another panic. It contains another such payload.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        std::panic::panic_any(Bomb);
    }
}

#[test]
fn a_result_survives_a_panicking_input_destructor() {
    in_time(|| {
        let mut flow = Flow::builder::<u64>("bombs");
        let sum = Arc::new(AtomicU64::new(0));
        let add = sum.clone();
        flow.workers(2).on_retire(move |n| {
            add.fetch_add(n, Ordering::SeqCst);
        });
        let (defuse, pass, done) = (flow.inlet::<Bomb>("defuse"), flow.inlet::<u64>("pass"), flow.retire());
        flow.stage(defuse, |_: &mut Bomb, _| Ok(1)).retry(Retry::times(2)).to(pass);
        flow.stage(pass, |n: &mut u64, _| Ok(*n)).to(done);
        let report = flow.build(defuse).unwrap().run((0..100).map(|_| Bomb));
        assert_eq!((report.retired, report.dead_lettered), (100, 0), "{:?}", report.dead_letters);
        assert_eq!((report.stages[0].failures, sum.load(Ordering::SeqCst)), (0, 100));
    });
}

#[test]
fn a_discarded_result_may_panic_when_dropped() {
    in_time(|| {
        let mut flow = Flow::builder::<Bomb>("late");
        flow.workers(1);
        let (late, done) = (flow.inlet::<u64>("late"), flow.retire());
        flow.stage(late, |_: &mut u64, cx| {
            thread::sleep(cx.deadline().unwrap().saturating_duration_since(Instant::now()) + ms(1));
            Ok(Bomb)
        })
        .timeout(ms(1))
        .to(done);
        let report = flow.build(late).unwrap().run(0..3);
        let causes: Vec<Cause> = report.dead_letters.iter().map(|letter| letter.cause).collect();
        assert_eq!(causes, [Cause::Timeout; 3]);
    });
}

#[test]
fn a_failure_message_survives_later_panics() {
    in_time(|| {
        let mut flow = Flow::builder::<()>("letters");
        flow.workers(1).on_dead_letter(drop);
        let (fail, done) = (flow.inlet::<Bomb>("fail"), flow.retire());
        flow.stage(fail, |_: &mut Bomb, _| -> Result<(), Failure> { Err(Failure::msg("the reason")) })
            .retry(Retry::times(1).backoff(ms(1)..ms(1)))
            .to(done);
        let service = flow.build(fail).unwrap().start();
        // The listener drops the letter, and with it the bomb.
        service.send(Bomb).unwrap();
        let ticket = service.submit(Bomb).unwrap();
        let Err(Unfinished::Dead(letter)) = ticket.wait() else { panic!("the stage did not give up the unit") };
        assert_eq!((letter.attempts, &*letter.message), (2, "the reason"));
        std::mem::forget(letter);
        let report = service.drain();
        assert_eq!((report.dead_lettered, report.stages[0].retries, report.left), (2, 2, 0));
    });
}

#[test]
fn abandoned_payloads_may_panic_when_their_flow_is_dropped() {
    in_time(|| {
        let mut flow = Flow::builder::<()>("left");
        flow.workers(1);
        let (wait, done) = (flow.inlet::<Bomb>("wait"), flow.retire());
        flow.stage(wait, |_: &mut Bomb, _| Ok(())).to(done);
        let service = flow.build(wait).unwrap().start();
        for _ in 0..3 {
            drop(service.submit_at(Bomb, Instant::now() + Duration::from_secs(3600)).unwrap());
        }
        service.control().abandon();
        assert_eq!(service.drain().left, 3);
    });
}

#[test]
fn a_stage_may_have_any_name() {
    in_time(|| {
        let mut flow = Flow::builder::<()>("a\0flow");
        let (odd, done) = (flow.inlet::<u64>("a\0name"), flow.retire());
        flow.stage(odd, |_: &mut u64, _| Ok(())).blocking().to(done);
        assert_eq!(flow.build(odd).unwrap().run(0..10).retired, 10);
    });
}

#[test]
fn pools_of_any_number_can_be_used_together() {
    let mut flow = Flow::builder::<()>("pools");
    let pools: Vec<_> = (0..130).map(|n| flow.pool(format!("pool {n}"), [n])).collect();
    let (take, done) = (flow.inlet::<u64>("take"), flow.retire());
    let theirs = pools.clone();
    let mut stage = flow.stage(take, move |_: &mut u64, cx| {
        let objects: Vec<_> = theirs.iter().map(|pool| cx.object(pool)).collect();
        assert!((0..).zip(&objects).all(|(n, object)| **object == n));
        Ok(())
    });
    for pool in &pools {
        stage = stage.need(Need::object(pool));
    }
    stage.to(done);
    let report = flow.build(take).unwrap().run(0..10);
    assert_eq!(report.retired, 10, "{:?}", report.dead_letters);
}

#[test]
fn two_services_that_send_to_each_other_do_not_deadlock() {
    in_time(|| {
        type Other = Arc<Mutex<Option<millstream_flow::Submitter<u64, ()>>>>;
        let begin = |name: &str, other: &Other| {
            let mut flow = Flow::builder::<()>(name);
            flow.inflight(1).workers(1);
            let (work, done) = (flow.inlet::<u64>("work"), flow.retire());
            let other = other.clone();
            flow.stage(work, move |n: &mut u64, _| {
                let other = other.lock().unwrap().clone().expect("set before the first unit");
                // The unit runs longer than the gate is attended, so a send finds the flow full.
                thread::sleep(ms(2));
                match *n {
                    0 => Ok(()),
                    n => other.submit(n - 1).map(drop).map_err(|refused| Failure::msg(refused.to_string())),
                }
            })
            .batch(Batch::of(1))
            .to(done);
            flow.build(work).unwrap().start()
        };
        let (to_left, to_right) = (Other::default(), Other::default());
        let (left, right) = (begin("left", &to_right), begin("right", &to_left));
        *to_left.lock().unwrap() = Some(left.submitter());
        *to_right.lock().unwrap() = Some(right.submitter());
        for _ in 0..20 {
            let tickets = (left.submit(3).unwrap(), right.submit(3).unwrap());
            for ticket in [tickets.0, tickets.1] {
                match ticket.wait() {
                    Ok(()) => {}
                    Err(Unfinished::Dead(letter)) => assert_eq!(letter.message, "the flow is full"),
                    Err(other) => panic!("{other}"),
                }
            }
        }
        let (left, right) = (thread::spawn(|| left.drain()), thread::spawn(|| right.drain()));
        for report in [left.join().unwrap(), right.join().unwrap()] {
            assert_eq!((report.admitted, report.left), (report.retired + report.dead_lettered, 0));
        }
    });
}

#[test]
fn a_ticket_that_learns_of_its_group_may_wait_for_other_members() {
    in_time(|| {
        let mut flow = Flow::builder::<u64>("members");
        flow.workers(2);
        let (gather, done) = (flow.inlet::<u64>("gather"), flow.retire());
        flow.gather(gather, Gather::into_vec().units(1_000).map(|group: Vec<u64>| group.len() as u64)).to(done);
        let service = flow.build(gather).unwrap().start();
        let (hears, heard) = channel();
        let (answers, answered) = channel();
        let (hears, answered) = (Mutex::new(hears), Mutex::new(answered));
        let joined = Arc::new(AtomicU64::new(0));
        let count = joined.clone();
        let wake = move || {
            hears.lock().unwrap().send(()).unwrap();
            let answer = answered.lock().unwrap().recv_timeout(Duration::from_secs(20));
            count.fetch_add(u64::from(answer.is_ok()), Ordering::SeqCst);
        };
        let waker = Hooks { wake: Box::new(wake), ..Hooks::default() }.into_waker();
        let mut first = loop {
            // If the unit joins before its ticket is polled, the round tests nothing.
            let mut ticket = service.submit(1).unwrap();
            if poll(&mut ticket, &waker).is_pending() {
                break ticket;
            }
        };
        heard.recv().unwrap();
        assert!(matches!(service.submit(2).unwrap().wait(), Err(Unfinished::Gathered)));
        answers.send(()).unwrap();
        assert!(matches!(drive(&mut first), Err(Unfinished::Gathered)));
        service.drain();
        assert_eq!(joined.load(Ordering::SeqCst), 1, "the second member joined meanwhile");
    });
}
