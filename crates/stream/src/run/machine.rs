//! The machine: runs the net with the code of its nodes.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use crate::fuse::Stop;
use crate::net::{Driven, EdgeId, Stuck, Tokens};

use super::error::RunError;
use super::memo::Memo;
use super::plan::Parts;
use super::queue::Inlet;
use super::schedule::Schedule;
use super::work::{Code, Step, Work, Works};

/// See the [module](self).
pub(crate) struct Machine {
    pub(super) parts: Arc<Parts>,
    pub(super) tokens: Tokens,
    pub(super) works: Works,
    /// The record of a period, and the position of the run in it; `None` if the data decide, or after a source has ended. While
    /// there is a schedule, `tokens` contains the state before the schedule's first firing.
    schedule: Option<Schedule>,
    /// If the data decide, the firings recorded so far; `None` once the run continues by the rule. While there is a memo, only
    /// the peaks in `tokens` are valid, and all other state is in the memo.
    memo: Option<Memo>,
}

impl Machine {
    /// Assigns each node's code to its actor or its branch in the net.
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

    /// Calls `give` for each value that reaches the sink, until `give` breaks or `steps` is 0.
    pub(crate) fn drive(&mut self, steps: &mut u64, give: &mut dyn FnMut() -> ControlFlow<()>) -> Stop {
        if let Some(schedule) = &mut self.schedule {
            let stop = schedule.follow(&mut self.works, steps, give);
            let Stop::End = stop else { return stop };
            // A source has ended. From here on the run continues by the rule, under which the actors that depend on this source
            // end as well.
            self.tokens = schedule.state(&self.tokens);
            self.tokens.ended[schedule.next()] = true;
            self.schedule = None;
        }
        if let Some(memo) = &mut self.memo {
            let stop = memo.follow(&mut self.works, &mut self.tokens, steps, give);
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
                Ok(Ok(Driven::Fired)) => {
                    if give().is_break() {
                        return Stop::Value;
                    }
                }
                Ok(Ok(Driven::Ended)) => return Stop::End,
                Ok(Err(stop)) => return stop,
                Err(Stuck(cycle)) => {
                    if let Err(stop) = self.fire_without_room(&cycle, steps) {
                        return stop;
                    }
                }
            }
        }
    }

    /// Fires the writer of a full buffer in a cycle of waits, because no other firing can resolve the cycle. The run fails only
    /// if a value then has to enter the buffer. There may be no such value: the writer may have ended, or its value may be
    /// dropped on the path.
    fn fire_without_room(&mut self, cycle: &[(usize, bool)], steps: &mut u64) -> Result<(), Stop> {
        let (parts, view) = (Arc::clone(&self.parts), Arc::clone(&self.tokens.view));
        let reader = |edge: usize| parts.labels[view.ends[edge].1].clone();
        let is_buffer = |edge: usize| parts.net.edges[edge].elastic.is_some();
        let Some((edge, _)) = cycle.iter().find(|(edge, room)| *room && is_buffer(*edge)) else {
            let label = cycle.first().map_or(String::new(), |(edge, _)| reader(*edge));
            return Err(RunError::Stuck { label }.into());
        };
        let writer = view.ends[*edge].0;
        if self.make_room(writer, *edge, steps)? {
            return Ok(());
        }
        let firing = self.tokens.without_room(writer);
        self.works.fire(&mut self.tokens, writer, firing, steps)?;
        match self.tokens.take_back(writer, *edge) {
            Some(edge) => Err(RunError::BufferFull { label: reader(edge), values: self.tokens.caps[edge] }.into()),
            None => Ok(()),
        }
    }

    /// The writer's next value may enter other queues than the buffer. If one of them is full and its reader can fire, fires that
    /// reader. Returns whether a reader has fired.
    fn make_room(&mut self, writer: usize, edge: EdgeId, steps: &mut u64) -> Result<bool, Stop> {
        let (view, sink) = (Arc::clone(&self.tokens.view), self.parts.sink);
        for (other, _) in &view.actors[writer].outputs {
            if *other == edge || !self.tokens.is_full(*other) {
                continue;
            }
            let works = &mut self.works;
            let driven = self.tokens.drive(view.ends[*other].1, |tokens, actor, fire| match actor {
                // The sink fires only on its own demand.
                actor if actor == sink => Err(None),
                actor => works.fire(tokens, actor, fire, steps).map_err(Some),
            });
            match driven {
                Ok(Ok(Driven::Fired)) => return Ok(true),
                Ok(Err(Some(stop))) => return Err(stop),
                // This reader cannot fire: it has ended, or waits for the writer as well.
                Ok(Ok(Driven::Ended) | Err(None)) | Err(Stuck(_)) => {}
            }
        }
        Ok(false)
    }

    /// For each queue, returns the maximum number of values that it has held.
    pub(crate) fn peaks(&self) -> Vec<u64> {
        match &self.schedule {
            Some(schedule) => schedule.state(&self.tokens).peaks,
            None => self.tokens.peaks.clone(),
        }
    }
}
