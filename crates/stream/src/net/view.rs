//! A part of a net, ready to be stepped: which inputs and outputs count, and where each actor's clock begins.

use crate::clock::Pass;
use crate::graph::Operator;

use super::contract::{EdgeId, Net};

/// The phases of an actor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Source,
    /// Takes one of each input and gives one.
    Zip,
    /// Takes from the input of this turn and gives.
    Merge(Vec<usize>),
    /// Takes one, and gives it this number of times.
    Repeat(u64),
    /// Gives this number without taking, then one for each.
    Prefix(u64),
    /// Takes, and gives one at the end of its input.
    Reduce,
    Sink,
}

impl Kind {
    pub(super) fn of(operator: &Operator) -> Self {
        match operator {
            Operator::Source => Self::Source,
            Operator::Zip => Self::Zip,
            Operator::Merge(turns) => Self::Merge(turns.clone()),
            Operator::Repeat(copies) => Self::Repeat(*copies),
            Operator::Prefix(values) => Self::Prefix(*values),
            Operator::Reduce => Self::Reduce,
            Operator::Sink => Self::Sink,
            _ => unreachable!("only actors have phases"),
        }
    }

    /// The phase after this one.
    pub(super) fn after(&self, phase: u64) -> u64 {
        match self {
            Self::Merge(turns) => (phase + 1) % turns.len() as u64,
            Self::Repeat(copies) => (phase + 1) % copies,
            Self::Prefix(values) => (phase + 1).min(*values),
            Self::Source | Self::Zip | Self::Reduce | Self::Sink => phase,
        }
    }
}

/// An actor as the view shows it.
#[derive(Debug, Clone)]
pub(crate) struct ActorView {
    pub(crate) kind: Kind,
    /// The edge of each input; `None` for one outside of the view, which always has a value.
    pub(crate) inputs: Vec<Option<EdgeId>>,
    /// The branches that lead to outputs of the view, parents first: the parent's place in this list, and the pass.
    pub(crate) tree: Vec<(Option<usize>, Pass)>,
    /// The outputs with the branch, in this list, that leads to each.
    pub(crate) outputs: Vec<(EdgeId, Option<usize>)>,
}

/// Actors and the edges between them.
#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) actors: Vec<ActorView>,
    /// The producer and the consumer of each edge of the net.
    pub(crate) ends: Vec<(usize, usize)>,
}

impl View {
    /// The whole net, with all branches of its trees: those that lead to no queue hold values for others.
    pub(crate) fn whole(net: &Net) -> Self {
        Self::cut(net, |_| true, |_, _| true, |_, _| None)
    }

    /// The edges that are `inside`, where `replaced` says how the data decide at a branch of an actor; where it says
    /// nothing, the pass stays. All edges of an actor inside count from the same decision by the data, if from one.
    pub(crate) fn new(
        net: &Net,
        inside: impl Fn(EdgeId) -> bool,
        replaced: impl Fn(usize, usize) -> Option<Pass>,
    ) -> Self {
        Self::cut(net, inside, |_, _| false, replaced)
    }

    fn cut(
        net: &Net,
        inside: impl Fn(EdgeId) -> bool,
        kept: impl Fn(usize, usize) -> bool,
        replaced: impl Fn(usize, usize) -> Option<Pass>,
    ) -> Self {
        let mut actors = Vec::new();
        for (id, actor) in net.actors.iter().enumerate() {
            let outputs: Vec<EdgeId> = actor.outputs.iter().copied().filter(|edge| inside(*edge)).collect();
            let mut wanted: Vec<bool> = (0..actor.tree.len()).map(|branch| kept(id, branch)).collect();
            for branch in outputs.iter().flat_map(|edge| net.path(*edge)) {
                wanted[branch] = true;
            }
            let mut places = vec![None; actor.tree.len()];
            let mut tree = Vec::new();
            for (at, branch) in actor.tree.iter().enumerate().filter(|(at, _)| wanted[*at]) {
                places[at] = Some(tree.len());
                let pass = replaced(id, at).unwrap_or_else(|| branch.pass.clone());
                tree.push((branch.parent.and_then(|parent| places[parent]), pass));
            }
            let outputs = outputs.iter().map(|edge| (*edge, net.edges[*edge].leaf.and_then(|leaf| places[leaf])));
            actors.push(ActorView {
                kind: actor.kind.clone(),
                inputs: actor.inputs.iter().map(|edge| inside(*edge).then_some(*edge)).collect(),
                outputs: outputs.collect(),
                tree,
            });
        }
        let ends = net.edges.iter().map(|edge| (edge.producer, edge.consumer)).collect();
        Self { actors, ends }
    }

    /// The edges within one part of the net, whose actors count from the decision `base` by the data: only values that it
    /// lets through count.
    pub(crate) fn block(net: &Net, inside: impl Fn(EdgeId) -> bool, base: impl Fn(usize) -> Option<usize>) -> Self {
        Self::new(net, inside, |actor, branch| {
            let base = base(actor)?;
            let above = std::iter::successors(Some(base), |branch| net.actors[actor].tree[*branch].parent);
            above.into_iter().any(|counted| counted == branch).then_some(Pass::ALL)
        })
    }
}
