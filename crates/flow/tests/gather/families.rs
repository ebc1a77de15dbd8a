//! Groups of the children of one parent.

use std::time::Duration;

use millstream_flow::{AfterFailure, Batch, Failure, Flow, Gather, select};

use super::{collect, conserved, letters, sorted, sum};

#[test]
fn a_family_s_group_replaces_the_parent() {
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
        assert_eq!(parent, None, "the group has replaced its parent");
        members.sort_unstable();
        assert!(members.iter().copied().eq((0..members.len() as u64).map(|n| n * 2)));
        sizes.push(members.len());
    }
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 5, 7, 100]);
}

#[test]
fn nested_families_are_gathered_level_by_level() {
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
fn a_parent_that_fails_midway_fails_the_group_of_its_family_and_those_above() {
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

#[test]
fn families_that_run_on_in_one_turn_are_whole_and_counted() {
    for (workers, batch) in [(1, 1), (2, 7), (2, 64)] {
        let mut flow = Flow::builder::<u64>("forks");
        flow.workers(workers).inflight(500);
        let sums = collect(&mut flow);
        let [outer, left, right, join, end] = ["outer", "left", "right", "join", "end"].map(|name| flow.inlet(name));
        let done = flow.retire();
        let batch = || Batch::of(batch);
        let branch = |n: &u64| usize::from(n % 2 == 1);
        flow.split(outer, |n: &mut u64, _| {
            let n = *n;
            Ok((0..n % 5).map(move |part| Ok(10 * n + part)))
        })
        .batch(batch())
        .to(select(branch, [left.into(), right.into()]));
        for stage in [left, right] {
            flow.stage(stage, |n: &mut u64, _| Ok(*n)).batch(batch()).to(join);
        }
        flow.gather(join, sum().by_parent()).batch(batch()).to(end);
        flow.stage(end, |sum: &mut u64, _| Ok(*sum)).batch(batch()).to(done);
        let report = flow.build(outer).unwrap().run(0..5000);
        conserved(&report);
        let mut expected: Vec<u64> =
            (0..5000).filter(|n| n % 5 > 0).map(|n| (0..n % 5).map(|p| 10 * n + p).sum()).collect();
        expected.sort_unstable();
        assert_eq!(sorted(&sums), expected);
        // A unit has 2 children on average. The first member of each group returns to the stage as the group's unit.
        assert_eq!((report.split, report.gathered, report.left), (10_000, 6_000, 0));
        let units: Vec<u64> = report.stages.iter().map(|stage| stage.units).collect();
        assert_eq!((units[0], units[1] + units[2], units[3], units[4]), (5_000, 10_000, 14_000, 4_000));
    }
}

#[test]
fn a_part_that_is_full_in_the_turn_of_its_family_remains_a_child() {
    let mut flow = Flow::builder::<(bool, Vec<u64>)>("parts");
    flow.workers(1);
    let parts = collect(&mut flow);
    let (split, part, end, done) = (flow.inlet("split"), flow.inlet("part"), flow.inlet("end"), flow.retire());
    // The first child alone fills a part. The second child opens another part, which replaces the parent.
    flow.split(split, |n: &mut u64, _| Ok([*n, 1].map(Ok))).to(part);
    let weight = |n: &u64| if *n == 1 { 1 } else { 100 };
    flow.gather(part, Gather::into_vec().by_parent().bytes(100)).bytes(weight).to(end);
    flow.stage(end, |part: &mut Vec<u64>, cx| Ok((cx.parent().is_some(), std::mem::take(part)))).to(done);
    let report = flow.build(split).unwrap().run(2..2000);
    conserved(&report);
    let expected: Vec<_> = (2..2000).map(|_| (false, vec![1])).chain((2..2000).map(|n| (true, vec![n]))).collect();
    assert!(sorted(&parts) == expected);
}
