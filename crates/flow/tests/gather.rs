//! Units that are gathered: groups by count, weight, key, time and family, limits, failures, and the end of a flow.
//!
//! `MILLSTREAM_STRESS=n` runs n times as many seeds of random flows; `MILLSTREAM_SEED=n` begins at that seed.

use std::collections::HashMap;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use millstream_flow::{
    AfterFailure, BuildError, Cause, DeadLetter, Either, Failure, Flow, FlowBuilder, Gather, Need, Outcome, Report,
    Retry, Unfinished, select,
};
use millstream_verify_random::{Random, seed, stress};

fn conserved(report: &Report) {
    let came = report.admitted + report.split;
    assert_eq!(came, report.retired + report.dead_lettered + report.gathered + report.left);
}

fn collect<R: Send + 'static>(flow: &mut FlowBuilder<R>) -> Arc<Mutex<Vec<R>>> {
    let retired = Arc::new(Mutex::new(Vec::new()));
    let taken = retired.clone();
    flow.on_retire(move |result| taken.lock().unwrap().push(result));
    retired
}

fn letters<R: Send + 'static>(flow: &mut FlowBuilder<R>) -> Arc<Mutex<Vec<DeadLetter>>> {
    let letters = Arc::new(Mutex::new(Vec::new()));
    let taken = letters.clone();
    flow.on_dead_letter(move |letter| taken.lock().unwrap().push(letter));
    letters
}

fn sorted<T: Ord + Clone>(values: &Mutex<Vec<T>>) -> Vec<T> {
    let mut values = values.lock().unwrap().clone();
    values.sort_unstable();
    values
}

/// Groups that are the sum of their members.
fn sum() -> Gather<u64, u64> {
    Gather::fold(
        || 0,
        |sum, n: &mut u64, _| {
            *sum += *n;
            Ok(())
        },
    )
}

// ---- groups -------------------------------------------------------------------------------------------

#[test]
fn groups_are_closed_when_they_have_as_many_units_as_they_may() {
    for (units, workers) in [(1, 1), (2, 2), (7, 1), (7, 3), (1000, 2)] {
        let mut flow = Flow::builder::<Vec<u64>>("count");
        flow.workers(workers);
        let groups = collect(&mut flow);
        let (gather, done) = (flow.inlet("gather"), flow.retire());
        flow.gather(gather, Gather::into_vec().units(units)).to(done);
        let report = flow.build(gather).unwrap().run(0..10_000);
        conserved(&report);
        let groups = groups.lock().unwrap();
        assert_eq!(report.retired, 10_000_u64.div_ceil(units));
        assert!(groups.iter().all(|group| group.len() as u64 <= units));
        assert_eq!(groups.iter().filter(|group| (group.len() as u64) < units).count(), usize::from(units == 7));
        let mut members: Vec<u64> = groups.iter().flatten().copied().collect();
        members.sort_unstable();
        assert_eq!(members, (0..10_000).collect::<Vec<_>>());
    }
}

#[test]
fn one_worker_keeps_the_order_of_arrival() {
    let mut flow = Flow::builder::<Vec<u64>>("order");
    flow.workers(1);
    let groups = collect(&mut flow);
    let (gather, done) = (flow.inlet("gather"), flow.retire());
    flow.gather(gather, Gather::into_vec().units(100)).to(done);
    flow.build(gather).unwrap().run(0..1000);
    assert!(groups.lock().unwrap().iter().flatten().copied().eq(0..1000));
}

#[test]
fn groups_by_weight_are_closed_by_the_member_that_fills_them() {
    let mut flow = Flow::builder::<Vec<Vec<u8>>>("weight");
    flow.memory(100_000).workers(2);
    let groups = collect(&mut flow);
    let (gather, done) = (flow.inlet("gather"), flow.retire());
    flow.gather(gather, Gather::into_vec().bytes(1000)).bytes(|member: &Vec<u8>| member.len() as u64).to(done);
    let report = flow.build(gather).unwrap().run((0..5000).map(|n| vec![0_u8; n % 97]));
    conserved(&report);
    let groups = groups.lock().unwrap();
    let weights: Vec<usize> = groups.iter().map(|group| group.iter().map(Vec::len).sum()).collect();
    assert!(weights.iter().filter(|&&weight| weight < 1000).count() <= 1, "all but the last are full");
    assert!(weights.iter().all(|&weight| weight < 1097));
    assert!(report.peak_bytes_in_flight <= 100_100, "{}", report.peak_bytes_in_flight);
    assert_eq!(report.stages[0].torn, 0);
}

#[test]
fn every_key_has_one_group_however_small_the_flow() {
    let mut flow = Flow::builder::<(u64, u64)>("keys");
    flow.inflight(4).workers(2);
    let counts = collect(&mut flow);
    let (gather, done) = (flow.inlet("gather"), flow.retire());
    let count = Gather::fold(
        || (0, 0),
        |(key, count), member: &mut u64, _| {
            (*key, *count) = (*member % 10_000, *count + 1);
            Ok(())
        },
    );
    flow.gather(gather, count.by_key(|member| member % 10_000)).to(done);
    let report = flow.build(gather).unwrap().run(0..50_000);
    assert_eq!((report.retired, report.gathered), (10_000, 40_000));
    assert_eq!(report.stages[0].torn, 0);
    assert_eq!(sorted(&counts), (0..10_000).map(|key| (key, 5)).collect::<Vec<_>>());
}

#[test]
fn parents_whose_children_are_in_groups_leave_their_room_to_others() {
    for inflight in [1, 2, 16] {
        let mut flow = Flow::builder::<Vec<u64>>("room");
        flow.inflight(inflight).workers(2);
        let groups = collect(&mut flow);
        let (split, gather, done) = (flow.inlet("split"), flow.inlet("gather"), flow.retire());
        flow.split(split, |n: &mut u64, _| Ok([7, 1000 + *n].map(Ok))).to(gather);
        flow.gather(gather, Gather::into_vec().by_key(|n| *n)).to(done);
        let report = flow.build(split).unwrap().run(0..300);
        conserved(&report);
        assert_eq!((groups.lock().unwrap().len(), report.stages[1].torn), (301, 0), "{inflight} in flight");
    }
}

#[test]
fn a_drained_service_closes_its_groups_although_its_source_is_blocked() {
    let (go, blocked) = channel::<()>();
    let mut flow = Flow::builder::<Vec<u64>>("blocked");
    let groups = collect(&mut flow);
    let (gather, done) = (flow.inlet("gather"), flow.retire());
    flow.gather(gather, Gather::into_vec()).to(done);
    let flow = flow.build(gather).unwrap();
    let control = flow.control();
    let source = (0..3).chain(std::iter::from_fn(move || blocked.recv().ok().map(|()| 9)));
    let run = std::thread::spawn(move || flow.run(source));
    let began = Instant::now();
    while control.snapshot().gathered < 2 {
        assert!(began.elapsed() < Duration::from_secs(120), "{:?}", control.snapshot());
        std::thread::yield_now();
    }
    control.stop();
    while groups.lock().unwrap().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(120), "the group stays open");
        std::thread::yield_now();
    }
    drop(go);
    let report = run.join().unwrap();
    conserved(&report);
    assert_eq!((report.retired, report.left), (1, 0));
}

#[test]
fn a_group_is_closed_when_it_says_that_it_is_full() {
    let mut flow = Flow::builder::<u64>("full");
    flow.workers(1);
    let sums = collect(&mut flow);
    let (gather, done) = (flow.inlet("gather"), flow.retire());
    flow.gather(gather, sum().full(|sum| *sum >= 10)).to(done);
    let report = flow.build(gather).unwrap().run(1..=8);
    conserved(&report);
    assert_eq!(*sums.lock().unwrap(), [10, 11, 15]);
}

#[test]
fn a_group_waits_no_longer_than_it_may() {
    let mut flow = Flow::builder::<Vec<u64>>("wait");
    let groups = collect(&mut flow);
    let (gather, done) = (flow.inlet("gather"), flow.retire());
    flow.gather(gather, Gather::into_vec().wait(Duration::from_millis(20))).to(done);
    let service = flow.build(gather).unwrap().start();
    (0..3).for_each(|n| service.send(n).unwrap());
    let began = Instant::now();
    while groups.lock().unwrap().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(120), "the group stays open");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(began.elapsed() >= Duration::from_millis(15));
    service.send(3).unwrap();
    let report = service.drain();
    conserved(&report);
    let mut members: Vec<u64> = groups.lock().unwrap().iter().flatten().copied().collect();
    members.sort_unstable();
    assert_eq!(members, [0, 1, 2, 3]);
}

#[test]
fn an_open_group_shows_and_a_drained_service_closes_it() {
    let mut flow = Flow::builder::<Vec<u64>>("service");
    let groups = collect(&mut flow);
    let (gather, done) = (flow.inlet("gather"), flow.retire());
    flow.gather(gather, Gather::into_vec()).to(done);
    let service = flow.build(gather).unwrap().start();
    let ticket = service.submit(7).unwrap();
    assert!(matches!(ticket.wait(), Err(Unfinished::Gathered)));
    assert!(matches!(service.submit(8).unwrap().wait(), Err(Unfinished::Gathered)));
    let control = service.control();
    let shows = |control: &millstream_flow::Control| {
        let now = control.snapshot();
        (now.stages[0].open_groups, now.gathered, now.in_flight)
    };
    let began = Instant::now();
    while shows(&control) != (1, 1, 1) {
        assert!(began.elapsed() < Duration::from_secs(120), "{:?}", shows(&control));
        std::thread::yield_now();
    }
    let report = service.drain();
    assert_eq!((report.retired, report.gathered, report.left), (1, 1, 0));
    assert_eq!(*groups.lock().unwrap(), [[7, 8]]);
}

#[test]
fn what_one_gather_makes_at_the_end_joins_the_groups_of_the_next() {
    for workers in 1..3 {
        let mut flow = Flow::builder::<u64>("stairs");
        flow.workers(workers);
        let sums = collect(&mut flow);
        let (first, second, third, done) = (flow.inlet("a"), flow.inlet("b"), flow.inlet("c"), flow.retire());
        flow.gather(first, sum().by_key(|n| n % 100)).to(second);
        flow.gather(second, sum().by_key(|n| n % 10)).to(third);
        flow.gather(third, sum()).to(done);
        let report = flow.build(first).unwrap().run(0..10_000);
        conserved(&report);
        assert_eq!(*sums.lock().unwrap(), [(0..10_000).sum::<u64>()]);
    }
}

// ---- families -----------------------------------------------------------------------------------------

#[test]
fn a_family_s_group_takes_the_parent_s_place() {
    let mut flow = Flow::builder::<(u64, Option<u64>, Vec<u64>)>("family");
    flow.inflight(3).workers(2);
    let groups = collect(&mut flow);
    let (split, work) = (flow.inlet("split"), flow.inlet("work"));
    let (gather, end, done) = (flow.inlet("gather"), flow.inlet("end"), flow.retire());
    flow.split(split, |n: &mut u64, _| Ok((0..*n).map(Ok))).to(work);
    flow.stage(work, |n: &mut u64, _| Ok(*n * 2)).to(gather);
    flow.gather(gather, Gather::into_vec().by_parent()).to(end);
    flow.stage(end, |group: &mut Vec<u64>, cx| Ok((cx.unit(), cx.parent(), std::mem::take(group)))).to(done);
    let report = flow.build(split).unwrap().run([5, 0, 100, 1, 7]);
    conserved(&report);
    assert_eq!((report.admitted, report.split, report.dead_lettered, report.left), (5, 113, 0, 0));
    assert_eq!((report.retired, report.gathered), (5 + 4, 113 - 4), "a parent without children has no group");
    let mut sizes = Vec::new();
    for (_, parent, mut members) in groups.lock().unwrap().clone() {
        assert_eq!(parent, None, "the group stands where its parent stood");
        members.sort_unstable();
        assert!(members.iter().copied().eq((0..members.len() as u64).map(|n| n * 2)));
        sizes.push(members.len());
    }
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 5, 7, 100]);
}

#[test]
fn levels_that_were_split_are_gathered_level_by_level() {
    for inflight in [1, 2, 5, 100] {
        let mut flow = Flow::builder::<(Option<u64>, u64)>("levels");
        flow.inflight(inflight).workers(2);
        let sums = collect(&mut flow);
        let (outer, inner) = (flow.inlet("outer"), flow.inlet("inner"));
        let (leaves, branches, end) = (flow.inlet("leaves"), flow.inlet("branches"), flow.inlet("end"));
        let done = flow.retire();
        let sum = || sum().by_parent();
        flow.split(outer, |n: &mut u64, _| Ok((1..=*n).map(Ok))).to(inner);
        flow.split(inner, |n: &mut u64, _| Ok((1..=*n).map(Ok))).to(leaves);
        flow.gather(leaves, sum()).to(branches);
        flow.gather(branches, sum()).to(end);
        flow.stage(end, |sum: &mut u64, cx| Ok((cx.parent(), *sum))).to(done);
        let report = flow.build(outer).unwrap().run([3, 10, 1]);
        conserved(&report);
        // The sum of the first n triangular numbers.
        assert_eq!(sorted(&sums), [(None, 1), (None, 10), (None, 220)], "{inflight} in flight");
        assert_eq!(report.left, 0);
    }
}

#[test]
fn a_dead_child_fails_its_family_s_group() {
    for even_if_torn in [false, true] {
        let mut flow = Flow::builder::<usize>("torn");
        let (sizes, dead) = (collect(&mut flow), letters(&mut flow));
        let (split, work) = (flow.inlet("split"), flow.inlet("work"));
        let (gather, end, done) = (flow.inlet("gather"), flow.inlet("end"), flow.retire());
        flow.split(split, |n: &mut u64, _| Ok((0..*n).map(Ok))).to(work);
        flow.stage(work, |n: &mut u64, _| if *n == 7 { Err(Failure::msg("seven")) } else { Ok(*n) }).to(gather);
        let whole = Gather::into_vec().by_parent();
        flow.gather(gather, if even_if_torn { whole.even_if_torn() } else { whole }).to(end);
        flow.stage(end, |group: &mut Vec<u64>, _| Ok(group.len())).to(done);
        let report = flow.build(split).unwrap().run([5, 10]);
        conserved(&report);
        let dead = dead.lock().unwrap();
        if even_if_torn {
            assert_eq!((sorted(&sizes), dead.len()), (vec![5, 9], 1));
            continue;
        }
        assert_eq!((sorted(&sizes), dead.len()), (vec![5], 2));
        let group = dead.iter().find(|letter| letter.stage == "gather").unwrap();
        assert!(group.message.contains("lacks a unit"), "{}", group.message);
        assert_eq!(group.input.as_ref().unwrap().downcast_ref::<Vec<u64>>().unwrap().len(), 9);
        assert_eq!(group.parent, None);
    }
}

#[test]
fn a_parent_that_fails_on_the_way_fails_its_family_s_group_and_those_above() {
    let mut flow = Flow::builder::<usize>("above");
    let (sizes, dead) = (collect(&mut flow), letters(&mut flow));
    let (outer, inner) = (flow.inlet("outer"), flow.inlet("inner"));
    let (leaves, branches, end, done) =
        (flow.inlet("leaves"), flow.inlet("branches"), flow.inlet("end"), flow.retire());
    flow.split(outer, |n: &mut u64, _| Ok((1..=*n).map(Ok))).to(inner);
    flow.split(inner, |n: &mut u64, _| {
        let n = *n;
        Ok((0..n).map(move |child| if (n, child) == (4, 3) { Err(Failure::msg("torn")) } else { Ok(child) }))
    })
    .to(leaves);
    flow.gather(leaves, Gather::into_vec().by_parent()).to(branches);
    flow.gather(branches, Gather::into_vec().by_parent()).to(end);
    flow.stage(end, |group: &mut Vec<Vec<u64>>, _| Ok(group.len())).to(done);
    let report = flow.build(outer).unwrap().run([3, 6]);
    conserved(&report);
    assert_eq!(sorted(&sizes), [3]);
    let mut stages: Vec<String> = dead.lock().unwrap().iter().map(|letter| letter.stage.clone()).collect();
    stages.sort_unstable();
    assert_eq!(stages, ["branches", "inner", "leaves"]);
}

#[test]
fn a_parent_skipped_halfway_fails_its_group_and_a_skipped_child_is_absent() {
    let mut flow = Flow::builder::<Vec<u64>>("skipped");
    let (groups, dead) = (collect(&mut flow), letters(&mut flow));
    let (split, work, gather, done) = (flow.inlet("split"), flow.inlet("work"), flow.inlet("gather"), flow.retire());
    flow.split(split, |n: &mut u64, _| {
        let n = *n;
        Ok((0..n).map(move |child| if (n, child) == (5, 3) { Err(Failure::msg("torn")) } else { Ok(child) }))
    })
    .after_failure(AfterFailure::Skip)
    .to(work);
    flow.stage(work, |n: &mut u64, _| if *n == 1 { Err(Failure::msg("one")) } else { Ok(*n) })
        .after_failure(AfterFailure::Skip)
        .to(gather);
    flow.gather(gather, Gather::into_vec().by_parent()).to(done);
    let report = flow.build(split).unwrap().run([3, 5]);
    conserved(&report);
    let mut group = groups.lock().unwrap().concat();
    group.sort_unstable();
    assert_eq!((group, report.skipped), (vec![0, 2], 3));
    assert_eq!(dead.lock().unwrap().len(), 1, "the group of the torn parent");
}

#[test]
fn a_unit_without_a_parent_is_a_family_of_its_own() {
    let mut flow = Flow::builder::<Vec<u64>>("alone");
    let groups = collect(&mut flow);
    let (gather, done) = (flow.inlet("gather"), flow.retire());
    flow.gather(gather, Gather::into_vec().by_parent()).to(done);
    let report = flow.build(gather).unwrap().run([1, 2, 3]);
    assert_eq!((report.retired, report.gathered), (3, 0));
    assert_eq!(sorted(&groups), [[1], [2], [3]]);
}

#[test]
fn parts_of_a_family_may_be_gathered_before_the_whole() {
    let mut flow = Flow::builder::<Vec<Vec<u64>>>("parts");
    flow.workers(2);
    let groups = collect(&mut flow);
    let (split, part, whole, done) = (flow.inlet("split"), flow.inlet("part"), flow.inlet("whole"), flow.retire());
    flow.split(split, |n: &mut u64, _| Ok((0..*n).map(Ok))).to(part);
    flow.gather(part, Gather::into_vec().units(10).by_key(|_| ()).wait(Duration::from_secs(60))).to(whole);
    flow.gather(whole, Gather::into_vec().by_parent()).to(done);
    let report = flow.build(split).unwrap().run([100]);
    conserved(&report);
    let groups = groups.lock().unwrap();
    assert_eq!(groups.len(), 1);
    assert!(groups[0].len() == 10 && groups[0].iter().all(|part| part.len() == 10));
}

// ---- limits -------------------------------------------------------------------------------------------

#[test]
fn a_flow_whose_groups_need_its_bytes_closes_the_oldest_early() {
    let mut flow = Flow::builder::<Vec<Vec<u8>>>("bytes");
    flow.memory(10_000).workers(2);
    let groups = collect(&mut flow);
    let (gather, done) = (flow.inlet("gather"), flow.retire());
    let by_length = Gather::into_vec().by_key(|member: &Vec<u8>| member.len());
    flow.gather(gather, by_length).bytes(|member: &Vec<u8>| member.len() as u64).to(done);
    let report = flow.build(gather).unwrap().run((0..2000).map(|n| vec![0_u8; 1 + n % 100]));
    conserved(&report);
    let members: usize = groups.lock().unwrap().iter().map(Vec::len).sum();
    assert_eq!(members, 2000);
    assert!(report.stages[0].torn > 0);
    assert!(report.peak_bytes_in_flight <= 10_200, "{}", report.peak_bytes_in_flight);
}

#[test]
fn a_unit_larger_than_the_budget_passes_open_groups() {
    let mut flow = Flow::builder::<usize>("oversize");
    flow.memory(100).inflight(3);
    let lengths = collect(&mut flow);
    let (gather, end, done) = (flow.inlet("gather"), flow.inlet("end"), flow.retire());
    flow.gather(gather, Gather::into_vec().units(3)).bytes(|member: &Vec<u8>| member.len() as u64).to(end);
    flow.stage(end, |group: &mut Vec<Vec<u8>>, _| Ok(group.iter().map(Vec::len).sum::<usize>())).to(done);
    let report = flow.build(gather).unwrap().run([10, 500, 10, 700, 10, 10, 10].map(|n| vec![0_u8; n]));
    conserved(&report);
    assert_eq!((lengths.lock().unwrap().iter().sum::<usize>(), report.oversize), (1250, 2));
}

#[test]
fn a_family_larger_than_the_budget_is_gathered_whole() {
    let mut flow = Flow::builder::<usize>("large");
    flow.memory(1000).inflight(4).workers(2);
    let lengths = collect(&mut flow);
    let (split, gather, end, done) = (flow.inlet("split"), flow.inlet("gather"), flow.inlet("end"), flow.retire());
    flow.split(split, |n: &mut usize, _| Ok((0..*n).map(|_| Ok(vec![0_u8; 100])))).to(gather);
    flow.gather(gather, Gather::into_vec().by_parent()).bytes(|member: &Vec<u8>| member.len() as u64).to(end);
    flow.stage(end, |group: &mut Vec<Vec<u8>>, _| Ok(group.len())).to(done);
    let report = flow.build(split).unwrap().run([3, 300, 2, 40]);
    conserved(&report);
    assert_eq!((sorted(&lengths), report.stages[1].torn), (vec![2, 3, 40, 300], 0));
}

#[test]
fn a_group_beyond_the_limit_closes_the_oldest() {
    let mut flow = Flow::builder::<Vec<u64>>("limit");
    flow.workers(1);
    let groups = collect(&mut flow);
    let (gather, done) = (flow.inlet("gather"), flow.retire());
    flow.gather(gather, Gather::into_vec().by_key(|n| *n).max_groups(10)).to(done);
    let report = flow.build(gather).unwrap().run((0..100).chain(0..100));
    conserved(&report);
    assert_eq!(groups.lock().unwrap().iter().map(Vec::len).sum::<usize>(), 200);
    assert!((100..=190).contains(&report.stages[0].torn), "{}", report.stages[0].torn);
}

#[test]
fn tokens_of_a_gathering_stage_are_free_while_groups_are_open() {
    let mut flow = Flow::builder::<Vec<u64>>("tokens");
    flow.workers(2);
    let groups = collect(&mut flow);
    let token = flow.tokens("token", 1);
    let (gather, done) = (flow.inlet("gather"), flow.retire());
    flow.gather(gather, Gather::into_vec().by_key(|n| n % 50))
        .need(Need::tokens(token, 1))
        .queue(3)
        .batch(millstream_flow::Batch::of(1))
        .to(done);
    let report = flow.build(gather).unwrap().run(0..1000);
    assert_eq!((report.retired, groups.lock().unwrap().len()), (50, 50));
    assert_eq!(report.resources[0].peak_in_use, 1);
}

#[test]
fn the_build_refuses_what_is_held_through_a_group() {
    let mut flow = Flow::builder::<()>("held");
    let token = flow.tokens("token", 1);
    let (take, gather, end, done) = (flow.inlet("take"), flow.inlet("gather"), flow.inlet("end"), flow.retire());
    flow.stage(take, |n: &mut u64, _| Ok(*n)).need(Need::tokens(token, 1).until(end)).to(gather);
    flow.gather(gather, Gather::into_vec()).to(end);
    flow.stage(end, |_: &mut Vec<u64>, _| Ok(())).to(done);
    let error = flow.build(take).unwrap_err();
    assert!(matches!(error, BuildError::HeldThroughGather { .. }), "{error}");
    assert!(error.to_string().contains("end the hold before `gather`"), "{error}");
}

// ---- failures -----------------------------------------------------------------------------------------

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
            self.0.fetch_add(1, Ordering::Relaxed);
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
    assert_eq!(dropped.load(Ordering::Relaxed), made, "every member was dropped once");
}

// ---- random flows -------------------------------------------------------------------------------------

/// Trees of units that are split and gathered again by several rules, fail, panic and pause at random, in flows whose
/// caps change all the time: every leaf ends in one group or one letter.
#[test]
fn nothing_is_lost_in_random_groups() {
    let first = seed();
    for seed in first..first + 200 * stress() {
        let (tell, ended) = channel();
        let storm = std::thread::spawn(move || {
            storm(seed);
            tell.send(()).ok();
        });
        match ended.recv_timeout(Duration::from_secs(120)) {
            Ok(()) => storm.join().unwrap(),
            Err(RecvTimeoutError::Timeout) => panic!("seed {seed} hangs"),
            Err(RecvTimeoutError::Disconnected) => panic!("seed {seed}: {:?}", storm.join().map_err(|_| "panicked")),
        }
    }
}

/// A unit of a random tree: its level, a number that decides its fate, and its leaf, once it is one.
#[derive(Clone, Copy)]
struct Twig {
    level: u32,
    fate: u64,
    leaf: Option<u64>,
}

fn leaves_of(letter: &DeadLetter) -> Vec<u64> {
    let Some(input) = &letter.input else { return Vec::new() };
    let twig = input.downcast_ref::<Twig>().map(|twig| twig.leaf.into_iter().collect());
    let group = || input.downcast_ref::<Vec<Twig>>().map(|group| group.iter().filter_map(|twig| twig.leaf).collect());
    let groups = || {
        let groups = input.downcast_ref::<Vec<Vec<Twig>>>()?;
        Some(groups.iter().flatten().filter_map(|twig| twig.leaf).collect())
    };
    twig.or_else(group).or_else(groups).expect("a letter has one of these inputs")
}

fn rules<In: Send + 'static>(
    random: &mut Random,
    by: impl Fn(&In) -> u64 + Send + Sync + 'static,
) -> Gather<In, Vec<In>, u64> {
    let keys = [1, 4, u64::MAX][random.below(3) as usize];
    let mut gather = Gather::into_vec().by_key(move |unit| by(unit) % keys);
    if random.below(2) == 0 {
        gather = gather.by_parent();
    }
    if random.below(3) == 0 {
        gather = gather.units(1 + random.below(6));
    }
    if random.below(4) == 0 {
        gather = gather.bytes(1 + random.below(500));
    }
    if random.below(4) == 0 {
        gather = gather.wait(Duration::from_micros(random.below(300)));
    }
    if random.below(4) == 0 {
        gather = gather.max_groups(1 + random.below(5));
    }
    if random.below(3) == 0 {
        gather = gather.even_if_torn();
    }
    gather
}

fn storm(seed: u64) {
    let mut random = Random::new(seed);
    let levels = 1 + random.below(3) as u32;
    let width = 1 + random.below(10);
    let mut flow = Flow::builder::<Vec<u64>>(format!("storm {seed}"));
    flow.inflight(1 + random.below(60)).memory(200 + random.below(5000)).workers(1 + random.below(3) as usize);
    let (leaves, retired) = (Arc::new(AtomicU64::new(0)), collect(&mut flow));
    let dead = letters(&mut flow);
    let keyed = flow.keyed_tokens("keyed", 1 + random.below(3));
    let tokens = flow.tokens("tokens", 1 + random.below(3));
    let (sort, split) = (flow.inlet::<Twig>("sort"), flow.inlet::<Twig>("split"));
    let aside = flow.inlet::<Twig>("aside");
    let (leaf, pack) = (flow.inlet::<Twig>("leaf"), flow.inlet::<Twig>("pack"));
    let (packed, crate_up) = (flow.inlet::<Vec<Twig>>("packed"), flow.inlet::<Vec<Twig>>("crate"));
    let (unpack, done) = (flow.inlet::<Vec<Vec<Twig>>>("unpack"), flow.retire());
    flow.stage(sort, move |twig: &mut Twig, cx| {
        if twig.fate.is_multiple_of(31) {
            cx.delay(Duration::from_micros(200));
        }
        match twig.fate % 101 {
            0 => resume_unwind(Box::new("sorting panics")),
            1 => Err(Failure::msg("unlucky")),
            _ if twig.level < levels => Ok(Either::Left(*twig)),
            _ => Ok(Either::Right(*twig)),
        }
    })
    .retry(Retry::times(1).backoff(Duration::from_micros(20)..Duration::from_micros(50)))
    .bytes(|twig| twig.fate % 90)
    .to((split, leaf));
    let stage = flow.split(split, move |twig: &mut Twig, _| {
        let (twig, mut random) = (*twig, Random::new(twig.fate));
        let children = random.below(width + 1);
        Ok((0..children).map(move |n| match random.below(200) {
            0 => resume_unwind(Box::new("the iterator panics")),
            1 => Err(Failure::msg("torn")),
            fate => Ok(Twig { level: twig.level + 1, fate: fate.wrapping_mul(0x9e37_79b9) ^ n, leaf: None }),
        }))
    });
    // The children of a unit go two ways, as its copies would, and meet again.
    let ways = select(|twig: &Twig| usize::from(twig.fate.is_multiple_of(3)), [sort.into(), aside.into()]);
    stage.after_failure(if random.below(2) == 0 { AfterFailure::Skip } else { AfterFailure::DeadLetter }).to(ways);
    flow.update(
        aside,
        |twig: &mut Twig, _| {
            if twig.fate.is_multiple_of(43) { Err(Failure::msg("lost aside")) } else { Ok(()) }
        },
    )
    .to(sort);
    let numbers = leaves.clone();
    flow.stage(leaf, move |twig: &mut Twig, _| {
        if twig.fate.is_multiple_of(57) {
            return Err(Failure::msg("a dry leaf"));
        }
        Ok(Twig { leaf: Some(numbers.fetch_add(1, Ordering::Relaxed)), ..*twig })
    })
    .need(Need::keyed(keyed, |twig: &Twig| (twig.fate % 4).to_string()))
    .to(pack);
    let stage = flow.gather(pack, rules(&mut random, |twig: &Twig| twig.fate));
    let stage = if random.below(2) == 0 { stage.need(Need::tokens(tokens, 1)) } else { stage };
    let stage = if random.below(3) == 0 { stage.blocking().workers(0..=2) } else { stage };
    let stage = if random.below(2) == 0 { stage.bytes(|twig: &Twig| 5 + twig.fate % 90) } else { stage };
    let stage = if random.below(3) == 0 { stage.queue(1 + random.below(4)) } else { stage };
    stage.to(packed);
    flow.stage(packed, |group: &mut Vec<Twig>, cx| {
        if group.iter().any(|twig| twig.fate.is_multiple_of(91)) {
            return Err(Failure::msg("a bad group"));
        }
        if group.len() % 5 == 4 {
            cx.delay(Duration::from_micros(100));
        }
        Ok(std::mem::take(group))
    })
    .to(crate_up);
    let stage = flow.gather(crate_up, rules(&mut random, |group: &Vec<Twig>| group.len() as u64));
    let stage = if random.below(2) == 0 { stage.need(Need::tokens(tokens, 1)) } else { stage };
    stage.to(unpack);
    flow.stage(unpack, |groups: &mut Vec<Vec<Twig>>, _| {
        Ok(groups.iter().flatten().filter_map(|twig| twig.leaf).collect())
    })
    .to(done);
    let service = flow.build(sort).unwrap().start();
    let control = service.control();
    let (abandons, steers) = (random.below(5) == 0, random.below(2) == 0);
    for n in 0..30 {
        service.send(Twig { level: 0, fate: random.below(1 << 40), leaf: None }).unwrap();
        if steers && n % 4 == 0 {
            control.set_inflight(1 + random.below(60)).unwrap();
        }
    }
    if abandons {
        control.abandon();
    }
    let report = service.drain();
    conserved(&report);
    if abandons {
        return;
    }
    assert_eq!(report.left, 0, "seed {seed}");
    let dead = dead.lock().unwrap();
    assert_eq!(report.dead_lettered, dead.len() as u64, "seed {seed}");
    let mut ends = HashMap::<u64, u64>::new();
    let in_letters = dead.iter().flat_map(leaves_of);
    in_letters
        .chain(retired.lock().unwrap().iter().flatten().copied())
        .for_each(|leaf| *ends.entry(leaf).or_default() += 1);
    let leaves = leaves.load(Ordering::Relaxed);
    assert!((0..leaves).all(|leaf| ends.get(&leaf) == Some(&1)), "seed {seed}: a leaf was lost or doubled");
}
