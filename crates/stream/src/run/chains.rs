//! Chains as sources: the graph that a machine runs.

use crate::graph::{Graph, Node, NodeId, Operator};

use super::work::Work;

/// Returns the graph in which each chain is a source at its last node, and the program's number of each of its nodes;
/// `None` if there is no chain of several nodes. The sink has no work.
///
/// A chain has one reader, so all other queues count by the values that leave it. The bounds of those queues are the
/// same in both graphs.
pub(crate) fn without_chains(graph: &Graph, works: &[Work]) -> Option<(Graph, Vec<NodeId>)> {
    if !works.iter().any(|work| matches!(work, Work::Fused)) {
        return None;
    }
    let live = graph.live();
    let (mut short, mut kept) = (Graph::new(), Vec::new());
    let mut moved: Vec<Option<NodeId>> = Vec::with_capacity(graph.nodes().len());
    for (id, node) in graph.nodes().iter().enumerate() {
        let shown = match works.get(id) {
            Some(Work::Fused) => None,
            _ if !live[id] => None,
            Some(Work::Source(_)) => {
                Some(Node { operator: Operator::Source, inputs: Vec::new(), input_spans: Vec::new(), ..node.clone() })
            }
            _ => {
                let inputs = node.inputs.iter().map(|input| moved[*input].expect("a chain is read at its end"));
                Some(Node { inputs: inputs.collect(), ..node.clone() })
            }
        };
        moved.push(shown.map(|node| {
            kept.push(id);
            short.add_node(node)
        }));
    }
    Some((short, kept))
}
