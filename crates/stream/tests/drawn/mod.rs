//! Draws random graphs.

use millstream_stream::clock::Pass;
use millstream_stream::graph::{Graph, NodeId, Operator};
use millstream_verify_random::Random;

/// Draws a random graph of a few nodes. The values of every node reach the sink.
pub(crate) struct Draw {
    random: Random,
    graph: Graph,
    unused: Vec<NodeId>,
    nodes: Vec<NodeId>,
}

impl Draw {
    pub(crate) fn draw(seed: u64, decisions: bool, buffers: bool) -> Graph {
        let mut random = Random::new(seed);
        let operators = 2 + random.below(5);
        let mut draw = Self { random, graph: Graph::new(), unused: Vec::new(), nodes: Vec::new() };
        draw.add(Operator::Source, &[]);
        if draw.random.below(4) == 0 {
            draw.add(Operator::Source, &[]);
        }
        for _ in 0..operators {
            draw.step(decisions, buffers);
        }
        // Join the streams that nothing reads yet.
        while draw.unused.len() > 1 {
            let (a, b) = (draw.unused[0], draw.unused[1]);
            draw.add(Operator::Zip, &[a, b]);
        }
        let last = draw.unused[0];
        draw.add(Operator::Sink, &[last]);
        draw.graph
    }

    fn step(&mut self, decisions: bool, buffers: bool) {
        let from = self.pick();
        let small = |random: &mut Random| random.below(3) + 1;
        let kinds = 8 + 2 * u64::from(decisions) + 2 * u64::from(buffers);
        match self.random.below(kinds) {
            0 => {
                let (first, step) = (self.random.below(3), small(&mut self.random));
                self.add(Operator::Pass(Pass::Every { first, step }), &[from]);
            }
            1 => {
                let mut letters = |most: u64| -> Vec<bool> {
                    (0..self.random.below(most)).map(|_| self.random.below(2) == 1).collect()
                };
                let (prefix, mut cycle) = (letters(3), letters(3));
                cycle.push(true);
                self.add(Operator::Pass(Pass::Word { prefix, cycle }), &[from]);
            }
            2 => {
                let copies = small(&mut self.random);
                self.add(Operator::Repeat(copies), &[from]);
            }
            3 => {
                let values = self.random.below(3);
                self.add(Operator::Prefix(values), &[from]);
            }
            4 => {
                let other = self.pick();
                let mut turns = vec![0, 1];
                (0..self.random.below(2)).for_each(|_| turns.insert(0, self.random.below(2) as usize));
                self.add(Operator::Merge(turns), &[from, other]);
            }
            // Thins the stream and then repeats each value the same number of times, so that the rates of paths match more
            // often.
            5 => {
                let step = small(&mut self.random);
                let thin = self.add(Operator::Pass(Pass::Every { first: step - 1, step }), &[from]);
                self.add(Operator::Repeat(step), &[thin]);
            }
            6 | 7 => {
                let other = self.pick();
                self.add(Operator::Zip, &[from, other]);
            }
            8 | 9 if decisions => {
                self.add(Operator::Pass(Pass::Data), &[from]);
            }
            _ => {
                self.add(Operator::Buffer(9), &[from]);
            }
        }
    }

    fn pick(&mut self) -> NodeId {
        self.nodes[self.random.below(self.nodes.len() as u64) as usize]
    }

    fn add(&mut self, operator: Operator, inputs: &[NodeId]) -> NodeId {
        let node = self.graph.add(operator, inputs, "node");
        self.unused.retain(|unused| !inputs.contains(unused));
        self.unused.push(node);
        self.nodes.push(node);
        node
    }
}
