//! The search of all states.

use std::collections::HashSet;
use std::fmt;

use crate::machine::{Instruction, Machine, Step};

/// The result of the search.
#[derive(Debug)]
pub enum Outcome {
    /// Every execution ends, and none leaves a thread asleep.
    EveryThreadEnds {
        /// The number of distinct states reached.
        states: usize,
    },
    /// After this execution, no step is possible and a thread is still asleep.
    LostWakeUp(Trace),
}

/// An execution, step by step.
#[derive(Debug)]
pub struct Trace(Vec<String>);

impl Outcome {
    /// Returns whether an execution leaves a thread asleep forever.
    #[must_use]
    pub fn is_lost_wake_up(&self) -> bool {
        matches!(self, Outcome::LostWakeUp(_))
    }
}

/// Executes the programs, each on one thread, in every possible order. The search is breadth first, so the trace is as
/// short as possible.
#[must_use]
pub fn explore(programs: &[Vec<Instruction>]) -> Outcome {
    let start = Machine::new(programs.len());
    let mut reached = vec![(start.clone(), None)];
    let mut known = HashSet::from([start]);
    let mut next = 0;
    while next < reached.len() {
        let machine = reached[next].0.clone();
        let successors = machine.successors(programs);
        if successors.is_empty() && machine.sleepers() > 0 {
            return Outcome::LostWakeUp(trace(&reached, next, programs));
        }
        for (step, successor) in successors {
            if known.insert(successor.clone()) {
                reached.push((successor, Some((next, step))));
            }
        }
        next += 1;
    }
    Outcome::EveryThreadEnds { states: reached.len() }
}

type Reached = (Machine, Option<(usize, Step)>);

fn trace(reached: &[Reached], last: usize, programs: &[Vec<Instruction>]) -> Trace {
    let mut lines = Vec::new();
    let mut at = last;
    while let Some((before, step)) = reached[at].1 {
        lines.push(reached[before].0.describe(step, programs));
        at = before;
    }
    lines.reverse();
    Trace(lines)
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}
