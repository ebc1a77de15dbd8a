//! Schedules: the firings of a period, recorded before the run.
//!
//! Where only clocks decide, the order of firing is the same in every run. The demand-driven rule comes back to a state
//! that it has been in, and the firings since that state repeat as long as the sources last. A run that follows the
//! record needs no counts and no search for the next actor. When a source ends, the run goes on by the rule, from the
//! state at that place of the record.
//!
//! A queue on disk may grow without end. Its count is no part of the state, provided that no actor takes from it in the
//! period: then no firing depends on it.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::clock::Pass;
use crate::net::{Driven, EdgeId, Fire, Kind, Takes, Tokens};

use super::machine::Turn;

/// The maximum number of firings in a record.
const MAX_FIRINGS: usize = 4096;

/// The maximum number of words in the states that are kept during the recording.
const MAX_WORDS: usize = 1 << 18;

/// A recorded firing.
#[derive(Debug)]
pub(crate) struct Firing {
    pub(crate) actor: usize,
    pub(crate) turn: Turn,
    takes: Takes,
    /// The branches of the actor's tree that the value reaches, in the record's list.
    branches: Range<usize>,
    /// The queues that the value enters, in the record's list.
    edges: Range<usize>,
    /// Whether this is a firing of the sink.
    pub(crate) is_last: bool,
}

impl Firing {
    fn fire(&self) -> Fire {
        Fire { takes: self.takes, gives: self.turn.gives }
    }
}

/// The firings of a period, with those before it.
#[derive(Debug)]
pub(crate) struct Record {
    firings: Vec<Firing>,
    branches: Vec<usize>,
    edges: Vec<EdgeId>,
    /// The firing that follows the last one.
    cycle: usize,
}

impl Record {
    /// Records the firings of a net in this state; `None` if the data decide, or the period is too long.
    pub(crate) fn of(start: &Tokens, sink: usize) -> Option<Self> {
        let view = Arc::clone(&start.view);
        if view.actors.iter().any(|actor| actor.tree.iter().any(|(_, pass)| *pass == Pass::Data)) {
            return None;
        }
        let grows: Vec<bool> = start.caps.iter().map(|cap| *cap == u64::MAX).collect();
        // The demand of a reduce lasts to the end of its source, so the period lies within it.
        let reduces = view.actors.iter().any(|actor| actor.kind == Kind::Reduce);
        let mut tokens = start.clone();
        let mut record = Self { firings: Vec::new(), branches: Vec::new(), edges: Vec::new(), cycle: 0 };
        let (mut seen, mut words) = (HashMap::new(), 0);
        loop {
            let mut is_first = true;
            let driven = tokens.drive(sink, |tokens, actor, fire| {
                if is_first || reduces {
                    is_first = false;
                    let state = state(tokens, &grows);
                    words += state.len();
                    if let Some(cycle) = seen.insert(state, record.firings.len()) {
                        return Err(Some(cycle));
                    }
                }
                if record.firings.len() == MAX_FIRINGS || words > MAX_WORDS {
                    return Err(None);
                }
                record.add(tokens, actor, fire, actor == sink);
                Ok(())
            });
            match driven {
                Ok(Ok(Driven::Fired)) => {}
                Ok(Err(Some(cycle))) => {
                    record.cycle = cycle;
                    let firings = &record.firings[cycle..];
                    let takes = |edge: usize| firings.iter().any(|firing| firing.actor == view.ends[edge].1);
                    let is_closed = (0..grows.len()).all(|edge| !grows[edge] || !takes(edge));
                    return is_closed.then_some(record);
                }
                _ => return None,
            }
        }
    }

    /// Fires an actor that is ready.
    fn add(&mut self, tokens: &mut Tokens, actor: usize, fire: Fire, is_last: bool) {
        let Fire { takes, gives } = fire;
        let turn = Turn { port: takes.port(), phase: tokens.phase(actor), gives };
        let (branches, edges) = (self.branches.len(), self.edges.len());
        tokens.take(actor, takes);
        if gives {
            let reached = |branch| {
                self.branches.push(branch);
                true
            };
            tokens.give(actor, reached, |edge| self.edges.push(edge));
        }
        let (branches, edges) = (branches..self.branches.len(), edges..self.edges.len());
        self.firings.push(Firing { actor, turn, takes, branches, edges, is_last });
    }

    /// Returns the branches of the actor's tree that the value of a firing reaches.
    #[inline]
    pub(crate) fn branches(&self, firing: &Firing) -> &[usize] {
        &self.branches[firing.branches.clone()]
    }

    /// Returns the queues that the value of a firing enters.
    #[inline]
    pub(crate) fn edges(&self, firing: &Firing) -> &[EdgeId] {
        &self.edges[firing.edges.clone()]
    }

    /// Keeps the branches with code and the edges with a queue.
    pub(crate) fn keep(&mut self, has_code: impl Fn(usize, usize) -> bool, has_queue: impl Fn(EdgeId) -> bool) {
        let (mut branches, mut edges) = (Vec::new(), Vec::new());
        for firing in &mut self.firings {
            let (first_branch, first_edge) = (branches.len(), edges.len());
            branches.extend(self.branches[firing.branches.clone()].iter().filter(|at| has_code(firing.actor, **at)));
            edges.extend(self.edges[firing.edges.clone()].iter().filter(|edge| has_queue(**edge)));
            (firing.branches, firing.edges) = (first_branch..branches.len(), first_edge..edges.len());
        }
        (self.branches, self.edges) = (branches, edges);
    }
}

/// The place of a run in its record.
pub(crate) struct Schedule {
    record: Arc<Record>,
    /// The next firing.
    at: usize,
    /// The number of times that the run has been at the end of the record.
    turns: u64,
}

impl Schedule {
    pub(crate) fn new(record: Arc<Record>) -> Self {
        Self { record, at: 0, turns: 0 }
    }

    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    /// Returns the next firing.
    pub(crate) fn next(&self) -> &Firing {
        &self.record.firings[self.at]
    }

    /// Moves on to the next firing.
    pub(crate) fn advance(&mut self) {
        self.at += 1;
        if self.at == self.record.firings.len() {
            self.at = self.record.cycle;
            self.turns += 1;
        }
    }

    /// Returns the state before the next firing. `start` is the state before the first.
    pub(crate) fn state(&self, start: &Tokens) -> Tokens {
        let Record { firings: recorded, cycle, .. } = &*self.record;
        let mut tokens = start.clone();
        let mut fire = |firings: &[Firing]| {
            firings.iter().for_each(|firing| tokens.fire(firing.actor, firing.fire()));
            tokens.counts.clone()
        };
        if self.turns == 0 {
            fire(&recorded[..self.at]);
            return tokens;
        }
        let before = fire(&recorded[..*cycle]);
        let after = fire(&recorded[*cycle..]);
        fire(&recorded[*cycle..self.at]);
        for (edge, (before, after)) in before.into_iter().zip(after).enumerate() {
            // Only a queue on disk has grown.
            let grown = (after - before).saturating_mul(self.turns - 1);
            tokens.counts[edge] += grown;
            tokens.peaks[edge] += grown;
        }
        tokens
    }
}

/// The state, on which all further firings depend.
fn state(tokens: &Tokens, grows: &[bool]) -> Vec<u64> {
    let counts = tokens.counts.iter().zip(grows).map(|(count, grows)| if *grows { 0 } else { *count });
    counts.chain(tokens.phases()).chain(tokens.waits()).collect()
}
