//! Turns the graph into the net.

use crate::clock::Pass;
use crate::graph::{Graph, NodeId, Operator};

use super::view::Kind;

/// The number of an edge.
pub(crate) type EdgeId = usize;

/// A queue whose bound is not proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Elastic {
    /// The queue has room for this many values, and a run fails if it needs more.
    Buffer(u64),
    /// The queue grows on disk.
    Spill,
}

/// An actor with its tree.
#[derive(Debug)]
pub(crate) struct Actor {
    pub(crate) node: NodeId,
    pub(crate) kind: Kind,
    /// The edges of the inputs.
    pub(crate) inputs: Vec<EdgeId>,
    pub(crate) outputs: Vec<EdgeId>,
    /// The operators that process the actor's values as they pass. Each comes after its parent.
    pub(crate) tree: Vec<Branch>,
}

/// An operator of a tree.
#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) node: NodeId,
    /// The operator above this one in the tree; `None` for the actor itself.
    pub(crate) parent: Option<usize>,
    pub(crate) pass: Pass,
}

/// A queue from an actor, down a path of its tree, to an input of another actor.
#[derive(Debug)]
pub(crate) struct Edge {
    pub(crate) producer: usize,
    /// The last operator of the path; `None` for the actor itself.
    pub(crate) leaf: Option<usize>,
    pub(crate) consumer: usize,
    pub(crate) port: usize,
    /// The last operator on the path that is a data decision. It is the clock of the edge.
    pub(crate) base: Option<usize>,
    pub(crate) elastic: Option<Elastic>,
}

/// A hold or an align whose inputs do not come from one source, or have joins or copies in between.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Apart {
    pub(crate) node: NodeId,
    /// The actors from which the inputs come.
    pub(crate) from: [NodeId; 2],
}

/// See the [module](super).
#[derive(Debug)]
pub(crate) struct Net {
    pub(crate) actors: Vec<Actor>,
    pub(crate) edges: Vec<Edge>,
}

impl Net {
    pub(crate) fn of(graph: &Graph) -> Result<Self, Apart> {
        let mut net = Self { actors: Vec::new(), edges: Vec::new() };
        let live = graph.live();
        // The actor and the branch that produce the values of each node.
        let mut places = vec![(0, None); graph.nodes().len()];
        for (id, node) in graph.nodes().iter().enumerate().filter(|(id, _)| live[*id]) {
            if node.operator.is_actor() {
                let actor = net.actors.len();
                let inputs = node.inputs.iter().enumerate().map(|(port, input)| net.join(places[*input], actor, port));
                let inputs = inputs.collect();
                let kind = Kind::of(&node.operator);
                net.actors.push(Actor { node: id, kind, inputs, outputs: Vec::new(), tree: Vec::new() });
                places[id] = (actor, None);
                continue;
            }
            // A hold has the clock of its second input.
            let (actor, parent) = places[*node.inputs.last().expect("an operator of a tree has inputs")];
            if let Operator::Hold | Operator::Align = node.operator {
                let held = places[node.inputs[0]].0;
                if held != actor {
                    return Err(Apart { node: id, from: [net.actors[held].node, net.actors[actor].node] });
                }
            }
            let pass = if let Operator::Pass(pass) = &node.operator { pass.clone() } else { Pass::ALL };
            let tree = &mut net.actors[actor].tree;
            tree.push(Branch { node: id, parent, pass });
            places[id] = (actor, Some(tree.len() - 1));
        }
        net.find_elastic(graph);
        for (id, edge) in net.edges.iter().enumerate() {
            net.actors[edge.producer].outputs.push(id);
        }
        Ok(net)
    }

    fn join(&mut self, (producer, leaf): (usize, Option<usize>), consumer: usize, port: usize) -> EdgeId {
        let tree = &self.actors[producer].tree;
        let base = path(tree, leaf).find(|branch| tree[*branch].pass == Pass::Data);
        self.edges.push(Edge { producer, leaf, consumer, port, base, elastic: None });
        self.edges.len() - 1
    }

    fn find_elastic(&mut self, graph: &Graph) {
        for edge in &mut self.edges {
            let tree = &self.actors[edge.producer].tree;
            // Between a buffer and its queue, operators may drop values but not change them.
            let operators = path(tree, edge.leaf).map(|branch| &graph.nodes()[tree[branch].node].operator);
            let last = operators.into_iter().find(|operator| !matches!(operator, Operator::Pass(_)));
            edge.elastic = match last {
                Some(Operator::Buffer(values)) => Some(Elastic::Buffer(*values)),
                Some(Operator::Spill) => Some(Elastic::Spill),
                _ => None,
            };
        }
    }

    /// Returns the branches on the path of an edge, from the edge's queue up to the actor.
    pub(crate) fn path(&self, edge: EdgeId) -> impl Iterator<Item = usize> {
        let edge = &self.edges[edge];
        path(&self.actors[edge.producer].tree, edge.leaf)
    }

    /// Returns the node whose values enter the queue.
    pub(crate) fn last_node(&self, edge: EdgeId) -> NodeId {
        let Edge { producer, leaf, .. } = self.edges[edge];
        let actor = &self.actors[producer];
        leaf.map_or(actor.node, |leaf| actor.tree[leaf].node)
    }
}

fn path(tree: &[Branch], leaf: Option<usize>) -> impl Iterator<Item = usize> {
    std::iter::successors(leaf, |branch| tree[*branch].parent)
}
