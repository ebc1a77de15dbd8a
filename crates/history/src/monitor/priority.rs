//! Priority queues: the smallest first.
//!
//! A removal needs a moment at which no smaller value is surely present; larger values do not matter to it. So the
//! history is linearizable if and only if each value has such a moment in its removal's span, and each empty removal
//! has one at which no value at all is surely present.
//!
//! Why that suffices: take the largest value. At the moment of its removal no other value is surely present, so the
//! rest of the history can be cut in two there without loss (see [`cover`](super::cover)); the rest is smaller. The
//! earliest such moments suffice: every value is removed at its own moment, and inserted as late as that moment or the
//! return of its insertion permits; removals at equal moments come in order of size.
//!
//! The set of covered moments only grows from value to value, so a union-find structure keeps, for each moment, the
//! next one that is free (see [`free`](super::free)). O(n log n).
//!
//! A value that is overlooked once makes all removals fail that take larger values before it is removed. The failure is
//! the removal among them that returns first: the history before its return is in order, and usually a little more of
//! it (see [`window`](super::window)). The order consists of the steps whose moments come before that return. It
//! contains every removal that returned by then. And every value that had to be gone by a removal's moment is gone:
//! that moment was free for the smaller value, too, so the smaller value's own moment, the earliest such, is no later.
//! A removal that has not returned by then has taken its value if its moment was before, and none if not.

use super::cover::chain;
use super::free::Free;
use super::life::{Core, Life, Outcome, Step};
use super::span::Span;
use super::window::{Failure, Window, answered, first_call_among_open};

/// Decides a history of a priority queue; `lives` ascend in priority.
pub(super) fn decide(lives: &[Life], empties: &[Span]) -> Outcome {
    moments(lives, empties).map_err(|unplaced| core(lives, unplaced.first_stuck()))
}

/// Decides a history, all of whose removals have returned, and finds the time around a failure.
pub(super) fn decide_and_tell(lives: &[Life], empties: &[Span]) -> Result<Vec<Step>, Failure> {
    moments(lives, empties).map_err(|unplaced| {
        let stuck = unplaced.first_stuck();
        let from = first_call_among_open(lives, empties, stuck.span.call);
        let done = unplaced.timed.into_iter().filter(|&(moment, ..)| moment < from).map(|(_, _, step)| step).collect();
        let during = stuck.span.ret..=answered(lives, empties, stuck.span.ret);
        Failure { core: core(lives, stuck), window: Some(Window { done, from, during }) }
    })
}

/// The removal, together with as few values as suffice to block it at every moment.
fn core(lives: &[Life], stuck: Removal) -> Core {
    let mut in_the_way = chain(lives, 0..stuck.below, stuck.span);
    in_the_way.extend(stuck.empty.is_none().then_some(stuck.below));
    // The values of a core are in the order of all values: here, in that of their priorities.
    in_the_way.sort_unstable();
    Core { lives: in_the_way, empties: stuck.empty.into_iter().collect() }
}

/// A removal that needs a moment at which none of the smaller values is surely present.
#[derive(Clone, Copy, Debug)]
struct Removal {
    span: Span,
    /// The number of values smaller than the one it took; all of them for an empty removal.
    below: u32,
    /// The index among the empty removals, for one of them.
    empty: Option<u32>,
}

/// The result if not every removal has a moment.
struct Unplaced {
    /// The removals without a moment, in order of the values.
    stuck: Vec<Removal>,
    /// The moments of all steps, with turns for those at one moment. A removal without one gets a moment after its
    /// return.
    timed: Vec<(u32, u32, Step)>,
}

impl Unplaced {
    /// The stuck removal that returns first.
    fn first_stuck(&self) -> Removal {
        *self.stuck.iter().min_by_key(|removal| removal.span.ret).expect("one has no moment")
    }
}

/// An order of all steps, or the removals without a moment.
fn moments(lives: &[Life], empties: &[Span]) -> Result<Vec<Step>, Unplaced> {
    let last = lives.iter().map(|life| life.remove.call).chain(empties.iter().map(|span| span.ret)).max();
    let mut free = Free::new(last.unwrap_or(0));
    let mut stuck = Vec::new();
    let mut timed: Vec<(u32, u32, Step)> = Vec::with_capacity(2 * lives.len() + empties.len());
    for (i, life) in (0..).zip(lives) {
        let moment = free.next(life.remove.call);
        if moment > life.remove.ret {
            stuck.push(Removal { span: life.remove, below: i, empty: None });
        }
        // Removals come at calls, their own or that of another value's removal; insertions come at returns, or right
        // before their own removal. So only removals ever share a moment, and those are ordered by size.
        timed.push((life.insert.ret.min(moment), 2 * i, Step::Insert(i)));
        timed.push((moment, 2 * i + 1, Step::Remove(i)));
        free.cover(life.insert.ret, life.remove.call);
    }
    let all = lives.len() as u32;
    for (e, empty) in (0..).zip(empties) {
        let moment = free.next(empty.call);
        if moment > empty.ret {
            stuck.push(Removal { span: *empty, below: all, empty: Some(e) });
        }
        timed.push((moment, 2 * all + e, Step::Empty(e)));
    }
    if !stuck.is_empty() {
        return Err(Unplaced { stuck, timed });
    }
    timed.sort_unstable_by_key(|&(moment, turn, _)| u64::from(moment) << 32 | u64::from(turn));
    Ok(timed.into_iter().map(|(_, _, step)| step).collect())
}
