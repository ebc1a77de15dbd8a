//! Pending removals of containers: each may have taken any value that no other operation removes, or no value.
//!
//! # The question
//!
//! The procedures of [`queue`](super::queue), [`stack`](super::stack) and [`priority`](super::priority) decide
//! histories in which the removal of every value is known. The value of a removal that has not returned is unknown. A
//! history with such removals is legal if the procedure finds an order for *some* choice of values: at most one value
//! for each pending removal, out of the values that no other operation removes. It fails if no choice has an order.
//!
//! # When removals are pending
//!
//! - A recording ends while threads are in the middle of an operation: a thread panicked, or a log is full.
//! - An explanation asks whether the history up to some earlier moment is legal. At that moment, each client has at
//!   most one open operation.
//!
//! In both cases each client has at most one pending removal, near the end, and nearly always the simplest choice
//! answers the question. Histories with many crashed clients are rare.
//!
//! # The answer
//!
//! For a *queue* one choice suffices: the values that stay, in order of their insertions' returns, go to the pending
//! removals in order of their calls. If a value must have been removed by some time, the values inserted before it must
//! have been removed by then too. So along this order, the time by which a value must have been removed never
//! decreases.
//!
//! For stacks and priority queues:
//!
//! 1. In a prefix of a longer history, the value that each removal returns later is known. This choice is tried first.
//! 2. Assume that *all* values that stay can be removed from the call of the first pending removal on. If the history
//!    fails even then, it fails for every choice.
//! 3. Otherwise, a pending removal must take one of the staying values in the core of the failure, or the failure
//!    remains. The alternatives (each such value with each removal that has no value yet) are tried depth-first
//!    ([`branch`]). The search starts from the choice of step 1 without the values of the core, and if that fails, from
//!    the empty choice.
//!
//! If a subset of the values fails, all values fail, because an order of all contains an order of the subset. So in a
//! long history the search runs on the latest values ([`recent`]), and its result is tried on all values.
//!
//! # Cost
//!
//! A queue takes one run of its procedure; the other containers usually take two or three. The search is exponential in
//! the number of pending removals. It has limits on its runs and on the values in all runs together (see [`branch`]).
//! Beyond these limits the history is left open, and the general search decides it.
//!
//! # Source
//!
//! The published procedures treat histories in which all removals are known. The choices and their proofs are new in
//! this crate; the tests in `agreement` compare the results with every order of small histories.
//!
//! # The time of a failure
//!
//! [`first_failure`] uses the same choices to find the time up to which a failing history is legal.

mod branch;
mod first_failure;
mod recent;

use super::Undecided;
use super::container::Container;
use super::life::{Life, Outcome};
use super::span::Span;
use crate::budget::Budget;
use branch::branch;
use recent::Recent;

pub(super) use first_failure::first_failure;

/// The maximum number of further rounds after the first. A round searches the latest values and tries the result on all
/// values. If the last round fails too, the history is left open.
const MAX_ROUNDS: usize = 8;

/// Pending removals, in order of their calls.
pub(super) struct Pending<'a> {
    /// The ranks of their calls.
    pub(super) calls: &'a [u32],
    /// The rank after the last event.
    pub(super) end: u32,
    /// For each removal, the value to try first: in a prefix of a history, the value that the removal returns later.
    pub(super) hints: &'a [Option<u32>],
}

/// The decision, and the choice of a value for each pending removal.
pub(super) struct Answer {
    pub(super) outcome: Outcome,
    pub(super) taken: Vec<Option<u32>>,
}

/// Decides a history with pending removals, or leaves it open; for a priority queue, `lives` are in ascending order of
/// priority.
pub(super) fn decide(
    container: Container,
    pending: &Pending<'_>,
    lives: &[Life],
    empties: &[Span],
    budget: &mut Budget,
) -> Result<Answer, Undecided> {
    if pending.calls.is_empty() {
        return Ok(Answer { outcome: container.decide(lives, empties), taken: Vec::new() });
    }
    if container == Container::Queue {
        return Ok(pending.in_order(lives, empties));
    }
    let Some(mut recent) = Recent::of(lives, empties) else {
        return branch(container, pending, lives, empties, budget);
    };
    let mut hints = recent.hints(pending.hints);
    for _ in 0..=MAX_ROUNDS {
        let few = branch(container, &Pending { hints: &hints, ..*pending }, &recent.lives, &recent.empties, budget)?;
        if let Err(core) = &few.outcome {
            return Ok(Answer { outcome: Err(recent.among_all(core)), taken: vec![None; pending.calls.len()] });
        }
        let taken = recent.taken_of_all(&few.taken);
        match container.decide(&pending.without(lives, &taken), empties) {
            Ok(steps) => return Ok(Answer { outcome: Ok(steps), taken }),
            Err(core) => recent.add(&core, lives, empties),
        }
        budget.look_at_the_clock()?;
        hints = recent.hints(&taken);
    }
    Err(Undecided::Open)
}

impl Pending<'_> {
    /// The life of a staying value when the given removal takes it.
    fn take(&self, life: &Life, removal: usize) -> Life {
        Life::new(life.insert, Span { call: self.calls[removal], ret: self.end })
    }

    /// The choice that the hints suggest: each hinted value that stays goes to a single removal.
    fn hinted(&self, lives: &[Life]) -> Vec<Option<u32>> {
        let mut taken = vec![None; self.calls.len()];
        for (removal, &hint) in self.hints.iter().enumerate() {
            taken[removal] = hint.filter(|&i| lives[i as usize].stays() && !taken.contains(&hint));
        }
        taken
    }

    /// The lives when the removals take the values `taken`.
    fn without(&self, lives: &[Life], taken: &[Option<u32>]) -> Vec<Life> {
        let mut lives = lives.to_vec();
        for (removal, &i) in taken.iter().enumerate() {
            if let Some(i) = i {
                lives[i as usize] = self.take(&lives[i as usize], removal);
            }
        }
        lives
    }

    /// Decides a history of a queue.
    fn in_order(&self, lives: &[Life], empties: &[Span]) -> Answer {
        let mut staying: Vec<u32> = (0..lives.len() as u32).filter(|&i| lives[i as usize].stays()).collect();
        staying.sort_unstable_by_key(|&i| lives[i as usize].insert.ret);
        let mut taken: Vec<Option<u32>> = staying.into_iter().map(Some).collect();
        taken.resize(self.calls.len(), None);
        // The core includes the taken values: without them, the removals could take values of the core instead.
        let outcome = Container::Queue.decide(&self.without(lives, &taken), empties).map_err(|mut core| {
            core.lives.extend(taken.iter().flatten());
            core.lives.sort_unstable();
            core.lives.dedup();
            core
        });
        Answer { outcome, taken }
    }
}
