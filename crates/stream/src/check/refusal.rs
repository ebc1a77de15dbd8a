//! The refusal of a fork and a join, with the facts that a user needs in order to fix the program.

use std::fmt;

use crate::clock::{Pass, Rate};
use crate::graph::{Graph, NodeId};
use crate::net::{Kind, Net};

use super::balance::{firings_for_one, thinning};
use super::cycle::{Cycle, Silent, Step};
use super::gap::Gap;

/// The reason why no buffer is enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The rates of the two paths differ.
    Rates,
    /// The data decide how many values pass on at least one path.
    Data,
    /// One path has its only value at the end of the stream.
    End,
}

/// One of the two paths of a [`Refusal`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Path {
    /// The nodes between the fork and the join.
    pub nodes: Vec<NodeId>,
    /// The input of the join at which the path ends.
    pub port: usize,
    /// The number of values that arrive at the join for each value of the fork; `None` if the data decide, or if the
    /// value comes at the end.
    pub rate: Option<Rate>,
}

/// A way out of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Way {
    /// A buffer for this many values. A run that needs more room fails.
    Buffer(u64),
    /// A second reading of the source.
    Reread,
    /// A queue that grows on disk.
    Spill,
    /// An `align`: where the slower path has no value, a marker takes its place.
    Align,
    /// A `hold`: the last value of the slower path is repeated for each value of the faster path.
    Hold,
}

/// A fork and a join between which no buffer is enough.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The reason for the refusal.
    pub cause: Cause,
    /// The node whose values enter both paths.
    pub fork: NodeId,
    /// The node that joins both paths.
    pub join: NodeId,
    /// The paths, in the order of the join's inputs.
    pub paths: [Path; 2],
    /// The number of the path, 0 or 1, whose values pile up.
    pub growing: usize,
    /// The number of values that pile up for each value of the fork. If the data decide, this is the maximum.
    pub growth: Option<Rate>,
    /// Whether both paths come straight from the fork. If so, the join can tell at which values of the fork a path has no value.
    pub same_moments: bool,
    labels: [String; 2],
    gap: Gap,
}

impl Refusal {
    pub(super) fn of(graph: &Graph, net: &Net, cycle: &Cycle) -> Self {
        let silent = cycle.silent(net);
        let rates = [0, 1].map(|path| arriving(net, cycle, path));
        let demands = [0, 1].map(|path| rates[path]?.times(firings_for_one(net, cycle.last_edge(path))?));
        let (cause, growing) = match silent {
            Some((path, Silent::Reduce)) => (Cause::End, 1 - path),
            Some((path, Silent::Branch(..))) => (Cause::Data, 1 - path),
            None => {
                let second_is_faster = demands[0].zip(demands[1]).is_some_and(|(first, second)| first.is_below(second));
                (Cause::Rates, usize::from(second_is_faster))
            }
        };
        let growth = match cause {
            Cause::Rates => rates[growing].and_then(|fast| {
                let taken = demands[1 - growing]?.over(firings_for_one(net, cycle.last_edge(growing))?)?;
                fast.minus(taken)
            }),
            Cause::Data | Cause::End => rates[growing],
        };
        let shown = [0, 1].map(|path| rates[path].filter(|_| !is_by_data(net, cycle, path)));
        let fork = cycle.shared.map_or(net.actors[cycle.fork].node, |shared| net.actors[cycle.fork].tree[shared].node);
        let join = net.actors[cycle.join].node;
        Self {
            cause,
            fork,
            join,
            paths: [0, 1].map(|path| Path {
                nodes: nodes(net, cycle, path),
                port: net.edges[cycle.last_edge(path)].port,
                rate: shown[path],
            }),
            growing,
            growth,
            same_moments: cycle.paths.iter().all(|path| path.len() == 1),
            labels: [fork, join].map(|node| graph.nodes()[node].label.clone()),
            gap: Gap::of(net, cycle, growing),
        }
    }

    /// Returns the number of the fork's values after which more than `buffer` values must wait. With [`Cause::Data`], this
    /// assumes the worst case: every value passes on the growing path, and none on the other path.
    ///
    /// The number is exact if the graph has only this fork and this join. In a larger graph, other queues may hold a few values
    /// as well, and the buffer overflows that much later.
    ///
    /// `None` means that the growth repeats after more firings than the check follows.
    #[must_use]
    pub fn overflows_at(&self, buffer: u64) -> Option<u128> {
        self.gap.overflows_at(buffer)
    }

    /// Returns the ways out for this fork and join.
    #[must_use]
    pub fn ways(&self) -> Vec<Way> {
        let mut ways = vec![Way::Buffer(100_000), Way::Reread, Way::Spill];
        if self.same_moments && self.cause != Cause::End {
            ways.extend([Way::Align, Way::Hold]);
        }
        ways
    }

    /// Returns the label of the fork.
    #[must_use]
    pub fn fork_label(&self) -> &str {
        &self.labels[0]
    }

    /// Returns the label of the join.
    #[must_use]
    pub fn join_label(&self) -> &str {
        &self.labels[1]
    }

    /// Describes the growth: `after n values of `x`, n/2 values wait`.
    #[must_use]
    pub fn growth_in_words(&self) -> String {
        let fork = &self.labels[0];
        let amount = match self.growth.map(|rate| (rate.values(), rate.of())) {
            None => "more and more".to_owned(),
            Some((1, 1)) => "n".to_owned(),
            Some((values, 1)) => format!("{values}n"),
            Some((1, of)) => format!("n/{of}"),
            Some((values, of)) => format!("{values}n/{of}"),
        };
        let most = if self.cause == Cause::Data { "up to " } else { "" };
        format!("after n values of `{fork}`, {most}{amount} values wait; no buffer is enough")
    }

    /// Describes a path's rate.
    #[must_use]
    pub fn rate_in_words(&self, path: usize) -> String {
        match (self.paths[path].rate, self.cause) {
            (Some(rate), _) => rate.to_string(),
            (None, Cause::End) => "one at the end".to_owned(),
            (None, _) => "the data decide".to_owned(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [fork, join] = &self.labels;
        let [first, second] = [0, 1].map(|path| self.rate_in_words(path));
        let against = if self.cause == Cause::Rates { "at different rates" } else { "that need not keep pace" };
        write!(
            f,
            "`{join}` joins two paths from `{fork}` {against}: {first} against {second}; {}",
            self.growth_in_words()
        )
    }
}

/// Returns the number of values that arrive at the join for each value of the fork. Data decisions count as if all
/// values passed.
fn arriving(net: &Net, cycle: &Cycle, path: usize) -> Option<Rate> {
    let mut rate = Rate::ONE;
    let steps = &cycle.paths[path];
    for (at, (edge, forward)) in steps.iter().enumerate() {
        let below = if net.edges[*edge].producer == cycle.fork { cycle.shared } else { None };
        let thinned = thinning(net, *edge, below)?;
        rate = match (forward, at + 1 == steps.len()) {
            (true, true) => rate.times(thinned)?,
            (true, false) => rate.times(thinned)?.times(firings_for_one(net, *edge)?)?,
            (false, _) => rate.over(thinned.times(firings_for_one(net, *edge)?)?)?,
        };
    }
    Some(rate)
}

/// Returns whether a path has no rate. This is so if the data decide on the path after it has separated from the other path, or
/// if its value comes at the end.
fn is_by_data(net: &Net, cycle: &Cycle, path: usize) -> bool {
    let steps = &cycle.paths[path];
    steps.iter().enumerate().any(|(at, (edge, _))| {
        let edge_ends = &net.edges[*edge];
        let tree = &net.actors[edge_ends.producer].tree;
        let counts = |branch: &usize| edge_ends.producer != cycle.fork || Some(*branch) != cycle.shared;
        let last = at + 1 == steps.len();
        net.path(*edge).take_while(counts).any(|branch| tree[branch].pass == Pass::Data)
            || !last && net.actors[edge_ends.consumer].kind == Kind::Reduce
    })
}

/// Returns the nodes of a path, without the fork and the join.
fn nodes(net: &Net, cycle: &Cycle, path: usize) -> Vec<NodeId> {
    let mut nodes = Vec::new();
    let steps: &[Step] = &cycle.paths[path];
    for (at, (edge, forward)) in steps.iter().enumerate() {
        let producer = &net.actors[net.edges[*edge].producer];
        let own = |branch: &usize| at > 0 || Some(*branch) != cycle.shared;
        let branches: Vec<usize> = net.path(*edge).take_while(own).collect();
        let mut passed: Vec<NodeId> = branches.into_iter().rev().map(|branch| producer.tree[branch].node).collect();
        if !forward {
            passed.reverse();
        }
        nodes.extend(passed);
        if at + 1 < steps.len() {
            let edge = &net.edges[*edge];
            nodes.push(net.actors[if *forward { edge.consumer } else { edge.producer }].node);
        }
    }
    nodes
}
