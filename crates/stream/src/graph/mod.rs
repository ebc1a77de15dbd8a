//! The graph of a stream program. Its nodes are in an order in which each node comes after its inputs.

mod operator;

use std::ops::Range;

pub use operator::Operator;

/// The maximum number of nodes in a graph.
pub const MAX_NODES: usize = 10_000;

/// The number of a node. Inputs have smaller numbers than the nodes that read them.
pub type NodeId = usize;

/// A node: an operator with its inputs, and a label and spans for messages.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Node {
    /// The node's operator.
    pub operator: Operator,
    /// The nodes whose values this node takes.
    pub inputs: Vec<NodeId>,
    /// A short text that names the node in messages, such as `every(x, 2)`.
    pub label: String,
    /// The size in bytes of one value in a buffer, excluding memory that the value owns elsewhere.
    pub value_bytes: u64,
    /// The span of the node's text, if it has one.
    pub span: Option<Range<usize>>,
    /// The spans of the inputs' texts: one for each input, or none at all.
    pub input_spans: Vec<Range<usize>>,
}

/// A directed acyclic graph of operators.
///
/// [`check()`](crate::check::check) proves its bounds. [`Stream`](crate::Stream) builds the graph of a program; only
/// tools that check graphs of their own build one by hand.
///
/// ```
/// use millstream_stream::clock::Pass;
/// use millstream_stream::graph::{Graph, Operator};
///
/// let mut graph = Graph::new();
/// let x = graph.add(Operator::Source, &[], "x");
/// let late = graph.add(Operator::Pass(Pass::Every { first: 5, step: 1 }), &[x], "skip(x, 5)");
/// let pairs = graph.add(Operator::Zip, &[late, x], "zip");
/// graph.add(Operator::Sink, &[pairs], "out");
///
/// let proof = millstream_stream::check::check(&graph).unwrap();
/// let bound = proof.edges().iter().find(|edge| edge.from == x && edge.to == pairs && edge.port == 1).unwrap();
/// assert_eq!(bound.values, 6); // Five that wait, and the sixth with which the pairs begin.
/// ```
#[derive(Debug, Clone, Default)]
pub struct Graph {
    nodes: Vec<Node>,
}

impl Graph {
    /// Returns an empty graph.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a node whose values take 8 bytes and returns its number.
    ///
    /// # Panics
    /// Panics if the number of inputs does not fit the operator, or if an input is not in the graph yet or is a sink. Also
    /// panics if a number in the operator is out of range, or the graph already has [`MAX_NODES`] nodes.
    pub fn add(&mut self, operator: Operator, inputs: &[NodeId], label: &str) -> NodeId {
        self.add_node(Node {
            operator,
            inputs: inputs.to_vec(),
            label: label.to_owned(),
            value_bytes: 8,
            span: None,
            input_spans: Vec::new(),
        })
    }

    /// Adds a node and returns its number.
    ///
    /// # Panics
    /// Panics like [`add`](Self::add).
    pub fn add_node(&mut self, node: Node) -> NodeId {
        assert!(self.nodes.len() < MAX_NODES, "a graph has at most {MAX_NODES} nodes");
        node.operator.assert_fits(node.inputs.len());
        for input in &node.inputs {
            assert!(*input < self.nodes.len(), "input {input} of `{}` is not in the graph", node.label);
            let gives = !matches!(self.nodes[*input].operator, Operator::Sink);
            assert!(gives, "input {input} of `{}` is a sink, which gives no values", node.label);
        }
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Returns all nodes; a [`NodeId`] is an index.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns a node, to set its label and its spans.
    pub(crate) fn node_mut(&mut self, node: NodeId) -> &mut Node {
        &mut self.nodes[node]
    }

    /// Returns for each node whether its values reach a sink. All other nodes are not part of the program.
    pub(crate) fn live(&self) -> Vec<bool> {
        let mut live: Vec<bool> = self.nodes.iter().map(|node| matches!(node.operator, Operator::Sink)).collect();
        for (at, node) in self.nodes.iter().enumerate().rev() {
            if live[at] {
                node.inputs.iter().for_each(|input| live[*input] = true);
            }
        }
        live
    }
}
