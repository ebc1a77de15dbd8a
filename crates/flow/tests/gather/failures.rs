//! Members and groups that fail, and flows that are abandoned.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use millstream_flow::{Cause, Failure, Flow, Gather, Need, Outcome, Retry};

use super::{collect, conserved, letters};

#[test]
fn a_member_that_fails_to_join_is_retried_or_dead_and_the_group_goes_on() {
    let mut flow = Flow::builder::<u64>("fails");
    let (sums, dead) = (collect(&mut flow), letters(&mut flow));
    let (gather, done) = (flow.inlet("gather"), flow.retire());
    let sum = Gather::fold(
        || 0,
        |sum: &mut u64, n: &mut u64, cx| {
            match *n {
                3 => return Err(Failure::msg("never")),
                4 if cx.attempt() == 1 => return Err(Failure::msg("not yet")),
                5 => resume_unwind(Box::new("panics")),
                _ => {}
            }
            *sum += *n;
            Ok(())
        },
    );
    flow.gather(gather, sum).retry(Retry::times(1).backoff(Duration::ZERO..Duration::from_micros(1))).to(done);
    let report = flow.build(gather).unwrap().run(0..10);
    conserved(&report);
    assert_eq!(*sums.lock().unwrap(), [45 - 3 - 5]);
    let mut inputs: Vec<u64> =
        dead.lock().unwrap().iter().map(|letter| *letter.input.as_ref().unwrap().downcast_ref().unwrap()).collect();
    inputs.sort_unstable();
    assert_eq!(inputs, [3, 5]);
}

#[test]
fn a_key_or_a_weight_that_panics_fails_its_unit_alone() {
    let mut flow = Flow::builder::<Vec<u64>>("panics");
    flow.workers(2);
    let (groups, dead) = (collect(&mut flow), letters(&mut flow));
    let (gather, done) = (flow.inlet("gather"), flow.retire());
    let key = |n: &u64| if n.is_multiple_of(10) { resume_unwind(Box::new("no key")) } else { *n % 3 };
    flow.gather(gather, Gather::into_vec().by_key(key)).to(done);
    let report = flow.build(gather).unwrap().run(0..100);
    conserved(&report);
    assert_eq!((report.dead_lettered, dead.lock().unwrap().len()), (10, 10));
    assert_eq!(groups.lock().unwrap().iter().map(Vec::len).sum::<usize>(), 90);
}

#[test]
fn a_panic_after_a_member_has_joined_fails_the_group_with_all_its_members() {
    let panics = |group: &Vec<u64>| group.last().is_some_and(|n| n % 10 == 7) && resume_unwind(Box::new("no verdict"));
    for (by_weight, first) in [(false, 0), (true, 0), (false, 7), (true, 7)] {
        let mut flow = Flow::builder::<Vec<u64>>("panics");
        let (groups, dead) = (collect(&mut flow), letters(&mut flow));
        let (gather, done) = (flow.inlet("gather"), flow.retire());
        let rules = Gather::into_vec().by_key(|n: &u64| n % 2).units(50);
        let rules = match by_weight {
            true => rules.weigh(move |group| u64::from(panics(group))),
            false => rules.full(panics),
        };
        let retry = Retry::times(2).backoff(Duration::ZERO..Duration::from_micros(1));
        flow.gather(gather, rules).bytes(|_| 3).retry(retry).to(done);
        let report = flow.build(gather).unwrap().run(first..100);
        conserved(&report);
        let mut units: Vec<u64> = groups.lock().unwrap().iter().flatten().copied().collect();
        for letter in &*dead.lock().unwrap() {
            assert_eq!((&letter.cause, &*letter.stage, &*letter.message), (&Cause::Panic, "gather", "no verdict"));
            let group: &Vec<u64> = letter.input.as_ref().unwrap().downcast_ref().unwrap();
            assert_eq!(group.last().unwrap() % 10, 7, "no member joins after the panic");
            units.extend(group);
        }
        assert_eq!((report.left, report.dead_lettered), (0, 10));
        units.sort_unstable();
        assert_eq!(units, (first..100).collect::<Vec<_>>(), "each member is in one group");
    }
}

#[test]
fn a_group_that_cannot_go_on_is_the_input_of_its_letter() {
    for (units, retries) in [(1, 0), (1, 2), (4, 0), (4, 2), (u64::MAX, 1)] {
        let mut flow = Flow::builder::<usize>("next");
        let dead = letters(&mut flow);
        let keys = flow.keyed_tokens("keys", 1);
        let (gather, next, done) = (flow.inlet("gather"), flow.inlet("next"), flow.retire());
        flow.gather(gather, Gather::into_vec().units(units))
            .retry(Retry::times(retries).backoff(Duration::ZERO..Duration::from_micros(1)))
            .to(next);
        flow.stage(next, |group: &mut Vec<u64>, _| Ok(group.len()))
            .need(Need::keyed(keys, |_: &Vec<u64>| resume_unwind(Box::new("no key"))))
            .to(done);
        let report = flow.build(gather).unwrap().run(0..8);
        conserved(&report);
        let dead = dead.lock().unwrap();
        assert_eq!((report.retired, report.left), (0, 0));
        let lengths = dead.iter().map(|letter| {
            assert_eq!((&letter.cause, letter.attempts), (&Cause::Panic, retries + 1));
            letter.input.as_ref().unwrap().downcast_ref::<Vec<u64>>().unwrap().len() as u64
        });
        assert_eq!(lengths.sum::<u64>(), 8, "groups of {units}");
    }
}

#[test]
fn an_abandoned_flow_drops_every_member_once() {
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            // Pairs with the Acquire loads of the test's thread.
            self.0.fetch_add(1, Ordering::Release);
        }
    }
    let (dropped, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let mut flow = Flow::builder::<()>("abandoned");
    flow.inflight(100).workers(2);
    let (gather, end, done) = (flow.inlet("gather"), flow.inlet("end"), flow.retire());
    flow.gather(gather, Gather::into_vec().by_key(|(n, _): &(u64, Counted)| n % 1000).units(3)).to(end);
    flow.stage(end, |_: &mut Vec<(u64, Counted)>, cx| {
        cx.delay(Duration::from_micros(20));
        Ok(())
    })
    .to(done);
    let flow = flow.build(gather).unwrap();
    let (control, drops, stops) = (flow.control(), dropped.clone(), stop.clone());
    let mut made = 0;
    let abandons = std::thread::spawn(move || {
        while control.snapshot().gathered < 20_000 {
            std::thread::yield_now();
        }
        control.abandon();
        stops.store(true, Ordering::Relaxed);
    });
    let source = std::iter::from_fn(|| {
        made += 1;
        (!stop.load(Ordering::Relaxed) || made < 100).then(|| (made * 7919, Counted(drops.clone())))
    });
    let source: Vec<_> = source.take(200_000).collect();
    let made = source.len();
    let report = flow.run(source);
    abandons.join().unwrap();
    assert_eq!(report.outcome, Outcome::Abandoned);
    conserved(&report);
    // A worker that was pulling units when the flow was abandoned may drop them after the run has returned.
    let deadline = Instant::now() + Duration::from_secs(30);
    while dropped.load(Ordering::Acquire) < made && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(dropped.load(Ordering::Acquire), made, "every member was dropped once");
}
