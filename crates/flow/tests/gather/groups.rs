//! Groups by count, weight, key and time, and groups that are closed at the end of a flow.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use millstream_flow::{Flow, Gather, Unfinished};

use super::{collect, conserved, letters, sorted, sum};

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
    assert!(weights.iter().filter(|&&weight| weight < 1000).count() <= 1, "all groups but the last are full");
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
fn groups_closed_at_the_end_join_the_groups_of_the_next_stage() {
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

#[test]
fn a_group_goes_on_as_the_value_it_is_mapped_to() {
    let mut flow = Flow::builder::<String>("map");
    flow.workers(2);
    let (retired, dead) = (collect(&mut flow), letters(&mut flow));
    let (gather, done) = (flow.inlet::<u64>("gather"), flow.retire());
    let text = sum().by_key(|n: &u64| n % 3).map(|sum: u64| {
        assert_ne!(sum, 12, "no text for twelve");
        sum.to_string()
    });
    flow.gather(gather, text).to(done);
    let report = flow.build(gather).unwrap().run(1..8);
    conserved(&report);
    // 3 + 6 sums to nine, 1 + 4 + 7 to twelve, and 2 + 5 to seven.
    assert_eq!(sorted(&retired), ["7", "9"]);
    let dead = dead.lock().unwrap();
    assert!(dead.len() == 1 && dead[0].input.is_none(), "its group is lost: {dead:?}");
}
