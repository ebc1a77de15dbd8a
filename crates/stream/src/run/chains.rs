//! Chains as sources: the graph that a machine runs.

use crate::graph::{Graph, Node, NodeId, Operator};

use super::work::Work;

/// Returns the graph in which a source replaces each chain, and for each node of this graph its number in the program. The source
/// takes the place of the chain's last node. Returns `None` if no chain has several nodes. `works` has no entry for the sink.
///
/// A chain has one reader, so every queue behind it counts the values that leave the chain. Both graphs therefore give
/// those queues the same bounds.
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
