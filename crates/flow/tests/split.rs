//! Units that are split: order, room, failures, deep trees, and the end of a flow at any moment.
//!
//! `MILLSTREAM_STRESS=n` runs n times as many seeds of random trees; `MILLSTREAM_SEED=n` begins at that seed.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use millstream_flow::{
    AfterFailure, BuildError, Cause, DeadLetter, Either, Failure, Flow, FlowBuilder, Need, Outcome, Report, Retry,
    Unfinished,
};
use millstream_verify_random::{Random, seed, stress};

fn conserved(report: &Report) {
    let came = report.admitted + report.split;
    assert_eq!(came, report.retired + report.dead_lettered + report.left);
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

#[test]
fn children_know_their_parent_and_come_in_order() {
    let mut flow = Flow::builder("split");
    flow.workers(1);
    let seen = collect::<(u64, u64, u64)>(&mut flow);
    let (split, child, done) = (flow.inlet("split"), flow.inlet("child"), flow.retire());
    flow.split(split, |n: &mut u64, cx| {
        assert_eq!(cx.parent(), None);
        Ok((0..*n).map(Ok))
    })
    .to(child);
    flow.stage(child, |n: &mut u64, cx| Ok((cx.parent().unwrap(), cx.unit(), *n))).to(done);
    let report = flow.build(split).unwrap().run([3, 0, 1000]);
    assert_eq!((report.admitted, report.split, report.retired, report.left), (3, 1003, 1006, 0));
    assert_eq!(report.stages[0].units, 3);
    let mut seen = seen.lock().unwrap().clone();
    seen.sort_unstable();
    let largest = seen.iter().find(|(.., n)| *n == 999).unwrap().0;
    let of_the_last: Vec<u64> = seen.iter().filter(|(parent, ..)| *parent == largest).map(|&(.., n)| n).collect();
    assert_eq!(
        of_the_last,
        (0..1000).collect::<Vec<_>>(),
        "the children are numbered in the order in which they were produced"
    );
    let mut numbers: Vec<u64> = seen.iter().map(|&(_, unit, _)| unit).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 1003, "every child has a number of its own");
}

#[test]
fn the_caps_apply_to_the_children_of_one_parent() {
    let mut flow = Flow::builder::<()>("caps");
    flow.inflight(8).memory(1000).workers(2);
    let (split, child, done) = (flow.inlet("split"), flow.inlet("child"), flow.retire());
    flow.split(split, |n: &mut u64, _| Ok((0..*n).map(|n| Ok(vec![0_u8; (n % 50) as usize])))).to(child);
    flow.stage(child, |_: &mut Vec<u8>, _| Ok(())).bytes(|child| child.len() as u64).to(done);
    let report = flow.build(split).unwrap().run([50_000]);
    assert_eq!((report.split, report.retired), (50_000, 50_001));
    assert!(report.peak_in_flight <= 8, "{} units", report.peak_in_flight);
    assert!(report.peak_bytes_in_flight <= 1100, "{} bytes", report.peak_bytes_in_flight);
    conserved(&report);
}

#[test]
fn a_flow_full_of_parents_makes_progress() {
    for inflight in 1..6 {
        let mut flow = Flow::builder::<()>("full");
        flow.inflight(inflight).workers(2);
        let (wait, split) = (flow.inlet("wait"), flow.inlet("split"));
        let (child, done) = (flow.inlet("child"), flow.retire());
        flow.update(wait, |_: &mut u64, cx| {
            cx.delay(Duration::from_millis(1));
            Ok(())
        })
        .to(split);
        flow.split(split, |n: &mut u64, _| Ok((0..*n).map(Ok))).to(child);
        flow.stage(child, |_: &mut u64, _| Ok(())).to(done);
        let report = flow.build(wait).unwrap().run(vec![20; 40]);
        assert_eq!((report.split, report.retired), (800, 840));
        assert!(report.peak_in_flight <= inflight + 1, "{} of {inflight}", report.peak_in_flight);
    }
}

#[test]
fn children_of_children_exceed_the_cap_by_one_for_each_level() {
    for inflight in [1, 2, 3, 10, 100] {
        let mut flow = Flow::builder::<u64>("levels");
        flow.inflight(inflight).workers(3);
        let inlets: Vec<_> = (0..4).map(|level| flow.inlet::<u64>(format!("level {level}"))).collect();
        let (leaf, done) = (flow.inlet("leaf"), flow.retire());
        for pair in inlets.windows(2) {
            flow.split(pair[0], |n: &mut u64, _| Ok(std::iter::repeat_n(*n, *n as usize).map(Ok))).to(pair[1]);
        }
        flow.split(inlets[3], |n: &mut u64, _| Ok(std::iter::repeat_n(*n, *n as usize).map(Ok))).to(leaf);
        flow.stage(leaf, |n: &mut u64, _| Ok(*n)).to(done);
        let report = flow.build(inlets[0]).unwrap().run(vec![5; 20]);
        assert_eq!(report.split, 20 * (5 + 25 + 125 + 625));
        assert!(report.peak_in_flight <= inflight + 4, "{} of {inflight}", report.peak_in_flight);
        conserved(&report);
    }
}

/// A stage that is its own successor walks a tree.
#[test]
fn a_wide_and_deep_tree_is_walked_in_a_small_flow() {
    const DEPTH: u32 = 6;
    const WIDTH: u32 = 8;
    let mut flow = Flow::builder::<u32>("walk");
    flow.inflight(10).workers(2);
    let leaves = collect(&mut flow);
    let (visit, split, done) = (flow.inlet("visit"), flow.inlet("split"), flow.retire());
    flow.stage(visit, |depth: &mut u32, _| {
        Ok(if *depth < DEPTH { Either::Left(*depth) } else { Either::Right(*depth) })
    })
    .to((split, done));
    flow.split(split, |depth: &mut u32, _| {
        Ok((0..WIDTH).map({
            let below = *depth + 1;
            move |_| Ok(below)
        }))
    })
    .to(visit);
    let report = flow.build(visit).unwrap().run([0]);
    assert_eq!(leaves.lock().unwrap().len(), WIDTH.pow(DEPTH) as usize);
    assert!(report.peak_in_flight <= 10 + u64::from(DEPTH), "{} in flight", report.peak_in_flight);
    conserved(&report);
}

#[test]
fn a_parent_that_fails_before_its_first_child_is_retried_and_after_it_is_not() {
    let attempts = Arc::new(AtomicUsize::new(0));
    let mut flow = Flow::builder::<u64>("failing");
    let (retired, dead) = (collect(&mut flow), letters(&mut flow));
    let (split, child, done) = (flow.inlet("split"), flow.inlet("child"), flow.retire());
    let count = attempts.clone();
    flow.split(split, move |text: &mut String, _| {
        let attempt = count.fetch_add(1, Ordering::Relaxed);
        let text = text.clone();
        Ok((0..).map_while(move |n| match (&*text, n) {
            ("early", 0) if attempt < 2 => Some(Err(Failure::msg("not yet"))),
            (_, 7) => None,
            _ => Some(Ok(n)),
        }))
    })
    .retry(Retry::times(5))
    .to(child);
    flow.stage(child, |n: &mut u64, _| Ok(*n)).to(done);
    let flow = flow.build(split).unwrap();
    let report = flow.run(["early".to_owned()]);
    assert_eq!((report.split, report.retired, report.stages[0].retries), (7, 8, 2));
    assert_eq!(retired.lock().unwrap().len(), 7);
    assert!(dead.lock().unwrap().is_empty() && attempts.load(Ordering::Relaxed) == 3);
}

#[test]
fn a_parent_that_fails_after_its_first_child_is_not_retried() {
    for (text, children, cause) in
        [("late", 5, Cause::Error), ("panic", 2, Cause::Panic), ("requeue", 3, Cause::Cancelled)]
    {
        let (report, letters) = fail(text);
        assert_eq!((report.split, report.retired, report.dead_lettered), (children, children, 1), "{text}");
        assert_eq!(letters.len(), 1);
        assert_eq!((letters[0].cause, letters[0].attempts, letters[0].parent), (cause, 1, None));
        assert_eq!(letters[0].input::<String>().unwrap(), text);
        conserved(&report);
    }

    fn fail(text: &str) -> (Report, Vec<DeadLetter>) {
        let mut flow = Flow::builder::<u64>("failing");
        let letters = letters(&mut flow);
        let (split, child, done) = (flow.inlet("split"), flow.inlet("child"), flow.retire());
        flow.split(split, move |text: &mut String, _| {
            let text = text.clone();
            Ok((0..).map_while(move |n| match (&*text, n) {
                ("late", 5) => Some(Err(Failure::msg("torn at the fifth"))),
                ("panic", 2) => panic!("the iterator panics"),
                ("requeue", 3) => Some(Err(Failure::requeue("elsewhere"))),
                _ => Some(Ok(n)),
            }))
        })
        .retry(Retry::times(5))
        .to(child);
        flow.stage(child, |n: &mut u64, _| Ok(*n)).to(done);
        let report = flow.build(split).unwrap().run([text.to_owned()]);
        let letters = std::mem::take(&mut *letters.lock().unwrap());
        (report, letters)
    }
}

#[test]
fn a_child_s_letter_names_its_parent_and_a_parent_waits_for_a_slow_child() {
    let mut flow = Flow::builder::<u64>("letters");
    let letters = letters(&mut flow);
    let (split, child, done) = (flow.inlet("split"), flow.inlet("child"), flow.retire());
    // Children may get numbers before the last parent is admitted.
    let numbers = Arc::new(Mutex::new(Vec::new()));
    let noted = numbers.clone();
    flow.split(split, move |n: &mut u64, cx| {
        noted.lock().unwrap().push((*n, cx.unit()));
        Ok((0..*n).map(Ok))
    })
    .to(child);
    flow.stage(child, |n: &mut u64, _| match *n {
        1 => Err(Failure::permanent("one")),
        2 => panic!("two"),
        3 => Err(Failure::msg("three")),
        _ => Ok(*n),
    })
    .after_failure(AfterFailure::DeadLetter)
    .to(done);
    let report = flow.build(split).unwrap().run([10, 1, 2]);
    assert_eq!((report.split, report.retired, report.dead_lettered), (13, 12, 4));
    let mut parents: Vec<Option<u64>> = letters.lock().unwrap().iter().map(|letter| letter.parent).collect();
    parents.sort_unstable();
    let numbers = numbers.lock().unwrap();
    let number_of = |payload| numbers.iter().find(|(n, _)| *n == payload).map(|(_, unit)| *unit);
    let (ten, two) = (number_of(10), number_of(2));
    assert_eq!((ten, numbers.len()), (Some(0), 3), "the first unit is number 0");
    assert_eq!(parents, [ten, ten, ten, two]);
}

#[test]
fn a_ticket_for_a_unit_that_is_split_says_so() {
    let mut flow = Flow::builder::<u64>("tickets");
    let (split, child, done) = (flow.inlet("split"), flow.inlet("child"), flow.retire());
    flow.split(split, |n: &mut u64, _| if *n == 0 { Err(Failure::permanent("no")) } else { Ok((0..*n).map(Ok)) })
        .to(child);
    flow.stage(child, |n: &mut u64, _| Ok(*n)).to(done);
    let service = flow.build(split).unwrap().start();
    assert!(matches!(service.submit(5).unwrap().wait(), Err(Unfinished::Split)));
    assert!(matches!(service.submit(0).unwrap().wait(), Err(Unfinished::Dead(letter)) if letter.message == "no"));
    assert_eq!(service.drain().retired, 6);
}

#[test]
fn children_may_retire_at_once_or_take_several_exits() {
    let mut flow = Flow::builder::<u64>("exits");
    let retired = collect(&mut flow);
    let (split, child, done) = (flow.inlet("split"), flow.inlet("child"), flow.retire());
    flow.split(split, |n: &mut u64, _| {
        Ok((0..*n).map(|n| Ok(if n % 3 == 0 { Either::Left(n) } else { Either::Right(n) })))
    })
    .to((child, done));
    flow.stage(child, |n: &mut u64, _| Ok(*n + 1000)).to(done);
    let report = flow.build(split).unwrap().run([9, 10]);
    conserved(&report);
    let mut retired = retired.lock().unwrap().clone();
    retired.sort_unstable();
    assert_eq!(retired.len(), 19);
    assert_eq!(retired.iter().filter(|&&n| n >= 1000).count(), 7);
}

#[test]
fn a_listener_that_panics_loses_no_child_and_no_parent() {
    let mut flow = Flow::builder::<u64>("listener");
    flow.on_retire(|n| assert!(n % 2 == 0, "odd"));
    let (split, done) = (flow.inlet("split"), flow.retire());
    flow.split(split, |n: &mut u64, _| Ok((0..*n).map(Ok))).to(done);
    let report = flow.build(split).unwrap().run([100, 7]);
    assert_eq!((report.split, report.retired, report.dead_lettered), (107, 109, 0));
}

#[test]
fn a_need_function_that_panics_on_a_child_fails_the_parent_alone() {
    let mut flow = Flow::builder::<u64>("needs");
    let letters = letters(&mut flow);
    let keyed = flow.keyed_tokens("key", 1);
    let (split, child, done) = (flow.inlet("split"), flow.inlet("child"), flow.retire());
    flow.split(split, |n: &mut u64, _| Ok((0..*n).map(Ok))).to(child);
    flow.stage(child, |n: &mut u64, _| Ok(*n))
        .need(Need::keyed(keyed, |n: &u64| {
            assert!(*n != 5, "five has no key");
            (n % 3).to_string()
        }))
        .to(done);
    let report = flow.build(split).unwrap().run([5, 9, 3]);
    assert_eq!((report.split, report.retired, report.dead_lettered), (13, 15, 1));
    assert_eq!(letters.lock().unwrap()[0].cause, Cause::Panic);
    conserved(&report);
}

#[test]
fn the_needs_of_a_splitting_stage_are_granted_for_each_run() {
    let mut flow = Flow::builder::<u64>("needs");
    flow.workers(4).inflight(64);
    let tokens = flow.tokens("tokens", 1);
    let permit = flow.tokens("permit", 1);
    let (split, child, done) = (flow.inlet("split"), flow.inlet("child"), flow.retire());
    let running = Arc::new(AtomicU64::new(0));
    flow.split(split, move |n: &mut u64, _| {
        let running = running.clone();
        Ok((0..*n).map(move |n| {
            assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0, "two runs at once");
            std::thread::yield_now();
            running.fetch_sub(1, Ordering::SeqCst);
            Ok(n)
        }))
    })
    .need(Need::tokens(tokens, 1))
    .need(Need::tokens(permit, 1).per_batch())
    .to(child);
    // The children need the same token. A parent that kept it would wait for its own children.
    flow.stage(child, |n: &mut u64, _| Ok(*n)).need(Need::tokens(tokens, 1)).to(done);
    let report = flow.build(split).unwrap().run(vec![500; 10]);
    assert_eq!((report.split, report.retired, report.dead_lettered), (5000, 5010, 0));
}

#[test]
fn an_abandoned_flow_leaves_parents_and_children_behind() {
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let (dropped, made) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut flow = Flow::builder::<()>("abandoned");
    flow.inflight(100).workers(2);
    let (split, child, done) = (flow.inlet("split"), flow.inlet("child"), flow.retire());
    let (drops, makes) = (dropped.clone(), made.clone());
    flow.split(split, move |_: &mut u64, _| {
        let (drops, makes) = (drops.clone(), makes.clone());
        Ok(std::iter::repeat_with(move || {
            makes.fetch_add(1, Ordering::Relaxed);
            Ok(Counted(drops.clone()))
        }))
    })
    .to(child);
    flow.stage(child, |_: &mut Counted, cx| {
        cx.delay(Duration::from_micros(50));
        Ok(())
    })
    .to(done);
    let service = flow.build(split).unwrap().start();
    (0..5).for_each(|n| service.send(n).unwrap());
    while made.load(Ordering::Relaxed) < 10_000 {
        std::thread::yield_now();
    }
    service.control().abandon();
    let report = service.drain();
    assert_eq!(report.outcome, Outcome::Abandoned);
    conserved(&report);
    assert!(report.left >= 5, "the parents are left");
    assert_eq!(dropped.load(Ordering::Relaxed), made.load(Ordering::Relaxed), "every child was dropped once");
}

#[test]
fn a_blocked_iterator_holds_up_no_other_unit() {
    let (tell, go) = channel::<()>();
    let go = Arc::new(Mutex::new(go));
    let passed = Arc::new(AtomicBool::new(false));
    let mut flow = Flow::builder::<u64>("blocked");
    flow.workers(1);
    let (split, child, done) = (flow.inlet("split"), flow.inlet("child"), flow.retire());
    flow.split(split, move |n: &mut u64, _| {
        let (n, go) = (*n, go.clone());
        Ok((0..3).map(move |child| {
            if n == 0 && child == 1 {
                go.lock().unwrap().recv().unwrap();
            }
            Ok(n)
        }))
    })
    .blocking()
    .workers(0..=2)
    .to(child);
    let flag = passed.clone();
    flow.stage(child, move |n: &mut u64, _| {
        flag.fetch_or(*n == 1, Ordering::Relaxed);
        Ok(*n)
    })
    .to(done);
    let service = flow.build(split).unwrap().start();
    service.send(0).unwrap();
    service.send(1).unwrap();
    while !passed.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
    tell.send(()).unwrap();
    assert_eq!(service.drain().split, 6);
}

#[test]
fn the_time_limit_counts_for_each_child() {
    let mut flow = Flow::builder::<u64>("slow");
    let letters = letters(&mut flow);
    let (split, done) = (flow.inlet("split"), flow.retire());
    flow.split(split, |n: &mut u64, _| {
        let n = *n;
        Ok((0..6).map(move |child| {
            std::thread::sleep(Duration::from_millis(if child == n { 1000 } else { 30 }));
            Ok(child)
        }))
    })
    .timeout(Duration::from_millis(600))
    .to(done);
    let report = flow.build(split).unwrap().run([100, 3]);
    assert_eq!((report.dead_lettered, letters.lock().unwrap()[0].cause), (1, Cause::Timeout));
    assert!(report.split >= 9, "{} children", report.split);
    conserved(&report);
}

#[test]
fn the_build_refuses_what_could_wait_for_its_own_children() {
    let build = |bound: usize, hold: bool| {
        let mut flow = Flow::builder::<u64>("refused");
        let tokens = flow.tokens("tokens", 3);
        let (first, split) = (flow.inlet::<u64>("first"), flow.inlet("split"));
        let (child, done) = (flow.inlet("child"), flow.retire());
        let stage = flow.update(first, |_: &mut u64, _| Ok(()));
        if hold { stage.need(Need::tokens(tokens, 1).until(child)) } else { stage }.to(split);
        let stage = flow.split(split, |n: &mut u64, _| Ok((0..*n).map(Ok)));
        if bound == 1 { stage.queue(3) } else { stage }.to(child);
        let stage = flow.stage(child, |n: &mut u64, _| Ok(*n));
        if bound == 2 { stage.queue(3) } else { stage }.to(done);
        flow.build(first).err()
    };
    assert_eq!(build(0, false), None);
    assert!(matches!(build(1, false), Some(BuildError::QueueAtSplit { stage }) if stage == "split"));
    assert!(matches!(build(2, false), Some(BuildError::QueueAfterSplit { next, .. }) if next == "child"));
    let held = build(0, true).unwrap().to_string();
    assert!(held.contains("`first` holds `tokens` until `child`, but `split` on the way"), "{held}");
}

/// Trees of units that are split, fail, panic and pause at random, in flows whose caps keep changing.
#[test]
fn nothing_is_lost_in_random_trees() {
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

/// A unit of a random tree: its level, and a number that decides its fate.
#[derive(Clone, Copy)]
struct Twig {
    level: u32,
    fate: u64,
}

fn storm(seed: u64) {
    let mut random = Random::new(seed);
    let levels = 1 + random.below(4) as u32;
    let width = 1 + random.below(12);
    let inflight = 1 + random.below(60);
    let mut flow = Flow::builder::<Twig>(format!("storm {seed}"));
    flow.inflight(inflight).memory(200 + random.below(5000)).workers(1 + random.below(3) as usize);
    let leaves = Arc::new(AtomicU64::new(0));
    let count = leaves.clone();
    flow.on_retire(move |_| _ = count.fetch_add(1, Ordering::Relaxed));
    let dead = letters(&mut flow);
    let keyed = flow.keyed_tokens("keyed", 1 + random.below(3));
    flow.max_keys(keyed, 1 + random.below(5) as usize);
    let tokens = flow.tokens("tokens", 1 + random.below(3));
    let (sort, split) = (flow.inlet::<Twig>("sort"), flow.inlet::<Twig>("split"));
    let (leaf, done) = (flow.inlet::<Twig>("leaf"), flow.retire());
    let stage = flow
        .stage(sort, move |twig: &mut Twig, cx| {
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
        .bytes(|twig| twig.fate % 90);
    let stage = if random.below(2) == 0 { stage.need(Need::tokens(tokens, 1)) } else { stage };
    stage.to((split, leaf));
    let stage = flow.split(split, move |twig: &mut Twig, _| {
        let (twig, mut random) = (*twig, Random::new(twig.fate));
        if twig.fate.is_multiple_of(43) {
            return Err(Failure::msg("cannot be opened"));
        }
        let children = random.below(width + 1);
        Ok((0..children).map(move |n| match random.below(300) {
            0 => resume_unwind(Box::new("the iterator panics")),
            1 => Err(Failure::msg("torn")),
            fate => Ok(Twig { level: twig.level + 1, fate: fate.wrapping_mul(0x9e37_79b9) ^ n }),
        }))
    });
    let stage = if random.below(2) == 0 { stage.need(Need::tokens(tokens, 1)) } else { stage };
    let stage = if random.below(3) == 0 { stage.blocking().workers(0..=2) } else { stage };
    stage.after_failure(if random.below(2) == 0 { AfterFailure::Skip } else { AfterFailure::DeadLetter }).to(sort);
    flow.stage(
        leaf,
        |twig: &mut Twig, _| if twig.fate.is_multiple_of(57) { Err(Failure::msg("a dry leaf")) } else { Ok(*twig) },
    )
    .need(Need::keyed(keyed, |twig: &Twig| (twig.fate % 4).to_string()))
    .to(done);
    let service = flow.build(sort).unwrap().start();
    let control = service.control();
    let (abandons, steers) = (random.below(5) == 0, random.below(2) == 0);
    let mut peak = inflight;
    for n in 0..30 {
        service.send(Twig { level: 0, fate: random.below(1 << 40) }).unwrap();
        if steers && n % 4 == 0 {
            let cap = 1 + random.below(60);
            peak = peak.max(cap);
            control.set_inflight(cap).unwrap();
        }
    }
    if abandons {
        control.abandon();
    }
    let report = service.drain();
    conserved(&report);
    assert!(report.peak_in_flight <= peak + u64::from(levels), "seed {seed}: {} of {peak}", report.peak_in_flight);
    if !abandons {
        assert_eq!(report.left, 0, "seed {seed}");
        assert_eq!(report.dead_lettered, dead.lock().unwrap().len() as u64, "seed {seed}");
        assert!(report.retired >= leaves.load(Ordering::Relaxed), "seed {seed}");
    }
}

#[test]
fn children_that_grow_keep_the_byte_budget_although_their_parent_is_alone() {
    let mut flow = Flow::builder::<()>("grow");
    flow.memory(1000).inflight(1).workers(2);
    let (split, grow, end, done) = (flow.inlet("split"), flow.inlet("grow"), flow.inlet("end"), flow.retire());
    flow.split(split, |_: &mut u64, _| Ok([0_u64; 3].map(Ok))).to(grow);
    flow.update(grow, |bytes: &mut u64, cx| {
        cx.reserve(400)?;
        *bytes = 400;
        Ok(())
    })
    .bytes(|bytes: &u64| *bytes)
    .idempotent()
    .to(end);
    flow.stage(end, |_: &mut u64, _| Ok(())).to(done);
    let report = flow.build(split).unwrap().run(0..2000);
    assert_eq!((report.retired, report.left), (2000 + 6000, 0));
    assert!(report.peak_bytes_in_flight <= 1000, "{}", report.peak_bytes_in_flight);
}
