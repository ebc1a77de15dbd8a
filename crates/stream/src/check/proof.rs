//! The proof: the bounds of an accepted graph.

use crate::clock::{Pass, Rate};
use crate::graph::{Graph, NodeId};
use crate::net::{EdgeId, Elastic, Net};

use super::balance::thinning;

/// The kind of a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guarantee {
    /// Proven: the queue never needs more room than the bound.
    Proven,
    /// The queue has the requested size. A run fails if this is too small.
    Buffer,
    /// The queue grows on disk. The bound is the number of values in memory.
    Spill,
}

/// A queue and its bound.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bound {
    /// The node that produces the values: a source, a join, a repeat, a prefix or a reduce.
    pub from: NodeId,
    /// The node whose values enter the queue: `from`, or an operator that processes the values of `from` as they pass.
    pub through: NodeId,
    /// The node that takes the values.
    pub to: NodeId,
    /// The input of `to`.
    pub port: usize,
    /// Which values of `from` enter the queue; `None` if no short word describes them.
    pub clock: Option<Pass>,
    /// The number of values that enter for each value of `from`; `None` if the data decide.
    pub rate: Option<Rate>,
    /// The maximum number of values in the queue.
    pub values: u64,
    /// The size of those values in bytes, excluding memory that they own elsewhere.
    pub bytes: u64,
    /// The kind of the bound.
    pub guarantee: Guarantee,
}

/// The bounds of an accepted graph, in the order of its joins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    edges: Vec<Bound>,
}

impl Proof {
    pub(super) fn of(graph: &Graph, net: &Net, caps: &[u64]) -> Self {
        let edges = (0..net.edges.len()).map(|edge| bound(graph, net, edge, caps[edge])).collect();
        Self { edges }
    }

    /// Returns the queues with their bounds.
    #[must_use]
    pub fn edges(&self) -> &[Bound] {
        &self.edges
    }

    /// Returns the size of all queues in bytes, excluding memory that values own elsewhere.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.edges.iter().fold(0, |sum, bound| sum.saturating_add(bound.bytes))
    }
}

fn bound(graph: &Graph, net: &Net, edge: EdgeId, values: u64) -> Bound {
    let tree = &net.actors[net.edges[edge].producer].tree;
    let passes: Vec<&Pass> = net.path(edge).map(|branch| &tree[branch].pass).collect();
    let clock = passes.iter().rev().try_fold(Pass::ALL, |clock, pass| clock.then(pass));
    let through = net.last_node(edge);
    Bound {
        from: net.actors[net.edges[edge].producer].node,
        through,
        to: net.actors[net.edges[edge].consumer].node,
        port: net.edges[edge].port,
        rate: if passes.contains(&&Pass::Data) { None } else { thinning(net, edge, None) },
        clock,
        values,
        bytes: values.saturating_mul(graph.nodes()[through].value_bytes),
        guarantee: match net.edges[edge].elastic {
            None => Guarantee::Proven,
            Some(Elastic::Buffer(_)) => Guarantee::Buffer,
            Some(Elastic::Spill) => Guarantee::Spill,
        },
    }
}
