//! A program under construction.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use crate::check::{CheckError, Proof, check};
use crate::graph::{Graph, Node, NodeId, Operator};
use crate::run::{Inlet, Machine, Plan, Queue, RunError, Running, Shared, Work};

use super::stream::Stream;

/// A program of streams.
///
/// Its methods create sources, and the methods of [`Chain`](super::Chain) and [`Stream`] derive streams from streams.
/// Running one stream also runs every stream on which it depends. A program can run only once. A program belongs to the thread
/// that builds it.
///
/// ```
/// use millstream_stream::Program;
///
/// let program = Program::new();
/// let x = program.iter("x", 1..=6_u64).share();
/// let steps = x.skip(1).zip_with(&x, |next, this| next - this);
/// let values: Result<Vec<u64>, _> = steps.run()?.values().collect();
/// assert_eq!(values?, [1; 5]);
/// # Ok::<(), millstream_stream::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Program {
    pub(super) draft: Rc<RefCell<Draft>>,
    /// The number of firings so far in the run.
    pub(super) moment: Rc<Cell<u64>>,
    /// The steps of windows and of large values that have not been subtracted from the run's limit yet.
    pub(super) steps: Rc<Cell<u64>>,
}

#[derive(Default)]
pub(super) struct Draft {
    pub(super) graph: Graph,
    pub(super) works: Vec<Work>,
    ran: bool,
}

/// The reason why a program did not run, or did not run to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program has no bounds.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The run ended early.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The program has run before.
    #[error("a program runs once: its sources are spent; expected a new program for each run")]
    RanBefore,
}

impl Program {
    /// Returns a program without streams.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a node whose values are `size` bytes.
    pub(super) fn add(&self, operator: Operator, inputs: &[NodeId], label: &str, size: usize, work: Work) -> NodeId {
        let mut draft = self.draft.borrow_mut();
        draft.works.push(work);
        draft.graph.add_node(Node {
            operator,
            inputs: inputs.to_vec(),
            label: label.to_owned(),
            value_bytes: size as u64,
            span: None,
            input_spans: Vec::new(),
        })
    }

    /// Sets the code of a node.
    pub(super) fn set_work(&self, node: NodeId, work: Work) {
        self.draft.borrow_mut().works[node] = work;
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.draft, &other.draft)
    }

    /// Sets a node's label and the spans of its text and its arguments.
    pub(crate) fn describe(&self, node: NodeId, label: &str, span: Range<usize>, inputs: Vec<Range<usize>>) {
        let mut draft = self.draft.borrow_mut();
        let node = draft.graph.node_mut(node);
        label.clone_into(&mut node.label);
        node.span = Some(span);
        node.input_spans = inputs;
    }

    /// Returns the counter for the steps of large values. At the next value of a source, the run subtracts them from its limit.
    pub(crate) fn uncounted(&self) -> Rc<Cell<u64>> {
        Rc::clone(&self.steps)
    }

    /// Marks the program as run; fails if it has run before.
    pub(super) fn begin(&self) -> Result<(), Error> {
        match std::mem::replace(&mut self.draft.borrow_mut().ran, true) {
            true => Err(Error::RanBefore),
            false => Ok(()),
        }
    }

    /// Returns the number of nodes so far.
    pub(crate) fn nodes(&self) -> usize {
        self.draft.borrow().graph.nodes().len()
    }

    /// Changes a node's label.
    pub(crate) fn rename(&self, node: NodeId, label: &str) {
        label.clone_into(&mut self.draft.borrow_mut().graph.node_mut(node).label);
    }

    /// Returns the current graph with a sink for the stream.
    pub(crate) fn graph_to(&self, node: NodeId) -> Graph {
        let mut graph = self.draft.borrow().graph.clone();
        graph.add(Operator::Sink, &[node], "out");
        graph
    }
}

/// Creates a queue in front of an actor. Returns two references to it, for the actor and for the net.
pub(super) fn queue<T: Clone + 'static>(stream: &Stream<T>) -> (Rc<RefCell<Queue<T>>>, Inlet) {
    let disk = stream.spill.as_ref().map(|make| make());
    let queue = Rc::new(RefCell::new(Queue::new(Shared::clone(&stream.slot), disk)));
    (Rc::clone(&queue), queue)
}

impl<T: Clone + 'static> Stream<T> {
    /// Proves the bounds of this stream's program, without running it.
    ///
    /// # Errors
    /// Returns a refusal; see [`CheckError`].
    pub fn check(&self) -> Result<Proof, CheckError> {
        check(&self.graph())
    }

    /// Returns the graph of this stream's program.
    #[must_use]
    pub fn graph(&self) -> Graph {
        self.program.graph_to(self.node)
    }

    /// Checks the program and allocates its queues. The caller then pulls the values from the returned [`Running`].
    ///
    /// # Errors
    /// Returns [`Error::Check`] for a program without bounds, and [`Error::RanBefore`] for a program that has run.
    pub fn run(&self) -> Result<Running<T>, Error> {
        if self.program.draft.borrow().ran {
            return Err(Error::RanBefore);
        }
        let plan = self.plan()?;
        self.run_as(&plan)
    }

    /// Checks the program and plans its run.
    pub(crate) fn plan(&self) -> Result<Plan, CheckError> {
        let graph = self.graph();
        Plan::of(&graph, &self.program.draft.borrow().works, self.whole.strong_count() > 0)
    }

    /// Prepares a run with the plan of another program that has the same graph.
    pub(crate) fn run_as(&self, plan: &Plan) -> Result<Running<T>, Error> {
        self.program.begin()?;
        let mut works = std::mem::take(&mut self.program.draft.borrow_mut().works);
        match (self.whole.upgrade().and_then(|held| held.take()), &plan.parts) {
            (Some(whole), _) => Ok(Running::whole(whole, plan.proof.clone())),
            (None, Some(parts)) => {
                works.push(Work::Sink);
                let machine = Machine::new(parts, works, &self.program.moment, &self.program.steps);
                Ok(Running::net(machine, Rc::clone(&self.slot), plan.proof.clone(), plan.in_chain.clone()))
            }
            (None, None) => unreachable!("the program is one chain"),
        }
    }
}
