//! The machine: the net in motion, with the code of its nodes.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use crate::check::{Bound, Guarantee, Proof};
use crate::graph::Graph;
use crate::net::{Driven, Elastic, Kind, Net, Stuck, Tokens, View};

use super::error::RunError;
use super::queue::Inlet;

/// One firing of an actor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    /// The input from which the actor takes, if its inputs take turns.
    pub(crate) port: Option<usize>,
    /// The number of the firing in the actor's cycle.
    pub(crate) phase: u64,
    /// Whether the firing gives a value.
    pub(crate) gives: bool,
}

/// The code of an actor. It takes values from its queues, and leaves the value that it gives in its place. A source
/// returns whether there was another value.
pub(crate) type Actor = Box<dyn FnMut(Turn) -> Result<bool, RunError>>;

/// The code of a node.
pub(crate) enum Work {
    /// An actor, with the queues of its inputs.
    Actor(Actor, Vec<Inlet>),
    /// An operator of a tree, which returns whether the value passes.
    Branch(Box<dyn FnMut() -> Result<bool, RunError>>),
    /// A pass by a clock, which the net handles.
    Pass,
}

/// The outcome of a part of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The sink's queue has one more value.
    Value,
    /// The steps are over.
    Pause,
    /// The program is at its end.
    End,
}

/// See the [module](self).
pub(crate) struct Machine {
    tokens: Tokens,
    actors: Vec<Actor>,
    /// The code of each actor's tree.
    trees: Vec<Vec<Work>>,
    queues: Vec<Inlet>,
    elastic: Vec<Option<Elastic>>,
    labels: Vec<String>,
    sink: usize,
    /// The number of firings so far.
    moment: Rc<Cell<u64>>,
}

impl Machine {
    /// Puts each node's code into its place in the net.
    pub(crate) fn new(graph: &Graph, net: &Net, proof: &Proof, works: Vec<Work>, moment: Rc<Cell<u64>>) -> Self {
        let room = |bound: &Bound| if bound.guarantee == Guarantee::Spill { u64::MAX } else { bound.values };
        let caps: Vec<u64> = proof.edges().iter().map(room).collect();
        let mut works: Vec<Option<Work>> = works.into_iter().map(Some).collect();
        let mut take = |node: usize| works[node].take().expect("each node has one place");
        let (mut actors, mut trees) = (Vec::new(), Vec::new());
        let mut queues: Vec<Option<Inlet>> = net.edges.iter().map(|_| None).collect();
        for actor in &net.actors {
            let Work::Actor(work, inputs) = take(actor.node) else { unreachable!("an actor has the work of one") };
            actors.push(work);
            for (edge, queue) in actor.inputs.iter().zip(inputs) {
                queue.borrow_mut().reserve(caps[*edge], net.edges[*edge].elastic.is_none());
                queues[*edge] = Some(queue);
            }
            trees.push(actor.tree.iter().map(|branch| take(branch.node)).collect());
        }
        Self {
            tokens: Tokens::new(Arc::new(View::whole(net)), caps),
            actors,
            trees,
            queues: queues.into_iter().map(|queue| queue.expect("each edge has a queue")).collect(),
            elastic: net.edges.iter().map(|edge| edge.elastic).collect(),
            labels: net.actors.iter().map(|actor| graph.nodes()[actor.node].label.clone()).collect(),
            sink: sink(net),
            moment,
        }
    }

    /// Runs until the sink's queue has one more value, or `steps` firings are over.
    pub(crate) fn drive(&mut self, mut steps: u64) -> Result<Progress, RunError> {
        let Self { tokens, actors, trees, queues, moment, .. } = self;
        let driven = tokens.drive(self.sink, |tokens, actor, gives| {
            // The firings so far are whole, and the next demand begins again: a pause loses nothing.
            if steps == 0 {
                return Err(None);
            }
            steps -= 1;
            let turn = Turn { port: tokens.turn(actor), phase: tokens.phase(actor), gives };
            let gave = actors[actor](turn).map_err(Some)?;
            tokens.take(actor);
            if !gives {
                return Ok(());
            }
            if !gave {
                tokens.ended[actor] = true;
                return Ok(());
            }
            moment.set(moment.get() + 1);
            let (failed, is_over) = (Cell::new(None), Cell::new(false));
            let tree = &mut trees[actor];
            let step = |branch: usize| match &mut tree[branch] {
                Work::Branch(_) if is_over.get() => false,
                Work::Branch(step) => step().unwrap_or_else(|error| {
                    is_over.set(true);
                    keep_first(&failed, error);
                    false
                }),
                _ => true,
            };
            tokens.give(actor, step, |edge| {
                if let Err(error) = queues[edge].borrow_mut().enter() {
                    keep_first(&failed, error);
                }
            });
            if tokens.view.actors[actor].kind == Kind::Reduce {
                tokens.ended[actor] = true;
            }
            failed.into_inner().map_or(Ok(()), |error| Err(Some(error)))
        });
        match driven {
            Ok(Ok(Driven::Fired)) => Ok(Progress::Value),
            Ok(Ok(Driven::Ended)) => Ok(Progress::End),
            Ok(Err(None)) => Ok(Progress::Pause),
            Ok(Err(Some(error))) => Err(error),
            Err(Stuck(circle)) => Err(self.stuck(&circle)),
        }
    }

    fn stuck(&self, circle: &[(usize, bool)]) -> RunError {
        let reader = |edge: usize| self.labels[self.tokens.view.ends[edge].1].clone();
        let full = circle.iter().find(|(edge, room)| *room && self.elastic[*edge].is_some());
        match full {
            Some((edge, _)) => RunError::BufferFull { label: reader(*edge), values: self.tokens.caps[*edge] },
            None => RunError::Stuck { label: circle.first().map_or(String::new(), |(edge, _)| reader(*edge)) },
        }
    }

    /// Returns the most values that each queue has held.
    pub(crate) fn peaks(&self) -> &[u64] {
        &self.tokens.peaks
    }
}

/// Notes an error, unless there was one before.
#[cold]
fn keep_first(failed: &Cell<Option<RunError>>, error: RunError) {
    let first = failed.take();
    failed.set(Some(first.unwrap_or(error)));
}

fn sink(net: &Net) -> usize {
    net.actors.iter().position(|actor| actor.kind == Kind::Sink).expect("a program has a sink")
}
