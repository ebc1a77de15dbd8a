//! Limits that close groups early, and the needs that a gathering stage may hold.

use millstream_flow::{BuildError, Flow, Gather, Need};

use super::{collect, conserved, sorted, sum};

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

/// A batch that goes through several stages at once is charged with its first weight until it ends.
#[test]
fn a_group_opened_at_the_end_of_a_chain_weighs_what_its_unit_weighs_there() {
    let mut flow = Flow::builder::<u64>("light");
    flow.memory(1_000_000).workers(1);
    let sums = collect(&mut flow);
    let (body, gather, done) = (flow.inlet::<Vec<u8>>("body"), flow.inlet::<u64>("gather"), flow.retire());
    let number = |body: &mut Vec<u8>, _: &mut millstream_flow::Cx<'_>| Ok(body.len() as u64);
    flow.stage(body, number).bytes(|body| body.len() as u64).to(gather);
    flow.gather(gather, sum().by_key(|n| *n)).bytes(|_| 8).to(done);
    // The units weigh 40 MB in total, but the 2,000 groups that they join weigh only 16,000 bytes together.
    let report = flow.build(body).unwrap().run((0..20_000).map(|n| vec![0_u8; 1_000 + n % 2_000]));
    conserved(&report);
    assert_eq!((report.stages[1].torn, sums.lock().unwrap().len(), report.left), (0, 2_000, 0));
}

#[test]
fn a_group_that_goes_on_is_counted_once() {
    for (units, mapped) in [(10, false), (10, true), (u64::MAX, false)] {
        let mut flow = Flow::builder::<usize>("peak");
        flow.workers(1);
        let (gather, next, done) = (flow.inlet("gather"), flow.inlet("next"), flow.retire());
        let list = Gather::into_vec().units(units);
        match mapped {
            true => flow.gather(gather, list.map(|group: Vec<u64>| group)).bytes(|_| 100).to(next),
            false => flow.gather(gather, list).bytes(|_| 100).to(next),
        }
        flow.stage(next, |group: &mut Vec<u64>, _| Ok(group.len())).to(done);
        let report = flow.build(gather).unwrap().run(0..10);
        conserved(&report);
        assert_eq!(report.peak_bytes_in_flight, 1000, "ten units of 100 bytes each");
    }
}
