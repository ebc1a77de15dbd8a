//! Children that run in the same turn of a worker as their parents, while the flow is steered, watched, replayed, and
//! stopped or abandoned: no unit is lost or doubled.
//!
//! `MILLSTREAM_STRESS=n` with n above 1 runs 200 seeds; `MILLSTREAM_SEED=n` begins at that seed.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use millstream_flow::{Batch, Control, DeadLetter, Failure, Flow, Gather, Need, Outcome, Retry, select};
use millstream_verify_random::{Random, depth, seed};

use super::{collect, conserved, letters};

/// Ends the process and prints the seed if a run takes unreasonably long.
fn watch_for_hang(seed: u64) -> Arc<AtomicBool> {
    let over = Arc::new(AtomicBool::new(false));
    let theirs = over.clone();
    std::thread::spawn(move || {
        for _ in 0..2400 {
            if theirs.load(Ordering::Relaxed) {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        eprintln!("seed {seed} hangs; run it again with MILLSTREAM_SEED={seed}");
        std::process::abort();
    });
    over
}

#[test]
fn nothing_is_lost_while_children_run_on_in_a_flow_that_is_steered_and_stopped() {
    let first = seed();
    for seed in first..first + depth(6, 200) {
        let over = watch_for_hang(seed);
        storm(seed);
        over.store(true, Ordering::Relaxed);
    }
}

/// A child: the number of its parent, and its own number.
type Child = (u64, u64);

/// The children in a letter's input.
fn children_of(letter: &DeadLetter) -> Vec<Child> {
    if let Some(child) = letter.input::<Child>() {
        return vec![*child];
    }
    letter.input::<Vec<Child>>().cloned().unwrap_or_default()
}

fn storm(seed: u64) {
    let mut random = Random::new(seed);
    let most = 1 + random.below(5);
    let mut flow = Flow::builder::<Vec<Child>>(format!("onward {seed}"));
    flow.inflight(2 + random.below(300)).memory(2000 + random.below(50_000)).workers(1 + random.below(3) as usize);
    let (retired, dead) = (collect(&mut flow), letters(&mut flow));
    let tokens = flow.tokens("tokens", 1 + random.below(8));
    let (split, left, right) = (flow.inlet::<u64>("split"), flow.inlet::<Child>("left"), flow.inlet::<Child>("right"));
    let (join, end, done) = (flow.inlet::<Child>("join"), flow.inlet::<Vec<Child>>("end"), flow.retire());
    let came = Arc::new(AtomicU64::new(0));
    let counted = came.clone();
    let torn = random.below(2) == 0;
    flow.split(split, move |parent: &mut u64, _| {
        let (parent, counted) = (*parent, counted.clone());
        let children = Random::new(parent).below(most + 1);
        Ok((0..children).map(move |n| match Random::new(parent ^ (n << 40)).below(150) {
            0 if torn => resume_unwind(Box::new("the iterator panics")),
            1 if torn => Err(Failure::msg("torn")),
            _ => {
                counted.fetch_add(1, Ordering::Relaxed);
                Ok((parent, n))
            }
        }))
    })
    .bytes(|parent| 1 + parent % 60)
    .batch(Batch::of(1 + random.below(40) as usize))
    .to(select(|child: &Child| usize::from(child.1 % 2 == 1), [left.into(), right.into()]));
    let fails = random.below(2) == 0;
    let work =
        move |child: &mut Child, cx: &mut millstream_flow::Cx<'_>| match Random::new(child.0 ^ !child.1).below(120) {
            0 if fails => resume_unwind(Box::new("the work panics")),
            1 if fails => Err(Failure::permanent("hopeless")),
            2 if cx.attempt() == 1 => Err(Failure::msg("again")),
            3 => {
                std::thread::sleep(Duration::from_micros(60));
                Ok(())
            }
            _ => Ok(()),
        };
    let retry = || Retry::times(1).backoff(Duration::from_micros(20)..Duration::from_micros(60));
    flow.update(left, work).batch(Batch::of(1 + random.below(40) as usize)).retry(retry()).to(join);
    let stage = flow.update(right, work).retry(retry());
    // A need makes the children on this path leave the turn and go through the scheduler.
    if random.below(3) == 0 {
        stage.need(Need::tokens(tokens, 1)).to(join);
    } else {
        stage.to(join);
    }
    let mut rules = Gather::into_vec().by_parent();
    if random.below(3) == 0 {
        rules = rules.units(1 + random.below(3));
    }
    if random.below(2) == 0 {
        rules = rules.even_if_torn();
    }
    if random.below(3) == 0 {
        rules = rules.full(|group: &Vec<Child>| {
            group.iter().any(|child| Random::new(child.0 ^ (child.1 << 20)).below(90) == 0)
                && resume_unwind(Box::new("no verdict"))
        });
    }
    flow.gather(join, rules).bytes(|child: &Child| 1 + child.0 % 40).to(end);
    flow.stage(end, |group: &mut Vec<Child>, _| Ok(std::mem::take(group))).to(done);

    let flow = flow.build(split).unwrap();
    let control = flow.control();
    let (stops, abandons) = (random.below(3) == 0, random.below(4) == 0);
    #[cfg(feature = "trace")]
    let live = flow.live_trace("a storm".into());
    let over = AtomicBool::new(false);
    let report = std::thread::scope(|scope| {
        let (control, over) = (&control, &over);
        let steering = random.fork();
        scope.spawn(move || steer(control, steering, over));
        #[cfg(feature = "trace")]
        scope.spawn(|| ask(&live, over));
        let ending = random.fork();
        scope.spawn(move || end_early(control, ending, (stops, abandons)));
        let report = flow.run(0..3000);
        over.store(true, Ordering::Relaxed);
        report
    });
    conserved(&report);
    if abandons {
        return;
    }
    assert_eq!(report.left, 0, "seed {seed}");
    assert!(stops || report.outcome == Outcome::Complete && report.admitted == 3000, "seed {seed}");
    let dead = dead.lock().unwrap();
    assert_eq!(report.dead_lettered, dead.len() as u64, "seed {seed}");
    let mut children: Vec<Child> = retired.lock().unwrap().iter().flatten().copied().collect();
    children.extend(dead.iter().flat_map(children_of));
    let ended = children.len() as u64;
    children.sort_unstable();
    children.dedup();
    assert_eq!((children.len() as u64, ended), (came.load(Ordering::Relaxed), report.split), "seed {seed}");
}

/// Changes caps until the run is over.
fn steer(control: &Control, mut random: Random, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        match random.below(6) {
            0 => control.set_inflight(1 + random.below(300)).unwrap(),
            1 => control.set_memory(500 + random.below(50_000)).unwrap(),
            2 => control.set_capacity("tokens", 1 + random.below(8)).unwrap(),
            3 => control.set_shared_workers(1 + random.below(4) as usize).unwrap(),
            4 => control.set_workers("left", 0..=1 + random.below(4) as usize).unwrap(),
            _ => {
                let seen = control.snapshot();
                let departed = seen.retired + seen.dead_lettered + seen.gathered;
                assert_eq!(seen.admitted + seen.split, departed + seen.in_flight, "a snapshot adds up");
            }
        }
        std::thread::sleep(Duration::from_micros(random.below(300)));
    }
}

/// Replays windows of the run under other settings until it is over.
#[cfg(feature = "trace")]
fn ask(live: &millstream_flow::LiveTrace, over: &AtomicBool) {
    use millstream_flow::{ReplayError, Trace, WhatIf};
    live.begin();
    while !over.load(Ordering::Relaxed) {
        let trace = Trace::read(&*live.window(96 << 10)).unwrap();
        let replayed = match trace.replay(&WhatIf::default().workers(2).inflight(50)) {
            Ok(replayed) => replayed.report,
            // A replay cannot know what a group's own code decides.
            Err(ReplayError::NoModel(_)) => return,
            Err(error) => panic!("{error}"),
        };
        let departed = replayed.retired + replayed.dead_lettered + replayed.gathered + replayed.left;
        assert_eq!(replayed.admitted + replayed.split, departed, "a replay loses nothing");
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// Stops or abandons the run before its source has ended, if the test asks for that.
fn end_early(control: &Control, mut random: Random, (stops, abandons): (bool, bool)) {
    std::thread::sleep(Duration::from_micros(random.below(15_000)));
    if stops {
        control.stop();
    }
    if abandons {
        control.abandon();
    }
}
