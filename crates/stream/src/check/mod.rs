//! The checker finds the smallest bounds for the queues of a graph, or the reason why there are none.
//!
//! # The net
//!
//! A graph becomes a net of *actors* with queues between them. Sources, zips, merges, repeats, prefixes, reduces and sinks are
//! actors. All other operators produce at most one value for each value they take, and produce it immediately. They need no
//! queue, and belong to the *tree* of the actor whose values they process. A queue, or *edge*, leads from an actor down a path
//! of its tree to an input of another actor.
//!
//! When an actor *fires*, it takes at most one value from each input and produces at most one value. This value enters every
//! queue whose path lets it pass. A firing is one step: it is possible when the inputs have the values that it takes and these
//! queues have room.
//!
//! # The bound
//!
//! The *capacity* of an edge is the number of values that it can hold. Capacities are *enough* if some order of firing never
//! stops. Each actor takes from its inputs and waits for room in an order that depends only on its own phase. The free room of a
//! queue can be seen as a stream from the queue's reader to its writer. The net with its capacities is therefore a Kahn network
//! (1974), and three facts follow:
//!
//! 1. The values of every stream are the same in every order of firing and for all capacities that are enough.
//! 2. If one order never stops, no choice leads into a deadlock: every order can be continued. Hence a single run, with any rule
//!    for the order, decides whether capacities are enough.
//! 3. More capacity never hurts.
//!
//! Each edge has a *least* capacity: the smallest with which the net runs forever if all other edges are unlimited. By fact 3,
//! every larger capacity is enough as well. If all least capacities together are enough, they are the bounds, and no edge can
//! ever have a smaller one.
//!
//! Otherwise edges compete. In `x = lines(); zip(prefix(x, 0, 0), x)`, two values have to wait, either in front of the prefix or
//! behind it. The least capacity of each of these two queues is 1, but one of them must have 2. No choice of bounds for such a
//! net is least for every edge. The bounds are then those with the smallest sum in bytes.
//!
//! The search for them uses the fact that a deadlock is a cycle of waits, which recurs as long as none of its full edges gets
//! more room. It begins with the least capacities, enlarges one full edge of the deadlock at a time, and always continues from
//! the smallest sum. In the worst case this takes exponential time, since the problem is NP-complete (Murthy, 1996). After 2^18
//! firings, the checker gives up the search for this block. Its bounds are then minimal in a weaker sense: no single bound can
//! be reduced while the others stay.
//!
//! In all cases, each queue reaches its bound at some point of a run, since otherwise a smaller bound would be enough.
//!
//! # Blocks
//!
//! The net's diagram has a point for each clock and a line for each edge. The clocks are the actors and the data decisions in
//! trees. A further line links each data decision to the clock whose values it selects from. A *block* is a maximal set of lines
//! in which any two lines lie on a common cycle. An edge on no cycle needs a capacity of 1, and every other block is sized on its
//! own:
//!
//! *If each block on its own runs forever while everything outside it always has values and room, then the net runs forever.* The
//! proof is by contradiction. Suppose that no actor of the net can fire. In each block there is an actor that could fire if only
//! this block existed; let the block pick one such actor. The blocks and the actors that they share form a forest, because blocks
//! around a cycle would be a single block. Let `k` be the number of blocks that contain an actor. In a forest, the sum of `k - 1`
//! over all actors is less than the number of blocks. If every actor lacked the pick of at least one of its blocks, an actor in
//! `k` blocks would have at most `k - 1` picks, so there would be fewer picks than blocks. But each block picks an actor. Hence
//! all blocks of some actor have picked it, so it can fire. A data decision demands room as if the value passed, so the argument
//! is valid for all data.
//!
//! If the data decide about some lines of a block but not about all, the numbers of values in its streams are unrelated. Such a
//! block is refused, because values pile up on one path while the data let nothing pass on the other. Two paths that come from
//! *one* decision have the same clock, so they are not refused. A reduce takes all values and produces one at the end, so its
//! input and its output are two points without a line between them. A graph is also refused if the input of a reduce can end only
//! after the reduce's own result is taken.
//!
//! # Rates and capacities
//!
//! In a block without data decisions, all clocks are ultimately periodic. Each edge relates the rates of its ends. If the
//! relations around a cycle contradict each other, one path gets ever further ahead of the other and outgrows every buffer. The
//! block is refused, and the refusal describes that cycle. If the relations agree, the check runs the block on demand with
//! unlimited queues. The rates bound the number of firings of each actor from above and below, so the queues hold a bounded
//! number of values, and the state of the run recurs. The greatest lengths of the queues until then are capacities that are
//! enough. Smaller capacities are tried in further runs, each until the state recurs or no actor can fire. With periodic
//! clocks, every graph that has bounds is accepted if its period has at most [`MAX_FIRINGS`] firings; a longer period is a
//! separate error.
//!
//! # Buffers and spills
//!
//! If the block has bounds without a `buffer` or `spill` on one of its edges, that edge is treated like any other. Otherwise, the
//! queue of this edge has no bound, and two conditions must be met. Without the edge, the block must be connected and balanced,
//! so that it has rates. And the edge must get values at least as fast as its reader takes them.
//!
//! The other edges are sized as above, with one difference: a state counts as recurring even if the unbounded queues hold more
//! values than before. More values never cause a deadlock, so the argument remains valid. If the data decide, such an edge must
//! lead straight from the fork to the join, and have a value whenever the other edges have one.

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
    /// The values of the two inputs of a hold or an align have no defined order in time, because they do not come from one
    /// source.
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
        /// The node at whose input the rate is too large.
        node: NodeId,
        /// Its label.
        label: String,
    },
}

/// Proves the smallest bounds for the queues of a graph.
///
/// The module docs define the bounds and prove that they are enough. The time of the check is proportional to the size of the
/// graph. In addition, each fork that joins again takes time proportional to the length of its period times the number of queues
/// that hold more than one value.
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
