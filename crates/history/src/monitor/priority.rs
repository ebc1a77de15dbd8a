//! Priority queues: the smallest first.
//!
//! A removal needs a moment at which no smaller value is certainly present; larger values do not matter. So the history
//! is linearizable if and only if two conditions are met. Each value's removal has such a moment in its span, and each
//! empty removal has a moment at which no value at all is certainly present.
//!
//! The conditions suffice, by induction. Take the largest value. At the moment of its removal no other value is
//! certainly present, so the history of the other values can be cut in two at this moment (see
//! [`cover`](super::cover)). That history has one value fewer, so it has an order by induction. The earliest such
//! moments yield an order: every value is removed at its moment, and is inserted at that moment or at its insertion's
//! return, whichever is earlier. Removals at equal moments come in order of size.
//!
//! The values are processed in ascending order, so the set of covered moments only grows. A union-find structure
//! stores, for each moment, the next moment that is free (see [`free`](super::free)). O(n log n).
//!
//! When a removal overlooks a value, every later removal of a larger value fails, until the overlooked value is
//! removed. The failure is the stuck removal that returns first: the history before its return is legal, and usually
//! remains legal for a little longer (see [`window`](super::window)). The legal order consists of the steps whose
//! moments come before that return. It contains every removal that returned by then. Consider a smaller value that must
//! not be present at the moment of a removal. That moment was free for the smaller value too, and the smaller value is
//! removed at its earliest free moment. So it has been removed by then. A removal that has not returned by then has
//! taken its value if its moment came earlier; otherwise it has taken no value.

use super::cover::chain;
use super::free::Free;
use super::life::{Core, Life, Outcome, Step};
use super::span::Span;
use super::window::{Failure, Window, answered, first_call_among_open};

/// Decides a history of a priority queue; `lives` are in ascending order of priority.
pub(super) fn decide(lives: &[Life], empties: &[Span]) -> Outcome {
    moments(lives, empties).map_err(|unplaced| core(lives, unplaced.first_stuck()))
}

/// Decides a history whose removals have all returned, and finds the time around a failure.
pub(super) fn decide_and_tell(lives: &[Life], empties: &[Span]) -> Result<Vec<Step>, Failure> {
    moments(lives, empties).map_err(|unplaced| {
        let stuck = unplaced.first_stuck();
        let from = first_call_among_open(lives, empties, stuck.span.call);
        let done = unplaced.timed.into_iter().filter(|&(moment, ..)| moment < from).map(|(_, _, step)| step).collect();
        let during = stuck.span.ret..=answered(lives, empties, stuck.span.ret);
        Failure { core: core(lives, stuck), window: Some(Window { done, from, during }) }
    })
}

/// The core of a stuck removal: the removal, and the fewest values that block it at every moment.
fn core(lives: &[Life], stuck: Removal) -> Core {
    let mut in_the_way = chain(lives, 0..stuck.below, stuck.span);
    in_the_way.extend(stuck.empty.is_none().then_some(stuck.below));
    // The values of a core keep the order of all values, which is the order of priorities.
    in_the_way.sort_unstable();
    Core { lives: in_the_way, empties: stuck.empty.into_iter().collect() }
}

/// A removal that needs a moment at which none of the smaller values is certainly present.
#[derive(Clone, Copy, Debug)]
struct Removal {
    span: Span,
    /// The number of values smaller than the removed one; for an empty removal, the number of all values.
    below: u32,
    /// For an empty removal, its index among the empty removals.
    empty: Option<u32>,
}

/// The result if not every removal has a moment.
struct Unplaced {
    /// The removals without a moment, in order of the values.
    stuck: Vec<Removal>,
    /// The moment of each step, and a turn that orders steps at equal moments. A stuck removal gets a moment after its
    /// return.
    timed: Vec<(u32, u32, Step)>,
}

impl Unplaced {
    /// The stuck removal that returns first.
    fn first_stuck(&self) -> Removal {
        *self.stuck.iter().min_by_key(|removal| removal.span.ret).expect("one has no moment")
    }
}

/// An order of all steps, or the stuck removals.
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
        // The moment of a removal is its own call, or the end of a covered interval, which is the call of another
        // removal. The moment of an insertion is its return, or the moment of its value's removal. So where steps share
        // a moment, an insertion comes right before its own removal, and the turn orders the values by size.
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
