//! The work of a net: the code of its nodes, and the list of the parts of a firing.
//!
//! A firing begins with the code of its actor. The value that the actor produces then passes through branches and enters queues.
//! In a [schedule](super::schedule) or a [memo](super::memo), the order of these parts is known: it is a list of [`Part`]s.
//! [`Works::follow`] runs such a list. It makes one call for each part that has code.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::rc::Rc;

use crate::fuse::Stop;
use crate::net::{EdgeId, Fire, Kind, Tokens};

use super::error::RunError;
use super::queue::Inlet;

/// The facts about one firing that its actor's code needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    /// The input from which the actor takes, if it takes from one input at a time.
    pub(crate) port: Option<usize>,
    /// The actor's phase at this firing.
    pub(crate) phase: u64,
    /// Whether the firing produces a value.
    pub(crate) gives: bool,
}

/// The code of an actor. It takes values from its queues, and writes the value that it produces to its slot.
pub(crate) type Actor = Box<dyn FnMut(&Turn) -> Result<(), Box<RunError>>>;

/// The loop of a chain, which writes its next value to its slot. It subtracts one step for each value of its source.
pub(crate) type Draw = Box<dyn FnMut(&mut u64) -> Stop>;

/// The code of an operator of a tree, which returns whether the value passes.
pub(crate) type Step = Box<dyn FnMut() -> Result<bool, Box<RunError>>>;

/// The code of a node.
pub(crate) enum Work {
    /// The last node of a chain: begins its loop.
    Source(Box<dyn FnOnce() -> Draw>),
    /// Another node of a chain.
    Fused,
    /// An actor, with the queues of its inputs.
    Actor(Actor, Vec<Inlet>),
    /// An operator of a tree.
    Branch(Step),
    /// An operator that passes all values, or selects values by a clock. The net handles it without code.
    Pass,
    /// The sink, which has no code. It needs no queue, because it takes each value before the next one is computed.
    Sink,
}

/// A part of a firing.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    /// Begins a firing.
    Act { actor: usize, turn: Turn },
    /// The firing of the sink: the run produces one more value.
    Give,
    /// Runs the code of a branch.
    Step { actor: usize, branch: usize },
    /// Runs the code of a branch that passes or drops the value. If the branch drops the value, the run continues at the first
    /// part in `next`, otherwise at the second.
    Decide { actor: usize, branch: usize, next: [usize; 2] },
    /// Adds the writer's value to a queue.
    Enter(EdgeId),
    /// A jump to a part.
    Go(usize),
    /// A jump to a part, which also counts a completed period.
    Again(usize),
}

/// The position of a part that is not recorded yet.
pub(super) const UNKNOWN: usize = usize::MAX;

/// The position of a run in a list of parts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Position {
    /// The first part of the current firing. Between two firings, the first part of the next one.
    pub(super) begin: usize,
    /// The last decision in the current firing, and whether the value passed.
    pub(super) decided: Option<(usize, bool)>,
    /// The number of completed periods.
    pub(super) turns: u64,
}

/// The code of an actor of the net.
pub(super) enum Code {
    Source(Draw),
    Actor(Actor),
    Sink,
}

/// See the [module](self).
pub(super) struct Works {
    pub(super) actors: Vec<Code>,
    /// The code of each actor's tree; `None` for a branch at which the net alone decides which values pass.
    pub(super) trees: Vec<Vec<Option<Step>>>,
    /// The queue of each edge; `None` for the sink's edge.
    pub(super) queues: Vec<Option<Inlet>>,
    /// The number of firings so far.
    pub(super) moment: Rc<Cell<u64>>,
    /// The steps of branches that have not been subtracted from the limit yet.
    pub(super) steps: Rc<Cell<u64>>,
}

impl Works {
    /// Runs the code of an actor, without the code of its tree. Returns the reason to stop, if there is one. A source that has
    /// ended returns [`Stop::End`].
    #[inline(always)]
    pub(super) fn act(&mut self, actor: usize, turn: &Turn, steps: &mut u64) -> Option<Stop> {
        // At this point all earlier firings are complete, so a pause loses nothing.
        if *steps == 0 {
            return Some(Stop::Pause);
        }
        self.moment.set(self.moment.get() + 1);
        match &mut self.actors[actor] {
            Code::Source(draw) => match draw(steps) {
                Stop::Value => None,
                stop => Some(stop),
            },
            Code::Actor(work) => {
                *steps -= 1;
                work(turn).err().map(Stop::from)
            }
            Code::Sink => None,
        }
    }

    /// Returns whether a branch has code. If not, the net alone decides which values pass.
    pub(super) fn has_code(&self, actor: usize, branch: usize) -> bool {
        self.trees[actor][branch].is_some()
    }

    /// Runs the code of a branch. Returns whether the value passes.
    #[inline(always)]
    pub(super) fn step(&mut self, actor: usize, branch: usize, steps: &mut u64) -> Result<bool, Stop> {
        let Some(step) = &mut self.trees[actor][branch] else { return Ok(true) };
        let passes = step().map_err(Stop::from);
        *steps = steps.saturating_sub(self.steps.take());
        passes
    }

    /// Adds the writer's value to a queue.
    #[inline(always)]
    pub(super) fn enter(&self, edge: EdgeId) -> Result<(), Stop> {
        match &self.queues[edge] {
            Some(queue) => queue.enter().map_err(Stop::from),
            None => Ok(()),
        }
    }

    /// Runs a list of parts, and calls `give` for each value that reaches the sink, until `give` breaks. Returns `None` at
    /// a part that is not recorded yet.
    #[inline]
    pub(super) fn follow(
        &mut self,
        parts: &[Part],
        position: &mut Position,
        steps: &mut u64,
        give: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Option<Stop> {
        let mut at = position.begin;
        loop {
            at = match parts.get(at)? {
                Part::Act { actor, turn } => {
                    (position.begin, position.decided) = (at, None);
                    if let Some(stop) = self.act(*actor, turn, steps) {
                        return Some(stop);
                    }
                    at + 1
                }
                Part::Give => {
                    (position.begin, position.decided) = (at + 1, None);
                    if give().is_break() {
                        return Some(Stop::Value);
                    }
                    at + 1
                }
                Part::Enter(edge) => {
                    if let Err(stop) = self.enter(*edge) {
                        return Some(stop);
                    }
                    at + 1
                }
                Part::Step { actor, branch } => {
                    if let Err(stop) = self.step(*actor, *branch, steps) {
                        return Some(stop);
                    }
                    at + 1
                }
                Part::Decide { actor, branch, next } => match self.step(*actor, *branch, steps) {
                    Ok(passes) => {
                        position.decided = Some((at, passes));
                        next[usize::from(passes)]
                    }
                    Err(stop) => return Some(stop),
                },
                Part::Go(next) => *next,
                Part::Again(next) => {
                    position.turns += 1;
                    *next
                }
            };
        }
    }

    /// Fires an actor that is ready.
    #[inline]
    pub(super) fn fire(
        &mut self,
        tokens: &mut Tokens,
        actor: usize,
        firing: Fire,
        steps: &mut u64,
    ) -> Result<(), Stop> {
        let Fire { takes, gives } = firing;
        let turn = Turn { port: takes.port(), phase: tokens.phase(actor), gives };
        let gave = match self.act(actor, &turn, steps) {
            None => true,
            Some(Stop::End) => false,
            Some(stop) => return Err(stop),
        };
        tokens.take(actor, takes);
        if !gives {
            return Ok(());
        }
        if !gave {
            tokens.ended[actor] = true;
            return Ok(());
        }
        let mut failed = None;
        let (tree, queues) = (&mut self.trees[actor], &self.queues);
        let step = |branch: usize| match &mut tree[branch] {
            Some(step) if failed.is_none() => step().unwrap_or_else(|error| {
                failed = Some(Stop::from(error));
                false
            }),
            Some(_) => false,
            None => true,
        };
        let mut not_entered = None;
        tokens.give(actor, step, |edge| {
            if let Some(queue) = &queues[edge]
                && let Err(error) = queue.enter()
            {
                not_entered.get_or_insert(Stop::from(error));
            }
        });
        *steps = steps.saturating_sub(self.steps.take());
        if tokens.view.actors[actor].kind == Kind::Reduce {
            tokens.ended[actor] = true;
        }
        failed.or(not_entered).map_or(Ok(()), Err)
    }
}
