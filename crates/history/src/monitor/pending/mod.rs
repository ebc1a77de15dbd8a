//! Pending removals of containers: each may have taken any value that is left, or none.
//!
//! # The question
//!
//! The procedures of [`queue`](super::queue), [`stack`](super::stack) and [`priority`](super::priority) decide histories
//! in which the removal of every value is known. A removal that has not returned leaves open which value it takes. A
//! history with such removals is in order if the procedure finds an order for *some* choice of the values, one for each
//! pending removal at most, out of the values that no other operation removes. It fails if no choice has an order.
//!
//! # When it comes up
//!
//! - A recording ends while threads are in the middle of an operation: a thread panics, a log is full.
//! - An explanation asks whether the history up to some earlier moment is in order: each client then has one operation
//!   under way, at most.
//!
//! Both have at most one pending removal per client, near the end, and nearly always the simplest choice answers the
//! question. Histories of many crashed clients are rare.
//!
//! # The answer
//!
//! For a *queue* the choice is known: the values that stay, in order of their insertions' returns, go to the pending
//! removals in order of their calls. If a value has to be gone, so do the values inserted before it, and the time by
//! which a value must be gone never decreases along that order.
//!
//! For the other two:
//!
//! 1. In the prefix of a longer history, the value that each removal takes later is known: this choice comes first.
//! 2. If the history fails although *all* values that stay can be gone from the call of the first pending removal on,
//!    it fails.
//! 3. Otherwise, one of the staying values in the core of the failure must be taken, or this failure remains. The
//!    alternatives, each such value with each removal that has none, are tried depth first ([`branch`]). They start
//!    from the choice of step 1 without the values of the core, and then from no choice at all.
//!
//! A failure of fewer values is a failure of all, because an order of the whole contains one of them. So in a long
//! history the search runs on the latest values ([`recent`]), and its result is tried on the whole.
//!
//! # Cost
//!
//! The queue takes one run of its procedure, the others two or three in the usual case. The search is exponential in
//! the number of pending removals. Beyond a number of runs, and of values in all of them, it leaves the question open
//! (see [`branch`]), and the general search decides it.
//!
//! # Source
//!
//! The papers behind the procedures treat histories in which all removals are known. The choices and their proofs are
//! this crate's own; the tests in `agreement` compare them with every order of small histories.
//!
//! # The time of a failure
//!
//! [`first_failure`] uses the same answers to find the time up to which a failing history is in order.

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

/// The maximum number of further passes over all values, after the first, before the question is left open.
const MAX_ROUNDS: usize = 8;

/// Pending removals, in order of their calls.
pub(super) struct Pending<'a> {
    /// The ranks of their calls.
    pub(super) calls: &'a [u32],
    /// The rank after the last event.
    pub(super) end: u32,
    /// For each, the value to try first: in the prefix of a history, the value that it takes later.
    pub(super) hints: &'a [Option<u32>],
}

/// The decision, and the value that each pending removal takes.
pub(super) struct Answer {
    pub(super) outcome: Outcome,
    pub(super) taken: Vec<Option<u32>>,
}

/// Decides a history with pending removals, or leaves it open; for a priority queue, `lives` ascend in priority.
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
    /// The life of a value that stays, given to a removal.
    fn take(&self, life: &Life, removal: usize) -> Life {
        Life::new(life.insert, Span { call: self.calls[removal], ret: self.end })
    }

    /// The hinted values, if they stay, each for one removal.
    fn hinted(&self, lives: &[Life]) -> Vec<Option<u32>> {
        let mut taken = vec![None; self.calls.len()];
        for (removal, &hint) in self.hints.iter().enumerate() {
            taken[removal] = hint.filter(|&i| lives[i as usize].stays() && !taken.contains(&hint));
        }
        taken
    }

    /// The lives after the removals have taken these.
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
        // Without the taken values, the removals would be free to take those of the core.
        let outcome = Container::Queue.decide(&self.without(lives, &taken), empties).map_err(|mut core| {
            core.lives.extend(taken.iter().flatten());
            core.lives.sort_unstable();
            core.lives.dedup();
            core
        });
        Answer { outcome, taken }
    }
}
