//! Random graphs: the bounds against a simulator of all orders of firing.
//!
//! `MILLSTREAM_STRESS=1700 cargo test --release -p millstream-stream --test random_graphs` goes through 10^5 of them.

mod simulator;

use std::collections::HashMap;

use millstream_stream::check::{CheckError, Guarantee, Proof, check};
use millstream_stream::clock::Pass;
use millstream_stream::graph::{Graph, NodeId, Operator};
use millstream_verify_random::{Random, seed, stress};

use simulator::{Outcome, Queue, Simulator};

/// The most states that are followed for one graph.
const MAX_STATES: usize = 4_000;

/// A random graph of few nodes, all of which reach its sink.
struct Draw {
    random: Random,
    graph: Graph,
    unused: Vec<NodeId>,
    nodes: Vec<NodeId>,
}

impl Draw {
    fn draw(seed: u64, decisions: bool, buffers: bool) -> Graph {
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
        // Streams that nothing takes are joined at the end.
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
            // Undoes a repeat, or makes way for one: so that rates match more often.
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

fn caps(proof: &Proof) -> HashMap<Queue, u64> {
    proof.edges().iter().map(|bound| ((bound.through, bound.to, bound.port), bound.values)).collect()
}

#[derive(Debug, Default)]
struct Tally {
    graphs: u64,
    accepted: u64,
    refused: u64,
    /// Accepted with a bound above 1.
    with_room: u64,
    /// Bounds of which each is the least with all the room elsewhere.
    least: u64,
    too_many: u64,
}

/// Checks one graph of periodic clocks.
fn check_periodic(seed: u64, tally: &mut Tally) {
    let graph = Draw::draw(seed, false, false);
    let simulator = Simulator::new(&graph);
    tally.graphs += 1;
    match check(&graph) {
        Ok(proof) => {
            let bounds = caps(&proof);
            let peaks = match simulator.explore(&bounds, MAX_STATES) {
                Outcome::Forever(peaks) => peaks,
                Outcome::TooMany => return tally.too_many += 1,
                other => panic!("seed {seed}: {other:?} with the proven bounds {bounds:?} of {graph:#?}"),
            };
            tally.accepted += 1;
            tally.with_room += u64::from(bounds.values().any(|bound| *bound > 1));
            for (queue, peak) in simulator.queues.iter().zip(peaks) {
                assert_eq!(peak, bounds[queue], "seed {seed}: the bound of {queue:?} is not reached in {graph:#?}");
            }
            let mut all_least = true;
            for queue in simulator.queues.iter().filter(|queue| bounds[*queue] > 1) {
                let mut less = bounds.clone();
                less.insert(*queue, bounds[queue] - 1);
                let outcome = simulator.explore(&less, MAX_STATES);
                assert_eq!(outcome, Outcome::Deadlock, "seed {seed}: {queue:?} works with less in {graph:#?}");
                less.iter_mut().filter(|(other, _)| *other != queue).for_each(|(_, cap)| *cap += 8);
                match simulator.explore(&less, MAX_STATES) {
                    Outcome::Deadlock => {}
                    _ => all_least = false,
                }
            }
            tally.least += u64::from(all_least);
        }
        Err(CheckError::Refused(refusal)) => {
            tally.refused += 1;
            for room in [1, 2, 5] {
                let room = simulator.queues.iter().map(|queue| (*queue, room)).collect();
                match simulator.explore(&room, MAX_STATES) {
                    Outcome::Deadlock | Outcome::TooMany => {}
                    other => panic!("seed {seed}: refused, {refusal}, and yet {other:?} in {graph:#?}"),
                }
            }
            let n = [0, 1, 10, 1000, 1_000_000].map(|buffer| refusal.overflows_at(buffer));
            assert!(n.iter().all(Option::is_some) && n.is_sorted(), "seed {seed}: {n:?} of {refusal} in {graph:#?}");
        }
        Err(error) => panic!("seed {seed}: {error} in {graph:#?}"),
    }
}

#[test]
fn bounds_are_reached_never_exceeded_and_smallest_in_random_periodic_graphs() {
    let first = seed().wrapping_mul(1_000_000_007);
    let mut tally = Tally::default();
    for seed in 0..60 * stress() {
        check_periodic(first.wrapping_add(seed), &mut tally);
    }
    println!("{tally:?}");
    assert!(tally.with_room * 20 > tally.graphs && tally.refused * 20 > tally.graphs, "{tally:?}");
    assert!(tally.least * 2 > tally.accepted, "{tally:?}");
}

#[test]
fn accepted_graphs_never_stop_whatever_the_data_decide() {
    let first = seed().wrapping_mul(1_000_000_009);
    let (mut accepted, mut refused) = (0, 0);
    for seed in (0..60 * stress()).map(|seed| first.wrapping_add(seed)) {
        let graph = Draw::draw(seed, true, false);
        match check(&graph) {
            Ok(proof) => match Simulator::new(&graph).explore(&caps(&proof), MAX_STATES) {
                Outcome::Forever(_) => accepted += 1,
                Outcome::TooMany => {}
                other => panic!("seed {seed}: {other:?} in {graph:#?}"),
            },
            Err(CheckError::Refused(_)) => refused += 1,
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    assert!(accepted > 5 && refused > 5, "{accepted} {refused}");
}

#[test]
fn graphs_with_buffers_stop_only_when_a_buffer_is_full() {
    let first = seed().wrapping_mul(1_000_000_021);
    let (mut needed, mut full) = (0, 0);
    for seed in (0..60 * stress()).map(|seed| first.wrapping_add(seed)) {
        let graph = Draw::draw(seed, true, true);
        let Ok(proof) = check(&graph) else { continue };
        needed += u64::from(proof.edges().iter().any(|bound| bound.guarantee == Guarantee::Buffer));
        match Simulator::new(&graph).explore(&caps(&proof), MAX_STATES) {
            Outcome::Full => full += 1,
            Outcome::Forever(_) | Outcome::TooMany => {}
            Outcome::Deadlock => panic!("seed {seed}: a deadlock with no full buffer in {graph:#?}"),
        }
    }
    assert!(needed > 5 && full > 0, "{needed} {full}");
}
