//! The state of a running net: the number of values in each queue, and the next actor to fire.
//!
//! [`Tokens::drive`] fires one actor on demand. If the actor lacks a value, it waits for the producer of that value; if it lacks
//! room in a queue, it waits for the consumer of that queue. The actor that it waits for fires first, by the same rule. A chain
//! of such waits ends at an actor that can fire, or closes into a cycle. No order of firing resolves such a cycle, because each
//! of its actors waits for the next.

use std::sync::Arc;

use super::contract::EdgeId;
use super::view::{Kind, Takes, View};

/// A firing: the inputs from which the actor takes values, and whether it produces a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fire {
    pub(crate) takes: Takes,
    pub(crate) gives: bool,
}

/// The readiness of an actor to fire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ready {
    /// The actor can fire.
    Yes(Fire),
    /// The actor lacks a value in this queue.
    Input(EdgeId),
    /// The actor lacks room in this queue.
    Room(EdgeId),
    /// The actor never fires again, because an input that it needs has ended.
    Ended,
}

/// The outcome of a demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Driven {
    /// The actor fired.
    Fired,
    /// The actor has ended.
    Ended,
}

/// A cycle of waits: the edges at which its actors wait, each with a flag that is `true` for a wait for room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stuck(pub(crate) Vec<(EdgeId, bool)>);

/// See the [module](self).
#[derive(Debug, Clone)]
pub(crate) struct Tokens {
    pub(crate) view: Arc<View>,
    /// The capacity of each queue.
    pub(crate) caps: Vec<u64>,
    /// The number of values in each queue.
    pub(crate) counts: Vec<u64>,
    /// The maximum number of values that each queue has held.
    pub(crate) peaks: Vec<u64>,
    /// Whether each actor has ended.
    pub(crate) ended: Vec<bool>,
    phases: Vec<u64>,
    /// The states of the passes of each actor's tree.
    passes: Vec<Vec<u64>>,
    /// Scratch space: for each branch of the current tree, whether the value reaches it.
    reached: Vec<bool>,
    /// The chain of waiting actors. Each waits for the next, at the edge that is stored with it.
    waiting: Vec<(usize, Option<(EdgeId, bool)>)>,
    waits: Vec<bool>,
}

impl Tokens {
    pub(crate) fn new(view: Arc<View>, caps: Vec<u64>) -> Self {
        let actors = view.actors.len();
        let edges = view.ends.len();
        let largest = view.actors.iter().map(|actor| actor.tree.len()).max().unwrap_or(0);
        Self {
            caps,
            counts: vec![0; edges],
            peaks: vec![0; edges],
            ended: vec![false; actors],
            phases: vec![0; actors],
            passes: view.actors.iter().map(|actor| actor.tree.iter().map(|(_, pass)| pass.start()).collect()).collect(),
            reached: vec![false; largest],
            waiting: Vec::with_capacity(actors + 1),
            waits: vec![false; actors],
            view,
        }
    }

    pub(crate) fn phase(&self, actor: usize) -> u64 {
        self.phases[actor]
    }

    /// Returns whether the actor can fire and, if not, the reason.
    #[inline]
    pub(crate) fn ready(&mut self, actor: usize) -> Ready {
        if self.ended[actor] {
            return Ready::Ended;
        }
        let shown = &self.view.actors[actor];
        let takes = shown.kind.takes(self.phases[actor]);
        // The first empty queue from which the actor takes in this phase.
        let lacking = takes.of(&shown.inputs).iter().copied().flatten().find(|edge| self.counts[*edge] == 0);
        let gives = match lacking {
            Some(edge) if self.ended[self.view.ends[edge].0] => match shown.kind {
                Kind::Reduce => true,
                _ => return Ready::Ended,
            },
            Some(edge) => return Ready::Input(edge),
            // A reduce whose input is outside the view produces values like a source.
            None => match shown.kind {
                Kind::Sink => false,
                Kind::Reduce => shown.inputs[0].is_none(),
                _ => true,
            },
        };
        if gives && let Some(edge) = self.full(actor) {
            return Ready::Room(edge);
        }
        Ready::Yes(Fire { takes, gives })
    }

    /// Returns whether a queue has no room. A queue whose reader has ended is never full, because it drops its values.
    #[inline]
    pub(crate) fn is_full(&self, edge: EdgeId) -> bool {
        self.counts[edge] >= self.caps[edge] && !self.ended[self.view.ends[edge].1]
    }

    /// Returns the first full queue that the next value may enter.
    #[inline]
    fn full(&mut self, actor: usize) -> Option<EdgeId> {
        // In the usual case no queue is full, and the value's path need not be followed.
        if !self.view.actors[actor].outputs.iter().any(|(edge, _)| self.is_full(*edge)) {
            return None;
        }
        self.full_on_the_path(actor)
    }

    fn full_on_the_path(&mut self, actor: usize) -> Option<EdgeId> {
        let shown = &self.view.actors[actor];
        for (at, (parent, pass)) in shown.tree.iter().enumerate() {
            self.reached[at] =
                parent.is_none_or(|parent| self.reached[parent]) && pass.may_pass(self.passes[actor][at]);
        }
        let enters = shown.outputs.iter().filter(|(_, leaf)| leaf.is_none_or(|leaf| self.reached[leaf]));
        enters.map(|(edge, _)| *edge).find(|edge| self.is_full(*edge))
    }

    /// Returns the firing of an actor that could fire if its queues had room.
    pub(crate) fn without_room(&self, actor: usize) -> Fire {
        Fire { takes: self.view.actors[actor].kind.takes(self.phases[actor]), gives: true }
    }

    /// If an actor has fired although queues were full, removes the value of that firing from the queues that are now overfull.
    /// Returns one of these queues, preferably `first`; `None` if no queue is overfull.
    pub(crate) fn take_back(&mut self, actor: usize, first: EdgeId) -> Option<EdgeId> {
        let mut found = None;
        for (edge, _) in &self.view.actors[actor].outputs {
            if self.counts[*edge] > self.caps[*edge] {
                self.counts[*edge] = self.caps[*edge];
                self.peaks[*edge] = self.caps[*edge];
                found = found.filter(|found| *found == first).or(Some(*edge));
            }
        }
        found
    }

    /// Removes the values that the actor takes in its phase from its queues, and moves on to the next phase.
    #[inline]
    pub(crate) fn take(&mut self, actor: usize, takes: Takes) {
        let shown = &self.view.actors[actor];
        for edge in takes.of(&shown.inputs).iter().flatten() {
            // At the last firing of a reduce, its input is empty.
            self.counts[*edge] = self.counts[*edge].saturating_sub(1);
        }
        let phase = &mut self.phases[actor];
        *phase = shown.kind.after(*phase);
    }

    /// Passes a value down the actor's tree and puts it into the queues. Calls `step` for each branch that the value reaches and
    /// whose pass may let it through; `step` returns whether the value passes. Calls `enter` for each queue that the value
    /// enters.
    #[inline]
    pub(crate) fn give(&mut self, actor: usize, mut step: impl FnMut(usize) -> bool, mut enter: impl FnMut(EdgeId)) {
        let shown = &self.view.actors[actor];
        let reached = &mut self.reached[..shown.tree.len()];
        for (at, ((parent, pass), state)) in shown.tree.iter().zip(&mut self.passes[actor]).enumerate() {
            if parent.is_some_and(|parent| !reached[parent]) {
                reached[at] = false;
                continue;
            }
            reached[at] = pass.may_pass(*state) && step(at);
            *state = pass.after(*state);
        }
        for (edge, leaf) in &shown.outputs {
            if leaf.is_none_or(|leaf| self.reached[leaf]) && !self.ended[self.view.ends[*edge].1] {
                self.counts[*edge] += 1;
                self.peaks[*edge] = self.peaks[*edge].max(self.counts[*edge]);
                enter(*edge);
            }
        }
    }

    /// Fires an actor in a net that carries no values.
    pub(crate) fn fire(&mut self, actor: usize, fire: Fire) {
        self.take(actor, fire.takes);
        if fire.gives {
            self.give(actor, |_| true, |_| {});
        }
    }

    /// Fires one actor, after the actors that it waits for. `fire` performs each firing.
    ///
    /// # Errors
    /// The inner error `E` comes from a firing; the outer error is a cycle of waits.
    pub(crate) fn drive<E>(
        &mut self,
        target: usize,
        mut fire: impl FnMut(&mut Self, usize, Fire) -> Result<(), E>,
    ) -> Result<Result<Driven, E>, Stuck> {
        // An earlier demand that ended with an error may have left actors in the chain.
        while let Some((actor, _)) = self.waiting.pop() {
            self.waits[actor] = false;
        }
        self.waiting.push((target, None));
        self.waits[target] = true;
        loop {
            let (actor, _) = *self.waiting.last().expect("the target is there until it has fired");
            let ready = self.ready(actor);
            let next = match ready {
                Ready::Input(edge) => (self.view.ends[edge].0, (edge, false)),
                Ready::Room(edge) => (self.view.ends[edge].1, (edge, true)),
                Ready::Yes(_) | Ready::Ended => {
                    match ready {
                        Ready::Yes(firing) => {
                            if let Err(error) = fire(self, actor, firing) {
                                return Ok(Err(error));
                            }
                        }
                        _ => self.ended[actor] = true,
                    }
                    // If the value was dropped on its path, the reader still waits, so the actor must fire again.
                    if self.is_still_awaited(actor) {
                        continue;
                    }
                    self.waiting.pop();
                    self.waits[actor] = false;
                    if self.waiting.is_empty() {
                        return Ok(Ok(if ready == Ready::Ended { Driven::Ended } else { Driven::Fired }));
                    }
                    continue;
                }
            };
            self.waiting.last_mut().expect("as before").1 = Some(next.1);
            if self.waits[next.0] {
                let from = self.waiting.iter().position(|(actor, _)| *actor == next.0).unwrap_or(0);
                return Err(Stuck(self.waiting[from..].iter().filter_map(|(_, edge)| *edge).collect()));
            }
            self.waiting.push((next.0, None));
            self.waits[next.0] = true;
        }
    }

    /// `actor` is the last of the chain. Returns whether another actor waits for a value of this actor and has not received it
    /// yet.
    fn is_still_awaited(&self, actor: usize) -> bool {
        let reader = self.waiting.len().checked_sub(2).and_then(|at| self.waiting[at].1);
        reader.is_some_and(|(edge, room)| !room && self.counts[edge] == 0) && !self.ended[actor]
    }

    /// Returns the waiting actors, each waiting for the next.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = usize> {
        self.waiting.iter().map(|(actor, _)| *actor)
    }

    /// Returns the waiting actors as numbers: each actor with the edge at which it waits.
    pub(crate) fn waits(&self) -> impl Iterator<Item = u64> {
        self.waiting.iter().flat_map(|(actor, at)| {
            let (edge, room) = at.map_or((0, 0), |(edge, room)| (edge as u64 + 1, u64::from(room)));
            [*actor as u64, edge, room]
        })
    }

    /// Returns the state as words: the counts of the queues, then the phases. Until an actor ends, these words determine
    /// all further firings.
    pub(crate) fn words(&self) -> Vec<u64> {
        self.counts.iter().copied().chain(self.phases()).collect()
    }

    /// Restores a state from its words. The peaks stay as they are.
    pub(crate) fn restore(&mut self, words: &[u64]) {
        let places = self.counts.iter_mut().chain(&mut self.phases).chain(self.passes.iter_mut().flatten());
        places.zip(words).for_each(|(place, word)| *place = *word);
    }

    /// Returns the phases of all actors and passes, without the queues.
    pub(crate) fn phases(&self) -> impl Iterator<Item = u64> {
        self.phases.iter().chain(self.passes.iter().flatten()).copied()
    }
}
