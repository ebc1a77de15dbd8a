//! The least first.
//!
//! A removal needs a moment at which nothing smaller is surely there; larger values do not matter to it. So the
//! history is linearizable exactly when each value has such a moment in its removal's span, and each removal
//! that found nothing has one at which nothing at all is there.
//!
//! Why that is enough: take the largest value. At the moment of its removal nothing else is surely there, so the
//! rest of the history can be cut in two there without loss (see [`cover`](super::cover)); the rest is smaller.
//! The earliest such moments do: every value is removed at its own, inserted as late as that or its return
//! allows, and equal moments serve in order of size.
//!
//! The sets of covered moments only grow from value to value, so a union-find structure keeps, for each moment,
//! the next one that is free (see [`free`](super::free)). O(n log n).
//!
//! A value that is overlooked once makes all removals fail that take larger ones before it goes. The failure is the one that returns
//! first: what came before its return is in order, and mostly a little more (see [`extension`](super::extension)). (That it fails by then, with removals open that have not said what they took, is not
//! said.) For the steps whose moments come before that return are an order of it. Every removal that returned
//! by then is among them, and whatever had to be gone by a removal's moment is gone: that moment was free for the smaller value, too, so the
//! smaller value's own, the earliest such, is no later. A removal that has not returned by then has taken its value if its moment was before,
//! and nothing if not.

use super::cover::chain;
use super::extension::{answered, first_call_of_what_is_open, first_failure};
use super::free::Free;
use super::life::{Core, Life, Outcome, Step};
use super::span::Span;
use crate::budget::Budget;

/// Decides a history of a priority queue; `lives` ascend in priority.
pub(super) fn decide(lives: &[Life], empties: &[Span]) -> Outcome {
    moments(lives, empties).map_err(|unplaced| core(lives, unplaced.first_stuck()))
}

/// Decides a history, all of whose removals have returned, and tells of a failure what is in order before it.
pub(super) fn decide_and_tell(lives: &[Life], empties: &[Span], budget: &mut Budget) -> Outcome {
    moments(lives, empties).map_err(|unplaced| {
        let stuck = unplaced.first_stuck();
        let from = first_call_of_what_is_open(lives, empties, stuck.span.call);
        let done: Vec<Step> =
            unplaced.timed.into_iter().filter(|&(moment, ..)| moment < from).map(|(_, _, step)| step).collect();
        let during = stuck.span.ret..=answered(lives, empties, stuck.span.ret);
        let first = first_failure(lives, empties, &done, from, during, |pending, lives, empties| {
            pending.decide_by_deadlines(lives, empties, budget).is_ok_and(|answer| answer.outcome.is_ok())
        });
        Core { first: Some(first), ..core(lives, stuck) }
    })
}

/// The removal together with as few values as are in its way at every moment.
fn core(lives: &[Life], stuck: Removal) -> Core {
    stuck.core(chain(lives, 0..stuck.below, stuck.span))
}

/// A removal that needs a moment at which none of the smaller values is surely there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Removal {
    pub(super) span: Span,
    /// How many values are smaller than what it took; all of them if it found nothing.
    pub(super) below: u32,
    /// Which of the removals that found nothing it is.
    empty: Option<u32>,
}

impl Removal {
    /// Whether it took what it took for certain.
    pub(super) fn has_returned(self, lives: &[Life]) -> bool {
        self.empty.is_some() || !lives[self.below as usize].stays()
    }

    /// The removal together with what is in its way.
    pub(super) fn core(self, mut lives: Vec<u32>) -> Core {
        if self.empty.is_none() {
            lives.push(self.below);
        }
        Core { lives, empties: self.empty.into_iter().collect(), first: None }
    }
}

/// What is known where not every removal has a moment.
pub(super) struct Unplaced {
    /// The removals that have none, in order of the values.
    pub(super) stuck: Vec<Removal>,
    /// The moments of all steps, and turns that tell which comes first of those at one moment. Where there is none, it comes after the return.
    timed: Vec<(u32, u32, Step)>,
}

impl Unplaced {
    /// The stuck removal that returns first.
    fn first_stuck(&self) -> Removal {
        *self.stuck.iter().min_by_key(|removal| removal.span.ret).expect("one has no moment")
    }
}

/// An order of all steps, or the removals that have no moment.
pub(super) fn moments(lives: &[Life], empties: &[Span]) -> Result<Vec<Step>, Unplaced> {
    let last = lives.iter().map(|life| life.remove.call).chain(empties.iter().map(|span| span.ret)).max();
    let mut free = Free::new(last.unwrap_or(0));
    let mut stuck = Vec::new();
    let mut timed: Vec<(u32, u32, Step)> = Vec::with_capacity(2 * lives.len() + empties.len());
    for (i, life) in (0..).zip(lives) {
        let moment = free.next(life.remove.call);
        if moment > life.remove.ret {
            stuck.push(Removal { span: life.remove, below: i, empty: None });
        }
        // Removals stand at calls and at moments when another's removal was called; insertions at returns,
        // or right before their own removal. So only removals ever share a moment, and they go by size.
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
