//! Plans: everything about a run that depends on the graph alone. All runs of a graph share its plan.

use std::sync::Arc;

use crate::check::{Bound, CheckError, Guarantee, Proof, solve};
use crate::graph::{Graph, NodeId};
use crate::net::{Kind, Net, Tokens, View};

use super::chains::without_chains;
use super::schedule::Record;
use super::work::Work;

/// See the [module](self).
pub(crate) struct Plan {
    /// The bounds of all queues.
    pub(crate) proof: Proof,
    /// For each queue, whether it is inside a chain.
    pub(crate) in_chain: Vec<bool>,
    /// The parts of the machine; `None` if the program is one chain.
    pub(crate) parts: Option<Arc<Parts>>,
}

/// Everything that a `Machine` needs, except the code of its nodes.
pub(crate) struct Parts {
    pub(crate) net: Net,
    /// For each node of the graph from which the net was made, its number in the program.
    pub(crate) nodes: Vec<NodeId>,
    /// The state before the first firing.
    pub(crate) start: Tokens,
    /// The firings of a period; `None` if the data decide.
    pub(crate) record: Option<Arc<Record>>,
    /// The label of each actor.
    pub(crate) labels: Vec<String>,
    pub(crate) sink: usize,
}

impl Plan {
    /// Checks a graph and plans its run. `works` is the code of all nodes except the sink. `is_whole` says that the
    /// program is one chain.
    pub(crate) fn of(graph: &Graph, works: &[Work], is_whole: bool) -> Result<Self, CheckError> {
        let (net, proof) = solve(graph)?;
        let in_chain = |work: Option<&Work>| matches!(work, Some(Work::Fused | Work::Source(_)));
        let in_chain = proof.edges().iter().map(|edge| in_chain(works.get(edge.to))).collect();
        let parts = match without_chains(graph, works) {
            _ if is_whole => None,
            None => Some(Parts::of(graph, net, &proof, (0..graph.nodes().len()).collect(), works)),
            Some((short, nodes)) => {
                let (net, proof) = solve(&short)?;
                Some(Parts::of(&short, net, &proof, nodes, works))
            }
        };
        Ok(Self { proof, in_chain, parts: parts.map(Arc::new) })
    }
}

impl Parts {
    fn of(graph: &Graph, net: Net, proof: &Proof, nodes: Vec<NodeId>, works: &[Work]) -> Self {
        let room = |bound: &Bound| if bound.guarantee == Guarantee::Spill { u64::MAX } else { bound.values };
        let caps: Vec<u64> = proof.edges().iter().map(room).collect();
        let start = Tokens::new(Arc::new(View::whole(&net)), caps);
        let sink = net.actors.iter().position(|actor| actor.kind == Kind::Sink).expect("a program has a sink");
        let mut record = Record::of(&start, sink);
        if let Some(record) = &mut record {
            let code = |actor: usize, branch: usize| works.get(nodes[net.actors[actor].tree[branch].node]);
            record.keep(
                |actor, branch| matches!(code(actor, branch), Some(Work::Branch(_))),
                |edge| net.edges[edge].consumer != sink,
            );
        }
        let labels = net.actors.iter().map(|actor| graph.nodes()[actor.node].label.clone()).collect();
        Self { record: record.map(Arc::new), net, nodes, start, labels, sink }
    }
}
