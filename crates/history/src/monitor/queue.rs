//! Queues: first in, first out.
//!
//! A value precedes another if either its insertion or its removal precedes the other's. The history is linearizable if
//! and only if
//!
//! 1. no two values precede each other, and
//! 2. every empty removal has a moment at which no value is certainly present.
//!
//! Pairs suffice in the first condition because insertions are intervals, and so are removals. If interval `a` is
//! before `b` and `c` is before `d`, then `a` is before `d` or `c` is before `b`. So a longer cycle of precedence
//! contains a shorter one. If there is no cycle, the values are taken in the order of precedence. Each insertion takes
//! effect at the latest call of an insertion so far, and each removal at the latest call of a removal so far. None of
//! these moments is after the operation's return, because otherwise two values would precede each other. The cut at an
//! uncovered moment (see [`cover`](super::cover)) respects precedence too.
//!
//! The values are sorted until two remaining values precede each other. As long as no removal of a remaining value has
//! returned, the history is legal: the sorted values come first, and then the insertions of the remaining values, one
//! after the other. This gives the [`window`](super::window) of the failure.
//!
//! The conditions exclude the four patterns of Bouajjani, Emmi, Enea and Hamza ("On reducing linearizability to state
//! reachability", 2015). O(n log n).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::cover::{Cover, chain};
use super::life::{Core, Life, Outcome, Step};
use super::span::{NEVER, Span, by_rank};
use super::window::{Failure, Window, answered, done_before, first_call_among_open};

/// Decides a history of a first-in-first-out queue.
pub(super) fn decide(lives: &[Life], empties: &[Span]) -> Outcome {
    let moments = moments(lives, empties)?;
    match sort(lives) {
        Ok(order) => Ok(schedule(lives, &order, &moments)),
        Err(stuck) => Err(stuck.core()),
    }
}

/// Decides a history whose removals have all returned, and finds the time around a failure.
pub(super) fn decide_and_tell(lives: &[Life], empties: &[Span]) -> Result<Vec<Step>, Failure> {
    let moments = moments(lives, empties)?;
    let stuck = match sort(lives) {
        Ok(order) => return Ok(schedule(lives, &order, &moments)),
        Err(stuck) => stuck,
    };
    let is_stuck = stuck.others(lives.len());
    let others = || is_stuck.iter().zip(lives).filter(|&(&is_stuck, _)| is_stuck).map(|(_, life)| life);
    let first_return = others().map(|life| life.remove.ret).min().unwrap_or(NEVER);
    let returns = stuck.pair.iter().map(|&i| lives[i as usize].remove.ret).filter(|&ret| ret != NEVER);
    let answered = answered(lives, empties, returns.max().unwrap_or(first_return));
    let calls = others().map(|life| life.insert.call).min().unwrap_or(0);
    let from = first_call_among_open(lives, empties, calls);
    let done = done_before(from, schedule(lives, &stuck.order, &moments), lives, empties);
    Err(Failure { core: stuck.core(), window: Some(Window { done, from, during: first_return..=answered }) })
}

/// For each empty removal, a moment at which no value is certainly present; ascending.
fn moments(lives: &[Life], empties: &[Span]) -> Result<Vec<(u32, u32)>, Core> {
    let cover = Cover::of(lives);
    let mut moments = Vec::with_capacity(empties.len());
    for (e, empty) in empties.iter().enumerate() {
        match cover.gap(*empty) {
            Some(moment) => moments.push((moment, e as u32)),
            None => {
                let lives = chain(lives, 0..lives.len() as u32, *empty);
                return Err(Core { lives, empties: vec![e as u32] });
            }
        }
    }
    moments.sort_unstable();
    Ok(moments)
}

/// Two values that precede each other.
struct Stuck {
    pair: [u32; 2],
    /// The values that come before the pair and before all other values.
    order: Vec<u32>,
}

impl Stuck {
    fn core(&self) -> Core {
        Core { lives: self.pair.to_vec(), empties: Vec::new() }
    }

    /// Marks the values that are not in `order`.
    fn others(&self, values: usize) -> Vec<bool> {
        let mut others = vec![true; values];
        self.order.iter().for_each(|&i| others[i as usize] = false);
        others
    }
}

/// An order of the values that respects precedence. Among the possible values, the one whose removal was called first
/// comes next.
fn sort(lives: &[Life]) -> Result<Vec<u32>, Stuck> {
    let n = lives.len();
    let by = |key: fn(&Life) -> u32| by_rank(n, |i| key(&lives[i]));
    let calls = [by(|life| life.insert.call), by(|life| life.remove.call)];
    let returns = [by(|life| life.insert.ret), by(|life| life.remove.ret)];
    let call = |side: usize, i: u32| [lives[i as usize].insert.call, lives[i as usize].remove.call][side];
    let ret = |side: usize, i: u32| [lives[i as usize].insert.ret, lives[i as usize].remove.ret][side];

    // There are two sides, insertions (0) and removals (1). A value becomes free on a side when no remaining value
    // precedes it on that side, and stays free. It can come next when it is free on both sides.
    let mut free = vec![0u8; n];
    let mut called = [0; 2];
    let mut returned = [0; 2];
    let mut taken = vec![false; n];
    let mut ready = BinaryHeap::new();
    let mut order = Vec::with_capacity(n);
    while order.len() < n {
        for side in 0..2 {
            while taken[returns[side][returned[side]] as usize] {
                returned[side] += 1;
            }
            let first = ret(side, returns[side][returned[side]]);
            while let Some(&i) = calls[side].get(called[side])
                && call(side, i) <= first
            {
                called[side] += 1;
                free[i as usize] += 1;
                if free[i as usize] == 2 {
                    ready.push(Reverse((lives[i as usize].remove.call, i)));
                }
            }
        }
        let Some(Reverse((_, i))) = ready.pop() else {
            // Let `a` be the remaining value whose insertion returns first, and `b` the one whose removal returns
            // first. No value is free on both sides. `a` is free on the side of insertions, so it is not free on the
            // side of removals: `b` precedes it there. Likewise, `a` precedes `b` on the side of insertions.
            return Err(Stuck { pair: [returns[0][returned[0]], returns[1][returned[1]]], order });
        };
        taken[i as usize] = true;
        order.push(i);
    }
    Ok(order)
}

/// The steps of values in `order`, with the empty removals at their moments.
fn schedule(lives: &[Life], order: &[u32], moments: &[(u32, u32)]) -> Vec<Step> {
    let mut steps = Vec::with_capacity(2 * lives.len() + moments.len());
    let mut rest = order;
    for &(moment, empty) in moments {
        let before = rest.iter().take_while(|&&i| lives[i as usize].remove.call <= moment).count();
        merge(lives, &rest[..before], &mut steps);
        rest = &rest[before..];
        steps.push(Step::Empty(empty));
    }
    merge(lives, rest, &mut steps);
    steps
}

/// Interleaves the insertions and removals of the values in `order`, each step as early as the previous ones permit.
fn merge(lives: &[Life], order: &[u32], steps: &mut Vec<Step>) {
    let mut next = 0;
    let mut inserted = 0;
    let mut removed = 0;
    for &i in order {
        removed = lives[i as usize].remove.call.max(removed);
        // This inserts the value itself, too, and those before it, because no removal is called before its insertion.
        while let Some(&j) = order.get(next) {
            let point = lives[j as usize].insert.call.max(inserted);
            if point > removed {
                break;
            }
            inserted = point;
            steps.push(Step::Insert(j));
            next += 1;
        }
        steps.push(Step::Remove(i));
    }
}
