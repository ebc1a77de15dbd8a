//! Schedules: the firings of one period, recorded before the run.
//!
//! If all clocks are periodic, the order of firing is the same in every run: the demand-driven rule returns to an earlier state,
//! and the firings since that state repeat until a source ends. They are recorded once. A run that follows the record need not
//! update counts or search for the next actor. When a source ends, the run continues by the rule, from the state at that point of
//! the record.
//!
//! A queue on disk may grow without end, so states are compared without its count. This is sound only if no actor takes from this
//! queue during the period, because then no firing depends on the count.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::clock::Pass;
use crate::fuse::Stop;
use crate::net::{Driven, EdgeId, Fire, Kind, Tokens};

use super::work::{Part, Position, Turn, Works};

/// The maximum number of firings in a record.
const MAX_FIRINGS: usize = 4096;

/// The maximum number of words in all states that the recording keeps.
const MAX_WORDS: usize = 1 << 18;

/// A recorded firing.
#[derive(Debug)]
struct Firing {
    actor: usize,
    fire: Fire,
    /// The position of its first part.
    begin: usize,
}

/// The recorded firings: first the firings that lead to the period, and then the firings of the period.
#[derive(Debug)]
pub(crate) struct Record {
    firings: Vec<Firing>,
    parts: Vec<Part>,
    /// The number of the period's first firing, to which the run returns after the last firing.
    cycle: usize,
}

impl Record {
    /// Records the firings of a net from its first state; `None` if the data decide, or the period is too long.
    pub(crate) fn of(start: &Tokens, sink: usize) -> Option<Self> {
        let view = Arc::clone(&start.view);
        if view.actors.iter().any(|actor| actor.tree.iter().any(|(_, pass)| *pass == Pass::Data)) {
            return None;
        }
        let grows: Vec<bool> = start.caps.iter().map(|cap| *cap == u64::MAX).collect();
        // A reduce takes all values of its source within one demand of the sink. The period is then within that demand, so
        // states are compared at each firing.
        let reduces = view.actors.iter().any(|actor| actor.kind == Kind::Reduce);
        let mut tokens = start.clone();
        let mut record = Self { firings: Vec::new(), parts: Vec::new(), cycle: 0 };
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
        let turn = Turn { port: fire.takes.port(), phase: tokens.phase(actor), gives: fire.gives };
        self.firings.push(Firing { actor, fire, begin: self.parts.len() });
        self.parts.push(if is_last { Part::Give } else { Part::Act { actor, turn } });
        tokens.take(actor, fire.takes);
        if fire.gives {
            let mut parts = Vec::new();
            let reached = |branch| {
                parts.push(Part::Step { actor, branch });
                true
            };
            let mut edges = Vec::new();
            tokens.give(actor, reached, |edge| edges.push(Part::Enter(edge)));
            self.parts.extend(parts.into_iter().chain(edges));
        }
    }

    /// Drops branches without code and edges without a queue. Appends the jump to the first firing of the period.
    pub(crate) fn keep(&mut self, has_code: impl Fn(usize, usize) -> bool, has_queue: impl Fn(EdgeId) -> bool) {
        let parts = std::mem::take(&mut self.parts);
        let ends = self.firings.iter().skip(1).map(|firing| firing.begin).chain([parts.len()]).collect::<Vec<_>>();
        for (firing, end) in self.firings.iter_mut().zip(ends) {
            let begin = std::mem::replace(&mut firing.begin, self.parts.len());
            self.parts.extend(parts[begin..end].iter().filter(|part| match part {
                Part::Step { actor, branch } => has_code(*actor, *branch),
                Part::Enter(edge) => has_queue(*edge),
                _ => true,
            }));
        }
        self.parts.push(Part::Again(self.firings[self.cycle].begin));
    }
}

/// A record, and the position of a run in it.
pub(crate) struct Schedule {
    record: Arc<Record>,
    position: Position,
}

impl Schedule {
    pub(crate) fn new(record: Arc<Record>) -> Self {
        Self { record, position: Position::default() }
    }

    /// Follows the record until `give` breaks or a source ends.
    pub(super) fn follow(
        &mut self,
        works: &mut Works,
        steps: &mut u64,
        give: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Stop {
        works.follow(&self.record.parts, &mut self.position, steps, give).expect("a record is a cycle")
    }

    /// Returns the number of the next firing in the record, and the number of completed periods.
    fn position(&self) -> (usize, u64) {
        let Position { begin, turns, .. } = self.position;
        match self.record.firings.binary_search_by_key(&begin, |firing| firing.begin) {
            Ok(firing) => (firing, turns),
            // The sink got its value from the last firing of the record, so the next firing is the first of the period.
            Err(_) => (self.record.cycle, turns + 1),
        }
    }

    /// Returns the actor that fires next.
    pub(super) fn next(&self) -> usize {
        self.record.firings[self.position().0].actor
    }

    /// Returns the state before the next firing. `start` is the state before the first.
    pub(crate) fn state(&self, start: &Tokens) -> Tokens {
        let Record { firings: recorded, cycle, .. } = &*self.record;
        let (at, turns) = self.position();
        let mut tokens = start.clone();
        let mut fire = |firings: &[Firing]| {
            firings.iter().for_each(|firing| tokens.fire(firing.actor, firing.fire));
            tokens.counts.clone()
        };
        if turns == 0 {
            fire(&recorded[..at]);
            return tokens;
        }
        let before = fire(&recorded[..*cycle]);
        let after = fire(&recorded[*cycle..]);
        fire(&recorded[*cycle..at]);
        for (edge, (before, after)) in before.into_iter().zip(after).enumerate() {
            // Only a queue on disk grows from period to period.
            let grown = (after - before).saturating_mul(turns - 1);
            tokens.counts[edge] += grown;
            tokens.peaks[edge] += grown;
        }
        tokens
    }
}

/// Returns the state, which determines all further firings.
fn state(tokens: &Tokens, grows: &[bool]) -> Vec<u64> {
    let counts = tokens.counts.iter().zip(grows).map(|(count, grows)| if *grows { 0 } else { *count });
    counts.chain(tokens.phases()).chain(tokens.waits()).collect()
}
