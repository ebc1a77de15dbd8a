//! Describes a cycle of edges as a fork, a join, and two paths between them.

use crate::clock::Pass;
use crate::net::{EdgeId, Kind, Net};

use super::diagram::Diagram;

/// An edge of a path, and whether the path follows it forwards, from its producer to its consumer.
pub(super) type Step = (EdgeId, bool);

/// See the [module](self). Each path follows its first and its last edge forwards. A path over several forks and joins may follow
/// edges in between backwards.
#[derive(Debug, Clone)]
pub(super) struct Cycle {
    /// The actor whose values enter both paths.
    pub(super) fork: usize,
    /// The last branch of the fork's tree that is on both paths.
    pub(super) shared: Option<usize>,
    /// The actor that takes from both paths. It has the largest number of all actors on the cycle.
    pub(super) join: usize,
    pub(super) paths: [Vec<Step>; 2],
}

impl Cycle {
    /// Returns the cycle of a closed walk through the diagram.
    pub(super) fn of(net: &Net, diagram: &Diagram, walk: &[(usize, bool)]) -> Self {
        let steps: Vec<Step> =
            walk.iter().filter_map(|(line, forward)| Some((diagram.lines[*line].edge?, *forward))).collect();
        // If a path may stay without values, the message is clearest with the fork directly above the place where the values
        // stop.
        let above = (0..steps.len()).filter(|at| may_be_silent(net, &steps, *at)).map(|at| fork_above(net, &steps, at));
        let mut rooted = above.map(|fork| Self::rooted(net, &steps, fork));
        if let Some(cycle) = rooted.find(|cycle| cycle.silent(net).is_some()) {
            return cycle;
        }
        let first = steps.iter().map(|step| begin(net, *step)).min().expect("a cycle has edges");
        Self::rooted(net, &steps, first)
    }

    /// Describes the cycle from one of its forks.
    fn rooted(net: &Net, steps: &[Step], fork: usize) -> Self {
        let join = steps.iter().map(|step| begin(net, *step)).max().expect("a cycle has edges");
        let place = |steps: &[Step], actor| {
            steps.iter().position(|step| begin(net, *step) == actor).expect("it is on the cycle")
        };
        let mut around = steps.to_vec();
        around.rotate_left(place(steps, fork));
        let there = place(&around, join);
        let back = around.split_off(there).into_iter().rev().map(|(edge, forward)| (edge, !forward)).collect();
        let mut paths = [around, back];
        // Order the paths by the inputs of the join in which they end.
        paths.sort_by_key(|path| path.last().map(|(edge, _)| net.edges[*edge].port));
        let [first, second] = [0, 1].map(|path| net.path(paths[path][0].0).collect::<Vec<_>>());
        let shared = first.into_iter().find(|branch| second.contains(branch));
        Self { fork, shared, join, paths }
    }

    /// Returns a path that may stay without values for any length of time, and the reason.
    pub(super) fn silent(&self, net: &Net) -> Option<(usize, Silent)> {
        (0..2).find_map(|path| {
            let steps = &self.paths[path];
            let forwards = steps.iter().take_while(|(_, forward)| *forward);
            let found = forwards.enumerate().find_map(|(at, (edge, _))| {
                let producer = net.edges[*edge].producer;
                let tree = &net.actors[producer].tree;
                let counts = |branch: &usize| producer != self.fork || Some(*branch) != self.shared;
                let decides = |branch: &usize| tree[*branch].pass == Pass::Data;
                let first = net.path(*edge).take_while(counts).filter(decides).last();
                let reduce = at + 1 < steps.len() && net.actors[net.edges[*edge].consumer].kind == Kind::Reduce;
                first.map(|branch| Silent::Branch(producer, branch)).or(reduce.then_some(Silent::Reduce))
            });
            found.map(|silent| (path, silent))
        })
    }

    /// Returns the last edge of a path.
    pub(super) fn last_edge(&self, path: usize) -> EdgeId {
        self.paths[path].last().expect("a path has edges").0
    }
}

/// The reason why a path may stay without values for any length of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Silent {
    /// The data decide at this branch of this actor.
    Branch(usize, usize),
    /// A reduce produces its value only at the end.
    Reduce,
}

/// Returns the actor at which a step begins.
fn begin(net: &Net, (edge, forward): Step) -> usize {
    if forward { net.edges[edge].producer } else { net.edges[edge].consumer }
}

fn may_be_silent(net: &Net, steps: &[Step], at: usize) -> bool {
    let edge = &net.edges[steps[at].0];
    let tree = &net.actors[edge.producer].tree;
    net.path(steps[at].0).any(|branch| tree[branch].pass == Pass::Data)
        || net.actors[edge.consumer].kind == Kind::Reduce
}

/// Returns the fork above a step's edge: the actor from which the cycle leads down to that edge.
fn fork_above(net: &Net, steps: &[Step], at: usize) -> usize {
    let forward = steps[at].1;
    let mut first = at;
    // Walks up the cycle, against the direction of the values.
    for _ in 0..steps.len() {
        let above = if forward { first + steps.len() - 1 } else { first + 1 } % steps.len();
        if steps[above].1 != forward {
            break;
        }
        first = above;
    }
    net.edges[steps[first].0].producer
}
