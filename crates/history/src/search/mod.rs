//! The general search: any specification, any history.
//!
//! The search passes the returns in order of time. To pass a return, it must have linearized the operation that
//! returns; it linearizes other operations only as far as that requires. This is *just-in-time linearization* (Gavin
//! Lowe, "Testing for linearizability", 2017, after Wing and Gong, 1993). A configuration is the number of returns
//! passed, the set of linearized open operations, the multiset of used pending operations, and the object's state. A
//! memo ensures that each configuration is visited once (Lowe; Alex Horn and Daniel Kroening, 2015).
//!
//! Five rules keep the number of configurations small:
//! - an open operation that never changes the state (a read) is linearized as soon as its answer is right, which
//!   excludes no order;
//! - pending operations of the same kind are used in the order of their calls;
//! - a configuration is superfluous if the same one was visited with a subset of its used pending operations;
//! - the values that come out of a queue or a broadcast show in which order they went in (see [`foresight`]);
//! - states are numbered, and each step of the specification is computed once.
//!
//! The problem is NP-complete, and in the worst case the time is exponential in the number of overlapping operations.
//! When the memory or the time of the [`Budget`] is used up, the verdict is "unknown".

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
use crate::spec::{DynSpec, States};
use crate::verdict::Limit;

use events::Events;
use foresight::Foresight;
use machine::Machine;
use program::Program;
use walk::Walk;

/// The result of a search.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// Rows in a legal order.
    Holds(Vec<u32>),
    /// No legal order exists.
    Fails {
        /// The row of the first return that no attempt can pass, if it is known.
        culprit: Option<u32>,
    },
}

/// The progress of a search.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reach {
    /// The maximum number of returns passed.
    pub(crate) passed: usize,
    /// The number of configurations visited.
    pub(crate) configurations: u64,
}

/// Decides whether the part is linearizable. `reach` receives the progress, even if the search hits a limit.
pub(crate) fn decide(
    part: &Part<'_>,
    spec: &dyn DynSpec,
    budget: &mut Budget,
    reach: &mut Reach,
) -> Result<Outcome, Exhausted> {
    let mut budget = budget.lend();
    let foresight = Foresight::new(part, spec, &mut budget)?;
    if foresight.as_ref().is_some_and(Foresight::contradicts) {
        return Ok(Outcome::Fails { culprit: None });
    }
    let machine = Machine::new(part, spec, spec.states(), &mut budget)?;
    let events = Events::new(part, foresight.as_ref(), &machine, &mut budget)?;
    match events.slots() {
        0..=64 => Walk::<1>::new(machine, events, foresight).run(&mut budget, reach),
        65..=256 => Walk::<4>::new(machine, events, foresight).run(&mut budget, reach),
        257..=4096 => Walk::<64>::new(machine, events, foresight).run(&mut budget, reach),
        4097..=65_536 => Walk::<1024>::new(machine, events, foresight).run(&mut budget, reach),
        _ => Err(Exhausted(Limit::Concurrency)),
    }
}

/// A configuration right after a return was passed.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The number of the object's state.
    pub(crate) state: u32,
    /// Rows that have taken effect but not returned.
    pub(crate) done: Vec<u32>,
}

/// The configurations of a failing part.
pub(crate) struct Entered<'a> {
    /// For each number of returns passed, all possible configurations right after them.
    pub(crate) levels: Vec<Vec<Entry>>,
    /// The states that the entries number.
    pub(crate) states: Box<dyn States + 'a>,
}

/// The configurations that a failing part can enter.
pub(crate) fn entries<'a>(
    part: &'a Part<'a>,
    spec: &'a dyn DynSpec,
    budget: &mut Budget,
) -> Result<Entered<'a>, Exhausted> {
    let machine = Machine::new(part, spec, spec.states(), budget)?;
    let events = Events::new(part, None, &machine, budget)?;
    match events.slots() {
        0..=64 => Walk::<1>::new(machine, events, None).entries(budget),
        _ => Err(Exhausted(Limit::Concurrency)),
    }
}

/// Decides whether the part is sequentially consistent.
pub(crate) fn decide_by_process(
    part: &Part<'_>,
    spec: &dyn DynSpec,
    budget: &mut Budget,
    reach: &mut Reach,
) -> Result<Outcome, Exhausted> {
    let mut budget = budget.lend();
    let machine = Machine::new(part, spec, spec.states_of_all(), &mut budget)?;
    Program::new(machine).run(&mut budget, reach)
}
