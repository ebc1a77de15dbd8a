//! Random flows of splits, gathers and failures: no unit is lost.
//!
//! `MILLSTREAM_STRESS=n` runs n times as many seeds; `MILLSTREAM_SEED=n` begins at that seed.

use std::collections::HashMap;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use millstream_flow::{AfterFailure, DeadLetter, Either, Failure, Flow, Gather, Need, Retry, select};
use millstream_verify_random::{Random, seed, stress};

use super::{collect, conserved, letters};

/// Trees of units that are split and gathered again by several rules, and that fail, panic and pause at random, in
/// flows whose caps keep changing. Every leaf ends in one group or one letter.
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

/// A unit of a random tree: its level, a number that decides its fate, and the number of its leaf if it is one.
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
    // The children of a unit take two paths, and meet again.
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
