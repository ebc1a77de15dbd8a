//! The checker finds the smallest bounds for the queues of a graph, or the reason why there are none.
//!
//! # The net
//!
//! A graph becomes a net of *actors* with queues between them. Sources, zips, merges, repeats, prefixes, reduces and
//! sinks are actors. All other operators produce at most one value for each value they take, and produce it at once.
//! They need no queue, and belong to the *tree* of the actor whose values they process. A queue, or *edge*, leads from
//! an actor down a path of its tree to an input of another actor. A firing takes at most one value from each input and
//! produces at most one, which enters every queue whose path it passes. A firing is one step, possible when the inputs
//! have their values and those queues have room.
//!
//! # The bound
//!
//! *Capacities* set the number of values that each edge can hold; they are *enough* if some order of firing never
//! stops. Each actor takes from inputs and waits for room in an order that depends only on its own phase, and the room
//! in a queue is itself a stream, from the queue's reader to its writer. The net with its capacities is therefore a
//! Kahn network (1974), and three facts follow:
//!
//! 1. The values of every stream are the same in every order of firing and for all capacities that are enough.
//! 2. If one order never stops, every order can be continued: no choice leads into a deadlock. Capacities are therefore
//!    enough if and only if *one* run, by any rule, never stops.
//! 3. More capacity never hurts.
//!
//! By fact 3, the set of sufficient capacities is closed upwards. Each edge has a *least* capacity, with which the net
//! runs forever if all other edges are unlimited. If all least capacities together are enough, they are the bounds, and
//! no edge can ever do with less.
//!
//! Otherwise edges compete. In `x = lines(); zip(prefix(x, 0, 0), x)`, the join is two values behind, and these wait
//! either in front of the prefix or behind it. The least capacity of both queues is 1, but one of them needs 2. No
//! bounds of such a net are least for every edge. The bounds are then those with the smallest sum in bytes. A deadlock
//! is a cycle of waits, and recurs as long as none of its full edges gets more room. The search therefore begins with the
//! least capacities, enlarges one full edge of the deadlock at a time, and always continues from the smallest sum. That
//! takes exponential time in the worst case, since the problem is NP-complete (Murthy, 1996). After 2^18 firings, the
//! search ends for this block, whose bounds are then minimal in a weaker sense: no single bound can be reduced while the
//! others stay.
//!
//! In all cases a run reaches each bound, since otherwise a smaller bound would be enough.
//!
//! # Blocks
//!
//! The net's diagram has a point for each clock and a line for each edge. The clocks are the actors and the data
//! decisions in trees, each linked to the clock that it thins. The blocks of the diagram are the maximal sets of lines
//! of which any two lie on a common cycle. A line on no cycle needs a capacity of 1, and every other block is sized
//! on its own:
//!
//! *If each block on its own runs forever while everything outside it always has values and room, then the net runs
//! forever.* Suppose that no actor can fire. Each block on its own could fire some actor, which is ready as far as this
//! block is concerned; let the block pick that actor. Blocks and the actors they share form a forest, since a cycle of
//! blocks would be one block. If `k` is the number of blocks of an actor, the sum of `k - 1` over all actors is therefore
//! less than the number of blocks. Hence some actor is picked by all of its blocks, and can fire after all. A data
//! decision demands room as if the value passed, so the argument is valid for all data.
//!
//! If the data decide about some lines of a block but not about all, the counts of its streams are unrelated. Such a
//! block is refused: when the data decide against one path, values pile up on the other. Two paths from *one* decision
//! have the same clock. A reduce takes all values and produces one at the end, so its input and its output are two points
//! without a line. A graph is also refused if the input of a reduce can only end after the reduce's own result is taken.
//!
//! # Rates and capacities
//!
//! In a block without data decisions, all clocks are ultimately periodic. Each edge relates the rates of its ends. If
//! the relations around a cycle contradict each other, one path gets ahead of the other by a fixed share of the fork's
//! values and outgrows every buffer. The block is refused with that cycle. If the relations agree, a run on demand
//! with unlimited queues holds a bounded number of values, because the rates bound its firings above and below. Its
//! state therefore recurs, and the greatest lengths of its queues so far are enough. Smaller capacities are tried by
//! running until the state recurs or nothing can fire. With periodic clocks, every graph that has bounds is accepted if
//! its period has at most [`MAX_FIRINGS`] firings; a longer period is a separate error.
//!
//! # Buffers and spills
//!
//! If an edge has a `buffer` or `spill` that the check does not need, the edge is treated like any other. Otherwise the
//! rest of the block must be connected and balanced, so that it has rates, and the edge must get at least as many
//! values as its reader takes; its queue then has no bound. The remaining edges are sized as before, except that a
//! state recurs when the unbounded queues hold at least as many values as before: more values never cause a deadlock,
//! so the argument remains valid. If the data decide, such an edge must lead straight from the fork to the join, and
//! have a value whenever the other edges have one.

mod balance;
mod blocks;
mod capacity;
mod cycle;
mod diagram;
mod gap;
mod proof;
mod refusal;

use crate::graph::{Graph, NodeId};
use crate::net::{Elastic, Net};

pub use self::capacity::MAX_FIRINGS;
pub use self::proof::{Bound, Guarantee, Proof};
pub use self::refusal::{Cause, Path, Refusal, Way};

/// The reason why a graph has no bounds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// No buffer is enough between a fork and a join.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// The moments of the inputs of a hold or an align cannot be compared.
    #[error(
        "the inputs of `{label}` come from `{}` and `{}`; expected one origin, without zips, merges, repeats or prefixes \
         in between, so that both have a value or none at each moment of it", from[0], from[1]
    )]
    Apart {
        /// The hold or the align.
        node: NodeId,
        /// Its label.
        label: String,
        /// The labels of the origins.
        from: [String; 2],
    },
    /// The clocks repeat only after more firings than the check follows.
    #[error(
        "the clocks that meet at `{label}` repeat after more than {MAX_FIRINGS} firings, which is the limit; \
         expected smaller numbers in every, skip, window, repeat and prefix, or numbers that divide each other"
    )]
    PeriodTooLong {
        /// The join.
        join: NodeId,
        /// Its label.
        label: String,
    },
    /// The numerator or denominator of a rate exceeds 128 bits.
    #[error(
        "the rate at which `{label}` gets values is a fraction of numbers beyond 128 bits; expected smaller numbers"
    )]
    RateTooLarge {
        /// The node that gets the values.
        node: NodeId,
        /// Its label.
        label: String,
    },
}

/// Proves the smallest bounds for the queues of a graph.
///
/// The module docs define the bound and prove it. The time of the check is proportional to the size of the graph and, for
/// each fork that joins again, to the length of its period times the number of queues that hold more than one value.
///
/// # Errors
/// See [`CheckError`]. If there are several refusals, returns the one whose join comes first.
pub fn check(graph: &Graph) -> Result<Proof, CheckError> {
    solve(graph).map(|(_, proof)| proof)
}

/// Returns the net with the bound of each edge.
pub(crate) fn solve(graph: &Graph) -> Result<(Net, Proof), CheckError> {
    let label = |node: NodeId| graph.nodes()[node].label.clone();
    let net = Net::of(graph).map_err(|apart| CheckError::Apart {
        node: apart.node,
        label: label(apart.node),
        from: apart.from.map(label),
    })?;
    let mut caps = blocks::capacities(graph, &net)?;
    for (edge, cap) in net.edges.iter().zip(&mut caps) {
        if let Some(Elastic::Buffer(values)) = edge.elastic {
            *cap = (*cap).max(values);
        }
    }
    let proof = Proof::of(graph, &net, &caps);
    Ok((net, proof))
}
