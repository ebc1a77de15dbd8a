//! The general search: any specification, any history.
//!
//! It walks through the returns in order of time. At each it must have linearized the operation that returns, and it
//! linearizes others before that one only to get there: *just-in-time linearization* (Gavin Lowe, "Testing for
//! linearizability", 2017, after Wing and Gong, 1993). A situation is the number of returns passed, which of the open
//! operations are linearized, which pending ones were used, and the object's state. Each is looked at once: the memo of Lowe
//! and of Alex Horn and Daniel Kroening (2015).
//!
//! Five things keep the number of situations small:
//! - an open operation that leaves every state as it is (a read) is linearized as soon as its answer is right: being done
//!   with it harms nobody;
//! - pending operations that are alike are used in the order of their calls;
//! - a situation in which the same was reached with *fewer* pending operations used makes this one superfluous;
//! - what comes out of a queue or a broadcast tells in which order it went in, see [`foresight`];
//! - states and steps are numbered, and each step of the specification is computed once.
//!
//! Time is exponential in the number of operations at once, in the worst case: the problem is NP-complete. Memory and time
//! are limited by the [`Budget`], and the answer is "unknown" when they are used up.

mod events;
mod foresight;
mod machine;
mod mask;
mod memo;
mod program;
mod used;
mod walk;

use crate::budget::{Budget, Exhausted};
use crate::part::Part;
use crate::spec::Spec;
use crate::verdict::Limit;

use events::Events;
use foresight::Foresight;
use machine::Machine;
use program::Program;
use walk::Walk;

/// What a search found out.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// Rows in an order that explains them.
    Holds(Vec<u32>),
    /// No order does: whatever is tried, the row `culprit` cannot have returned.
    Fails {
        /// The row of the first return that cannot be explained, if that is known.
        culprit: Option<u32>,
    },
}

/// How far a search got.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reach {
    /// How many returns were passed at most.
    pub(crate) passed: usize,
    /// How many situations were looked at.
    pub(crate) configurations: u64,
}

/// Decides whether the part is linearizable. How far it got is in `reach`, decided or not.
pub(crate) fn decide<S: Spec>(
    part: &Part<'_>,
    spec: &S,
    budget: &mut Budget,
    reach: &mut Reach,
) -> Result<Outcome, Exhausted> {
    let mut budget = budget.lend();
    let foresight = Foresight::new(part, spec, &mut budget)?;
    if foresight.as_ref().is_some_and(Foresight::contradicts) {
        return Ok(Outcome::Fails { culprit: None });
    }
    let machine = Machine::new(part, spec, &mut budget)?;
    let events = Events::new(part, foresight.as_ref(), &machine, &mut budget)?;
    match events.slots() {
        0..=64 => Walk::<S, 1>::new(machine, events, foresight).run(&mut budget, reach),
        65..=256 => Walk::<S, 4>::new(machine, events, foresight).run(&mut budget, reach),
        257..=4096 => Walk::<S, 64>::new(machine, events, foresight).run(&mut budget, reach),
        4097..=65_536 => Walk::<S, 1024>::new(machine, events, foresight).run(&mut budget, reach),
        _ => Err(Exhausted(Limit::Concurrency)),
    }
}

/// A situation in which a return has just been passed.
#[derive(Clone, Debug)]
pub(crate) struct Entry<T> {
    /// The object's state.
    pub(crate) state: T,
    /// Rows that have had their effect and not returned.
    pub(crate) done: Vec<u32>,
}

/// For each number of returns passed, all the situations that a part that fails can be in then.
pub(crate) fn entries<S: Spec>(
    part: &Part<'_>,
    spec: &S,
    budget: &mut Budget,
) -> Result<Vec<Vec<Entry<S::State>>>, Exhausted> {
    let machine = Machine::new(part, spec, budget)?;
    let events = Events::new(part, None, &machine, budget)?;
    match events.slots() {
        0..=64 => Walk::<S, 1>::new(machine, events, None).entries(budget),
        _ => Err(Exhausted(Limit::Concurrency)),
    }
}

/// Decides whether the part is sequentially consistent.
pub(crate) fn decide_by_process<S: Spec>(
    part: &Part<'_>,
    spec: &S,
    budget: &mut Budget,
    reach: &mut Reach,
) -> Result<Outcome, Exhausted> {
    let mut budget = budget.lend();
    let machine = Machine::new(part, spec, &mut budget)?;
    Program::new(machine).run(&mut budget, reach)
}
