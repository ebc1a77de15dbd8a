//! Random histories: some that an object could have produced, and some with small errors.

use super::{Act, Answer, CONTAINERS, Decision, Seen, compare_first, history, is_legal, stress, try_decide};
use crate::budget::{Budget, Options};
use crate::model::{Kind, Model};
use crate::operation::Op;
use crate::part::Part;
use crate::value::Value;

/// SplitMix64 (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// Runs `n` operations on an object of `model`, one after the other, ten time units apart.
fn run(model: &Model, n: usize, random: &mut Random) -> Vec<Act> {
    let mut state: Vec<i64> = Vec::new();
    let mut values: Vec<i64> = (1..=n as i64).collect();
    let often = 1 + random.below(3);
    (0..n as u64)
        .map(|k| {
            let fresh = values.swap_remove(random.below(values.len()));
            let comes_in = random.below(4) < often;
            let mut process = k as u32;
            let (op, input, output) = match model.kind {
                Kind::Register if comes_in => {
                    state = vec![fresh];
                    (Op::WRITE, Some(fresh), Answer::Null)
                }
                Kind::Register => (Op::READ, None, Answer::Int(state.first().copied().unwrap_or(0))),
                Kind::Set => set(&mut state, comes_in, random),
                Kind::Allocator => allocator(&mut state, comes_in, random),
                Kind::Mutex => {
                    process = random.below(3) as u32;
                    mutex(&mut state, process)
                }
                kind => container(&mut state, kind, comes_in.then_some(fresh)),
            };
            Act { op, input, output, call: 10 * k + 100, ret: Some(10 * k + 101), process }
        })
        .collect()
}

fn container(state: &mut Vec<i64>, kind: Kind, fresh: Option<i64>) -> (Op, Option<i64>, Answer) {
    let &(_, insert, remove) = CONTAINERS.iter().find(|(other, ..)| *other == kind).expect("a container");
    let Some(fresh) = fresh else {
        let at = match kind {
            Kind::Queue => 0,
            Kind::Stack => state.len().saturating_sub(1),
            _ => (0..state.len()).min_by_key(|&i| state[i]).unwrap_or(0),
        };
        let out = if state.is_empty() { Answer::Null } else { Answer::Int(state.remove(at)) };
        return (remove, None, out);
    };
    state.push(fresh);
    (insert, Some(fresh), Answer::Null)
}

fn set(state: &mut Vec<i64>, comes_in: bool, random: &mut Random) -> (Op, Option<i64>, Answer) {
    let element = 1 + random.below(2) as i64;
    let there = state.contains(&element);
    let (op, changes) = match (random.one_in(3), comes_in) {
        (true, _) => (Op::CONTAINS, there),
        (false, true) => (Op::ADD, !there),
        (false, false) => (Op::REMOVE, there),
    };
    state.retain(|&other| other != element || op != Op::REMOVE);
    state.extend((op == Op::ADD && !there).then_some(element));
    (op, Some(element), Answer::Bool(changes))
}

fn allocator(state: &mut Vec<i64>, comes_in: bool, random: &mut Random) -> (Op, Option<i64>, Answer) {
    if !comes_in && !state.is_empty() {
        return (Op::FREE, Some(state.swap_remove(random.below(state.len()))), Answer::Null);
    }
    let free = (1..=3).find(|object| !state.contains(object));
    state.extend(free);
    (Op::ALLOC, None, free.map_or(Answer::Null, Answer::Int))
}

fn mutex(state: &mut Vec<i64>, process: u32) -> (Op, Option<i64>, Answer) {
    match state.first() {
        Some(&holder) if holder == i64::from(process) => {
            state.clear();
            (Op::RELEASE, None, Answer::Null)
        }
        Some(_) => (Op::ACQUIRE, None, Answer::Bool(false)),
        None => {
            state.push(i64::from(process));
            (Op::ACQUIRE, None, Answer::Null)
        }
    }
}

/// Lengthens operations, so that they overlap.
fn stretch(acts: &mut [Act], most: usize, random: &mut Random) {
    for act in acts.iter_mut() {
        act.call -= random.below(most) as u64;
        act.ret = act.ret.map(|ret| ret + random.below(most) as u64);
    }
    acts.sort_by_key(|act| act.call);
}

/// Swaps answers, moves operations, and removes returns.
fn disturb(acts: &mut [Act], random: &mut Random) {
    for _ in 0..random.below(4) {
        let (a, b) = (random.below(acts.len()), random.below(acts.len()));
        if acts[a].op == acts[b].op {
            (acts[a].output, acts[b].output) = (acts[b].output, acts[a].output);
        }
    }
    if random.one_in(3) {
        let late = random.below(acts.len());
        let by = random.below(40) as u64;
        acts[late].call += by;
        acts[late].ret = acts[late].ret.map(|ret| ret + by);
    }
    for _ in 0..random.below(4) {
        let at = random.below(acts.len());
        acts[at].ret = None;
    }
    acts.sort_by_key(|act| act.call);
}

/// Shortens operations that overlap the next one of their process, and drops those that would have no duration.
fn one_at_a_time(acts: &mut Vec<Act>) {
    for i in 0..acts.len() {
        let next = acts[i + 1..].iter().find(|act| act.process == acts[i].process).map(|act| act.call);
        if let Some(next) = next {
            acts[i].ret = Some(acts[i].ret.map_or(next.saturating_sub(1), |ret| ret.min(next.saturating_sub(1))));
        }
    }
    acts.retain(|act| act.ret.is_none_or(|ret| ret >= act.call));
}

/// Makes the clock so coarse that many events share a time.
fn coarsen(acts: &mut [Act], tick: u64) {
    for act in acts {
        act.call /= tick;
        act.ret = act.ret.map(|ret| ret / tick);
    }
}

fn seeded(model: &Model) -> Random {
    println!("{model}:");
    Random(millstream_verify_random::seed())
}

fn agree(model: &Model, cases: u64, longest: usize) {
    let mut random = seeded(model);
    let mut seen = Seen::default();
    for _ in 0..cases * stress() {
        let n = 2 + random.below(longest - 1);
        let mut acts = run(model, n, &mut random);
        let most = 1 + random.below(30);
        stretch(&mut acts, most, &mut random);
        disturb(&mut acts, &mut random);
        one_at_a_time(&mut acts);
        if random.one_in(3) {
            coarsen(&mut acts, 2 + random.below(30) as u64);
        }
        if random.one_in(8) {
            seen.compare_both(model, &acts);
            compare_first(model, &acts);
        } else {
            seen.compare(model, &acts);
        }
        seen.compare_prefix(model, &acts, 100 + random.below(10 * n) as u64);
    }
    println!("{model}: {seen:?}");
    assert!(seen.held > cases / 20 && seen.failed > cases / 20, "{seen:?}");
    // At most one history in this many may be left open. The search may have to decide which values the pending
    // removals of a stack took, and which object a pending allocation took.
    let open_one_in = match (model.kind, model.capacity) {
        (Kind::Stack, _) => 1000,
        (Kind::Allocator, Some(_)) => 10,
        // The search also decides histories in which a process's operations coincide in time and do not alternate.
        (Kind::Mutex, _) => 4,
        _ => u64::MAX,
    };
    assert!(seen.open <= cases * stress() / open_one_in, "{seen:?}");
}

#[test]
fn containers_agree_on_random_histories() {
    for (kind, ..) in CONTAINERS {
        agree(&Model::new(kind), 100_000, 11);
    }
}

/// Half of the removals never return.
#[test]
fn histories_with_many_pending_removals_are_decided() {
    for (kind, remove) in [(Kind::Queue, Op::DEQUEUE), (Kind::PriorityQueue, Op::DELETE_MIN)] {
        let model = Model::new(kind);
        let mut random = seeded(&model);
        let mut seen = Seen::default();
        let cases = 50_000 * stress();
        for _ in 0..cases {
            let n = 4 + random.below(8);
            let mut acts = run(&model, n, &mut random);
            let most = 1 + random.below(30);
            stretch(&mut acts, most, &mut random);
            disturb(&mut acts, &mut random);
            for act in acts.iter_mut().filter(|act| act.op == remove) {
                act.ret = act.ret.filter(|_| random.one_in(2));
            }
            seen.compare(&model, &acts);
        }
        println!("{model}: {seen:?}");
        assert_eq!(seen.open, 0);
        assert!(seen.held > cases / 20 && seen.failed > cases / 50, "{seen:?}");
    }
}

#[test]
fn registers_agree_on_random_histories() {
    agree(&Model::new(Kind::Register).with_initial(Value::int(0)), 100_000, 11);
}

#[test]
fn sets_agree_on_random_histories() {
    agree(&Model::new(Kind::Set), 100_000, 11);
}

#[test]
fn allocators_agree_on_random_histories() {
    agree(&Model::new(Kind::Allocator), 50_000, 11);
    agree(&Model::new(Kind::Allocator).with_capacity(3), 100_000, 11);
}

#[test]
fn locks_agree_on_random_histories() {
    agree(&Model::new(Kind::Mutex), 100_000, 11);
}

#[test]
fn long_valid_histories_are_explained() {
    let kinds = CONTAINERS.map(|(kind, ..)| kind).into_iter().chain([Kind::Set, Kind::Allocator, Kind::Mutex]);
    let register = Model::new(Kind::Register).with_initial(Value::int(0));
    for model in kinds.map(Model::new).chain([register, Model::new(Kind::Allocator).with_capacity(3)]) {
        let mut random = seeded(&model);
        for round in 0..20 * stress() {
            let n = 100 << (round % 6);
            let mut acts = run(&model, n, &mut random);
            // A mutex's process may call its next operation ten time units later. Calls move back by at most eight
            // units, so that no operation is cut off before the moment at which it takes effect.
            let most = if model.kind == Kind::Mutex { 9 } else { 1 + random.below(60) };
            stretch(&mut acts, most, &mut random);
            one_at_a_time(&mut acts);
            let history = history(&acts);
            let part = Part::whole(&history);
            let Some(Ok(Decision::Holds(order))) = try_decide(&part, &model, &mut Budget::new(&Options::default()))
            else {
                panic!("{model}: {n} operations of a correct object are not explained");
            };
            is_legal(&model, &history, &order);
        }
    }
}
