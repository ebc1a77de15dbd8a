//! A view: a part of a net that can run on its own. It selects the inputs and outputs of each actor that belong to this part, and
//! defines the actor's clock.

use crate::clock::Pass;
use crate::graph::Operator;

use super::contract::{EdgeId, Net};

/// The kind of an actor: what it takes and produces in each of its phases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Source,
    /// Takes one value from each input and produces one.
    Zip,
    /// In each phase, takes a value from the input that the pattern names for this phase, and produces the value.
    Merge(Vec<usize>),
    /// Takes a value, and produces it this many times, once in each phase.
    Repeat(u64),
    /// Produces this many values without taking any, then one for each value taken.
    Prefix(u64),
    /// Takes all values, and produces one at the end of its input.
    Reduce,
    Sink,
}

/// The inputs from which an actor takes a value in a firing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    Nothing,
    FromAll,
    From(usize),
}

impl Takes {
    /// Returns the input, if the actor takes from one input at a time.
    pub(crate) fn port(self) -> Option<usize> {
        match self {
            Self::From(port) => Some(port),
            Self::Nothing | Self::FromAll => None,
        }
    }

    /// Returns these inputs.
    #[inline]
    pub(super) fn of(self, inputs: &[Option<EdgeId>]) -> &[Option<EdgeId>] {
        match self {
            Self::Nothing => &[],
            Self::FromAll => inputs,
            Self::From(port) => &inputs[port..=port],
        }
    }
}

impl Kind {
    /// Returns the inputs from which the actor takes in this phase.
    #[inline]
    pub(super) fn takes(&self, phase: u64) -> Takes {
        let all_if = |takes| if takes { Takes::FromAll } else { Takes::Nothing };
        match self {
            Self::Source => Takes::Nothing,
            Self::Zip | Self::Reduce | Self::Sink => Takes::FromAll,
            Self::Merge(turns) => Takes::From(turns[phase as usize]),
            Self::Repeat(_) => all_if(phase == 0),
            Self::Prefix(values) => all_if(phase == *values),
        }
    }

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

    /// Returns the phase after this one.
    #[inline]
    pub(super) fn after(&self, phase: u64) -> u64 {
        match self {
            Self::Merge(turns) if phase + 1 == turns.len() as u64 => 0,
            Self::Repeat(copies) if phase + 1 == *copies => 0,
            Self::Merge(_) | Self::Repeat(_) => phase + 1,
            Self::Prefix(values) => (phase + 1).min(*values),
            Self::Source | Self::Zip | Self::Reduce | Self::Sink => phase,
        }
    }
}

/// An actor in the view.
#[derive(Debug, Clone)]
pub(crate) struct ActorView {
    pub(crate) kind: Kind,
    /// The edge of each input; `None` for an input outside the view. Such an input always has a value.
    pub(crate) inputs: Vec<Option<EdgeId>>,
    /// The branches that lead to outputs of the view, parents first. For each: the index of its parent in this list, and its
    /// pass.
    pub(crate) tree: Vec<(Option<usize>, Pass)>,
    /// The outputs, each with the index of the branch that leads to it. Outputs with a buffer come last, so that an actor waits
    /// for room in a buffer only if all other queues have room.
    pub(crate) outputs: Vec<(EdgeId, Option<usize>)>,
}

/// A view: some edges of a net and the actors at their ends. They have new numbers, in the order of the net.
#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) actors: Vec<ActorView>,
    /// The producer and the consumer of each edge.
    pub(crate) ends: Vec<(usize, usize)>,
    /// Each actor's number in the net.
    of_net: Vec<usize>,
}

impl View {
    /// Returns a view of the whole net, with all branches of its trees: even a branch that leads to no queue may store values for
    /// another branch. The numbers of actors are the same as in the net, because every actor of a net has an edge.
    pub(crate) fn whole(net: &Net) -> Self {
        let edges: Vec<EdgeId> = (0..net.edges.len()).collect();
        Self::cut(net, &edges, |_| true, |_, _| None)
    }

    /// Returns a view of these edges. `replaced` may replace the pass at a branch of an actor; where it returns `None`,
    /// the pass stays.
    pub(crate) fn new(net: &Net, edges: &[EdgeId], replaced: impl Fn(usize, usize) -> Option<Pass>) -> Self {
        Self::cut(net, edges, |_| false, replaced)
    }

    /// Returns a view of a block's edges. `base` returns the data decision that is an actor's clock: only the values that
    /// pass this decision count.
    pub(crate) fn block(net: &Net, edges: &[EdgeId], base: impl Fn(usize) -> Option<usize>) -> Self {
        Self::new(net, edges, |actor, branch| {
            let base = base(actor)?;
            let mut above = std::iter::successors(Some(base), |branch| net.actors[actor].tree[*branch].parent);
            above.any(|counted| counted == branch).then_some(Pass::ALL)
        })
    }

    /// Returns the number that an actor of the net has in the view.
    pub(crate) fn actor(&self, of_net: usize) -> usize {
        self.of_net.binary_search(&of_net).expect("the actor has an edge of the view")
    }

    fn cut(
        net: &Net,
        edges: &[EdgeId],
        keeps_branch: impl Fn(usize) -> bool,
        replaced: impl Fn(usize, usize) -> Option<Pass>,
    ) -> Self {
        let ends = |edge: EdgeId| [net.edges[edge].producer, net.edges[edge].consumer];
        let mut of_net: Vec<usize> = edges.iter().flat_map(|edge| ends(*edge)).collect();
        of_net.sort_unstable();
        of_net.dedup();
        let mut view = Self { actors: Vec::new(), ends: Vec::new(), of_net };
        view.ends = edges.iter().map(|edge| ends(*edge).map(|actor| view.actor(actor)).into()).collect();
        for id in &view.of_net {
            let actor = &net.actors[*id];
            let mut shown = ActorView {
                kind: actor.kind.clone(),
                inputs: vec![None; actor.inputs.len()],
                tree: Vec::new(),
                outputs: Vec::new(),
            };
            let mut places = vec![None; actor.tree.len()];
            let mut wanted: Vec<bool> = (0..actor.tree.len()).map(&keeps_branch).collect();
            let own = edges.iter().filter(|edge| net.edges[**edge].producer == *id);
            for branch in own.flat_map(|edge| net.path(*edge)) {
                wanted[branch] = true;
            }
            for (at, branch) in actor.tree.iter().enumerate().filter(|(at, _)| wanted[*at]) {
                places[at] = Some(shown.tree.len());
                let pass = replaced(*id, at).unwrap_or_else(|| branch.pass.clone());
                shown.tree.push((branch.parent.and_then(|parent| places[parent]), pass));
            }
            for (number, edge) in edges.iter().enumerate() {
                let edge = &net.edges[*edge];
                if edge.producer == *id {
                    shown.outputs.push((number, edge.leaf.and_then(|leaf| places[leaf])));
                }
                if edge.consumer == *id {
                    shown.inputs[edge.port] = Some(number);
                }
            }
            shown.outputs.sort_by_key(|(number, _)| net.edges[edges[*number]].elastic.is_some());
            view.actors.push(shown);
        }
        view
    }
}
