//! The machine: the net in motion, with the code of its nodes.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use crate::fuse::Stop;
use crate::net::{Driven, EdgeId, Fire, Kind, Stuck, Tokens};

use super::error::RunError;
use super::memo::Memo;
use super::plan::Parts;
use super::queue::Inlet;
use super::schedule::{Firing, Record, Schedule};

/// One firing of an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    /// The input from which the actor takes, if its inputs take turns.
    pub(crate) port: Option<usize>,
    /// The number of the firing in the actor's cycle.
    pub(crate) phase: u64,
    /// Whether the firing gives a value.
    pub(crate) gives: bool,
}

/// The code of an actor. It takes values from its queues, and leaves the value that it gives in its place.
pub(crate) type Actor = Box<dyn FnMut(&Turn) -> Result<(), Box<RunError>>>;

/// The loop of a chain, which leaves its next value in its place. It subtracts the values of its source from the steps.
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
    /// A pass by a clock, or of all values, which the net handles.
    Pass,
    /// The sink, which has no code. Its values need no queue: each is taken before the next one is given.
    Sink,
}

/// The code of an actor of the net.
enum Code {
    Source(Draw),
    Actor(Actor),
    Sink,
}

/// See the [module](self).
pub(crate) struct Machine {
    parts: Arc<Parts>,
    tokens: Tokens,
    works: Works,
    /// The place in the record; `None` if the data decide, or a source is at its end. While there is a schedule,
    /// `tokens` is the state before its first firing.
    schedule: Option<Schedule>,
    /// The firings so far, if the data decide; `None` if the rule goes on without them. While there is a memo, `tokens`
    /// has the peaks, and the memo the rest of the state.
    memo: Option<Memo>,
}

/// The code of a net.
pub(super) struct Works {
    actors: Vec<Code>,
    /// The code of each actor's tree; `None` where the net alone decides.
    trees: Vec<Vec<Option<Step>>>,
    /// The queue of each edge; `None` for that of the sink.
    queues: Vec<Option<Inlet>>,
    /// The number of firings so far.
    moment: Rc<Cell<u64>>,
    /// The steps of branches that are not counted yet.
    steps: Rc<Cell<u64>>,
}

impl Machine {
    /// Puts each node's code into its place in the net.
    pub(crate) fn new(parts: &Arc<Parts>, works: Vec<Work>, moment: &Rc<Cell<u64>>, steps: &Rc<Cell<u64>>) -> Self {
        let (net, tokens) = (&parts.net, parts.start.clone());
        let mut works: Vec<Option<Work>> = works.into_iter().map(Some).collect();
        let mut take = |node: usize| works[parts.nodes[node]].take().expect("each node has one place");
        let mut actors = Vec::new();
        let mut trees: Vec<Vec<Option<Step>>> = Vec::new();
        let mut queues: Vec<Option<Inlet>> = net.edges.iter().map(|_| None).collect();
        for actor in &net.actors {
            actors.push(match take(actor.node) {
                Work::Source(begin) => Code::Source(begin()),
                Work::Actor(work, inputs) => {
                    for (edge, queue) in actor.inputs.iter().zip(inputs) {
                        queue.reserve(tokens.caps[*edge], net.edges[*edge].elastic.is_none());
                        queues[*edge] = Some(queue);
                    }
                    Code::Actor(work)
                }
                Work::Sink => Code::Sink,
                _ => unreachable!("an actor has the work of one"),
            });
            let tree = actor.tree.iter().map(|branch| match take(branch.node) {
                Work::Branch(step) => Some(step),
                _ => None,
            });
            trees.push(tree.collect());
        }
        Self {
            memo: if parts.record.is_none() { Memo::of(&tokens, parts.sink) } else { None },
            schedule: parts.record.clone().map(Schedule::new),
            tokens,
            works: Works { actors, trees, queues, moment: Rc::clone(moment), steps: Rc::clone(steps) },
            parts: Arc::clone(parts),
        }
    }

    /// Runs until the sink's queue has one more value, or `steps` firings are over.
    pub(crate) fn drive(&mut self, steps: &mut u64) -> Stop {
        if let Some(schedule) = &mut self.schedule {
            let stop = self.works.repeat(schedule, steps);
            let Stop::End = stop else { return stop };
            // A source has ended. The actors behind it end on demand.
            self.tokens = schedule.state(&self.tokens);
            self.tokens.ended[schedule.next().actor] = true;
            self.schedule = None;
        }
        if let Some(memo) = &mut self.memo {
            let stop = memo.follow(&mut self.works, &mut self.tokens, steps);
            if memo.is_over {
                self.memo = None;
            }
            if let Some(stop) = stop {
                return stop;
            }
        }
        loop {
            let works = &mut self.works;
            let driven =
                self.tokens.drive(self.parts.sink, |tokens, actor, fire| works.fire(tokens, actor, fire, steps));
            match driven {
                Ok(Ok(Driven::Fired)) => return Stop::Value,
                Ok(Ok(Driven::Ended)) => return Stop::End,
                Ok(Err(stop)) => return stop,
                Err(Stuck(circle)) => {
                    if let Err(stop) = self.fire_without_room(&circle, steps) {
                        return stop;
                    }
                }
            }
        }
    }

    /// Fires the writer of a full buffer in a circle of waits, in which nothing else helps. A full buffer fails only
    /// at a value that has to enter it: a writer may also be at its end, or drop the value on its way.
    fn fire_without_room(&mut self, circle: &[(usize, bool)], steps: &mut u64) -> Result<(), Stop> {
        let (parts, view) = (&self.parts, Arc::clone(&self.tokens.view));
        let reader = |edge: usize| parts.labels[view.ends[edge].1].clone();
        let is_buffer = |edge: usize| parts.net.edges[edge].elastic.is_some();
        let Some((edge, _)) = circle.iter().find(|(edge, room)| *room && is_buffer(*edge)) else {
            let label = circle.first().map_or(String::new(), |(edge, _)| reader(*edge));
            return Err(RunError::Stuck { label }.into());
        };
        let writer = view.ends[*edge].0;
        let firing = self.tokens.without_room(writer);
        self.works.fire(&mut self.tokens, writer, firing, steps)?;
        match self.tokens.take_back(writer, *edge) {
            Some(edge) => Err(RunError::BufferFull { label: reader(edge), values: self.tokens.caps[edge] }.into()),
            None => Ok(()),
        }
    }

    /// Returns the most values that each queue has held.
    pub(crate) fn peaks(&self) -> Vec<u64> {
        match &self.schedule {
            Some(schedule) => schedule.state(&self.tokens).peaks,
            None => self.tokens.peaks.clone(),
        }
    }
}

impl Works {
    /// Does the work of an actor, except for its tree. Returns the reason if it gives no value; that of a source at its
    /// end is [`Stop::End`].
    #[inline(always)]
    pub(super) fn act(&mut self, actor: usize, turn: &Turn, steps: &mut u64) -> Option<Stop> {
        *steps = steps.saturating_sub(self.steps.take());
        // The firings so far are whole: a pause loses nothing.
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

    /// Returns whether a branch has code. Elsewhere the net alone decides.
    pub(super) fn has_code(&self, actor: usize, branch: usize) -> bool {
        self.trees[actor][branch].is_some()
    }

    /// Does the work of a branch. Returns whether the value passes.
    #[inline(always)]
    pub(super) fn step(&mut self, actor: usize, branch: usize) -> Result<bool, Stop> {
        match &mut self.trees[actor][branch] {
            Some(step) => step().map_err(Stop::from),
            None => Ok(true),
        }
    }

    /// Lets the value in front of a queue enter.
    #[inline(always)]
    pub(super) fn enter(&self, edge: EdgeId) -> Result<(), Stop> {
        match &self.queues[edge] {
            Some(queue) => queue.enter().map_err(Stop::from),
            None => Ok(()),
        }
    }

    /// Fires an actor that is ready.
    #[inline]
    fn fire(&mut self, tokens: &mut Tokens, actor: usize, firing: Fire, steps: &mut u64) -> Result<(), Stop> {
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
        if tokens.view.actors[actor].kind == Kind::Reduce {
            tokens.ended[actor] = true;
        }
        failed.or(not_entered).map_or(Ok(()), Err)
    }

    /// Fires as recorded until the sink's queue has one more value, or a source is at its end.
    fn repeat(&mut self, schedule: &mut Schedule, steps: &mut u64) -> Stop {
        loop {
            let firing = schedule.next();
            if firing.is_last {
                schedule.advance();
                return Stop::Value;
            }
            if let Some(stop) = self.act(firing.actor, &firing.turn, steps) {
                return stop;
            }
            if let Err(stop) = self.pass_as_recorded(schedule.record(), firing) {
                return stop;
            }
            schedule.advance();
        }
    }

    /// Passes the value of a firing down its tree and into the queues.
    #[inline(always)]
    fn pass_as_recorded(&mut self, record: &Record, firing: &Firing) -> Result<(), Stop> {
        for branch in record.branches(firing) {
            self.step(firing.actor, *branch)?;
        }
        for edge in record.edges(firing) {
            self.enter(*edge)?;
        }
        Ok(())
    }
}
