//! A simulator of all orders of firing. It follows the definition directly, and shares no code with the checker except for the
//! graph.

use std::collections::{HashMap, HashSet, VecDeque};

use millstream_stream::clock::Pass;
use millstream_stream::graph::{Graph, NodeId, Operator};

/// A queue: the node whose values enter it, the node that takes them, and the input.
pub(crate) type Queue = (NodeId, NodeId, usize);

/// A simulator of one graph.
pub(crate) struct Simulator<'a> {
    graph: &'a Graph,
    pub(crate) queues: Vec<Queue>,
    /// For each node, the actor whose values it processes.
    actor: Vec<NodeId>,
    elastic: Vec<bool>,
}

/// The lengths of the queues, then a number for each node: its phase, or its position in its word.
type State = Vec<u16>;

/// The result after every order of firing has been followed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// No order stops. For each queue, the maximum number of values in any order.
    Forever(Vec<u64>),
    /// Some order stops because a buffer is full.
    Full,
    /// Some order stops.
    Deadlock,
    /// There are more states than the simulator follows.
    TooMany,
}

fn is_actor(operator: &Operator) -> bool {
    use Operator::{Merge, Prefix, Reduce, Repeat, Sink, Source, Zip};
    matches!(operator, Source | Zip | Merge(_) | Prefix(_) | Reduce | Repeat(_) | Sink)
}

impl<'a> Simulator<'a> {
    /// Creates a simulator of a graph whose nodes all reach the sink.
    pub(crate) fn new(graph: &'a Graph) -> Self {
        let mut actor = Vec::new();
        let mut queues = Vec::new();
        let mut elastic_above: Vec<bool> = Vec::new();
        let mut elastic = Vec::new();
        for (id, node) in graph.nodes().iter().enumerate() {
            if is_actor(&node.operator) {
                actor.push(id);
                elastic_above.push(false);
                for (port, input) in node.inputs.iter().enumerate() {
                    queues.push((*input, id, port));
                    elastic.push(elastic_above[*input]);
                }
            } else {
                let above = *node.inputs.last().unwrap();
                actor.push(actor[above]);
                let own = matches!(node.operator, Operator::Buffer(_) | Operator::Spill);
                elastic_above.push(own || elastic_above[above]);
            }
        }
        Self { graph, queues, actor, elastic }
    }

    /// From the start, follows every order of firing, and at each data decision both outcomes.
    pub(crate) fn explore(&self, caps: &HashMap<Queue, u64>, most: usize) -> Outcome {
        let caps: Vec<u64> = self.queues.iter().map(|queue| caps[queue]).collect();
        let mut start: State = vec![0; self.queues.len() + self.graph.nodes().len()];
        for (id, node) in self.graph.nodes().iter().enumerate() {
            if let Operator::Pass(Pass::Every { first, .. }) = &node.operator {
                start[self.queues.len() + id] = *first as u16;
            }
        }
        let mut seen = HashSet::from([start.clone()]);
        let mut open = VecDeque::from([start]);
        let mut peaks = vec![0; caps.len()];
        let mut full = false;
        while let Some(state) = open.pop_front() {
            let mut stopped = true;
            for (id, node) in self.graph.nodes().iter().enumerate().filter(|(_, node)| is_actor(&node.operator)) {
                let Some(after) = self.fire(&state, id, &node.operator, &caps) else { continue };
                stopped = false;
                for next in after {
                    for (queue, peak) in peaks.iter_mut().enumerate() {
                        *peak = (*peak).max(u64::from(next[queue]));
                    }
                    if seen.insert(next.clone()) {
                        open.push_back(next);
                    }
                }
            }
            if stopped {
                if !(0..caps.len()).any(|queue| self.elastic[queue] && u64::from(state[queue]) >= caps[queue]) {
                    return Outcome::Deadlock;
                }
                full = true;
            }
            if seen.len() > most {
                return Outcome::TooMany;
            }
        }
        if full { Outcome::Full } else { Outcome::Forever(peaks) }
    }

    /// Returns the states after a firing, one for each decision of the data; `None` if the actor cannot fire.
    fn fire(&self, state: &State, id: NodeId, operator: &Operator, caps: &[u64]) -> Option<Vec<State>> {
        let at = self.queues.len() + id;
        let phase = state[at];
        let mut next = state.clone();
        let ports: Vec<usize> = match operator {
            Operator::Source => vec![],
            Operator::Merge(turns) => vec![turns[usize::from(phase)]],
            Operator::Repeat(_) if phase > 0 => vec![],
            Operator::Prefix(values) if u64::from(phase) < *values => vec![],
            _ => (0..self.graph.nodes()[id].inputs.len()).collect(),
        };
        for (queue, (_, to, port)) in self.queues.iter().enumerate() {
            if *to == id && ports.contains(port) {
                next[queue] = next[queue].checked_sub(1)?;
            }
        }
        next[at] = match operator {
            Operator::Merge(turns) => (phase + 1) % turns.len() as u16,
            Operator::Repeat(copies) => (phase + 1) % *copies as u16,
            Operator::Prefix(values) => (phase + 1).min(*values as u16),
            _ => 0,
        };
        if *operator == Operator::Sink {
            return Some(vec![next]);
        }
        // A firing needs room as if every value passed.
        let present = self.pass_down(&mut next.clone(), id, |_| true);
        let lacks_room =
            |(queue, (from, _, _)): (usize, &Queue)| present[*from] && u64::from(state[queue]) >= caps[queue];
        if self.queues.iter().enumerate().any(lacks_room) {
            return None;
        }
        let filters: Vec<NodeId> = (0..self.graph.nodes().len())
            .filter(|node| self.actor[*node] == id && self.graph.nodes()[*node].operator == Operator::Pass(Pass::Data))
            .collect();
        let decisions = 0..1_usize << filters.len();
        Some(
            decisions
                .map(|decision| {
                    let mut after = next.clone();
                    let passes = |node| {
                        filters.iter().position(|filter| *filter == node).is_none_or(|bit| decision >> bit & 1 == 1)
                    };
                    let present = self.pass_down(&mut after, id, passes);
                    for (queue, (from, _, _)) in self.queues.iter().enumerate() {
                        after[queue] += u16::from(present[*from]);
                    }
                    after
                })
                .collect(),
        )
    }

    /// Passes a value of an actor down its tree, and returns which nodes then have a value.
    fn pass_down(&self, state: &mut State, id: NodeId, decide: impl Fn(NodeId) -> bool) -> Vec<bool> {
        let mut present = vec![false; self.graph.nodes().len()];
        present[id] = true;
        for (node, content) in self.graph.nodes().iter().enumerate().skip(id + 1) {
            if is_actor(&content.operator) || self.actor[node] != id {
                continue;
            }
            if !present[*content.inputs.last().unwrap()] {
                continue;
            }
            let place = &mut state[self.queues.len() + node];
            present[node] = match &content.operator {
                Operator::Pass(Pass::Every { step, .. }) => {
                    let through = *place == 0;
                    *place = if through { *step as u16 - 1 } else { *place - 1 };
                    through
                }
                Operator::Pass(Pass::Word { prefix, cycle }) => {
                    let at = usize::from(*place);
                    *place = if at + 1 == prefix.len() + cycle.len() { prefix.len() as u16 } else { *place + 1 };
                    *prefix.iter().chain(cycle).nth(at).unwrap()
                }
                Operator::Pass(Pass::Data) => decide(node),
                _ => true,
            };
        }
        present
    }
}
