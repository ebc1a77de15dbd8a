//! The checker: the smallest bound for every queue of a graph, or the reason why there is none.
//!
//! # The net
//!
//! A graph becomes a net of *actors* with queues between them. Sources, zips, merges, repeats, prefixes, reduces and sinks
//! are actors. All other operators give at most one value for each that they take, at once; they need no queue, and belong
//! to the *tree* of the actor on whose values they work. A queue, or *edge*, leads from an actor down a path of its tree to
//! an input of another actor. A firing takes at most one value from each input and gives at most one, which enters every
//! queue to which a path lets it through: all in one step, when the inputs have their values and those queues have room.
//!
//! # The bound
//!
//! *Capacities* give each edge a number of values that it can hold; they are *enough* if some order of firing goes on
//! forever. Each actor takes from inputs and waits for room in an order that depends on its own phase alone, and the room
//! in a queue is itself a stream, which its reader gives to its writer. So the net with its capacities is a Kahn network
//! (1974), and three facts follow:
//!
//! 1. The values of every stream are the same in every order of firing and for all capacities that are enough.
//! 2. If one order goes on forever, every order can be continued: no choice leads into a deadlock. So capacities are enough
//!    if and only if *one* run, by any rule, never stops.
//! 3. More capacity never hurts.
//!
//! By 3 the sets of capacities that are enough are closed upwards, and what can be asked for is a smallest one. For each
//! edge there is a *least* capacity, with which the net runs when all others are without end. If all least capacities
//! together are enough, no smaller capacity of any edge is, under any circumstances, and they are the bounds. Otherwise
//! edges compete: one is smaller when another is larger. Then the bounds are enough together, and no single one of them can
//! be made smaller while the others stay. Either way each bound is reached, since without reaching it the smaller one would
//! do.
//!
//! # Blocks
//!
//! The net's diagram has a point for each clock (each actor; each decision by the data in a tree, linked to the clock
//! that it thins) and a line for each edge. Its blocks are the largest sets of lines any two of which lie on a common
//! circle. A line on no circle needs a capacity of 1, and each other block is sized by itself:
//!
//! *If every block by itself runs forever when all else always gives and takes, the net does.* Suppose that no actor can
//! fire. Each block by itself could fire some actor of its own, so it has one that is ready as far as this block is
//! concerned; pick it for the block. Blocks and the actors that they share form a forest, since a circle of them would be
//! one block; so with `k` blocks at an actor, the sum of `k - 1` over all actors is less than the number of blocks. Hence
//! some actor is picked by all the blocks that it belongs to, and it can fire after all. A decision by the data asks for
//! room as if the value passed, so the argument holds whatever the data are.
//!
//! A block in which the data decide about some of its lines and not about all has streams whose counts have no relation,
//! and is refused: when the data decide against one path, the other piles up. Two paths from *one* decision have the same
//! clock. A reduce takes all and gives at the end, so its input and its output are two points without a line; a stream that
//! needs a reduce whose end needs that stream is refused as well.
//!
//! # Rates and capacities
//!
//! In a block without decisions by the data all clocks are ultimately periodic. Each edge relates the rates of its ends. If
//! the relations around a circle contradict each other, one path gets ahead of the other by a fixed share of the values of
//! the fork, and outgrows every buffer: the block is refused, with that circle. If they agree, the run on demand with queues
//! without end holds a bounded number of values, because what it fires is bounded above and below by the rates; so its state
//! comes back, and the most that its queues held is enough. Smaller capacities are tried by running until the state
//! comes back or nothing fires. So for periodic clocks nothing bounded is refused, up to [`MAX_FIRINGS`] firings; a
//! longer period is an error of its own.
//!
//! # Buffers and spills
//!
//! An edge with a `buffer` or a `spill` that the check does not need is treated as any other. Otherwise the rest of the
//! block must be connected and balanced, so that it has rates, and the edge must get at least as many values as its reader
//! takes; its queue then has no bound. The remaining edges are sized as before, where the state comes back with at least as
//! many values in the unbounded queues: with more values no run gets stuck, so the argument repeats. Where the data decide,
//! such an edge must lead straight from the fork to the join, and have a value whenever the other edges have one.

mod balance;
mod blocks;
mod capacity;
mod circle;
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
pub enum CheckError {
    /// A fork and a join between which no buffer is enough.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// A hold or an align has inputs whose moments cannot be compared.
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
    /// The clocks repeat after too many firings to be followed.
    #[error(
        "the clocks that meet at `{label}` repeat after more than {MAX_FIRINGS} firings, the most that are followed; \
         expected smaller numbers in every, skip, window, repeat and prefix, or such that divide each other"
    )]
    PeriodTooLong {
        /// The join.
        join: NodeId,
        /// Its label.
        label: String,
    },
    /// A rate is a fraction of numbers beyond 128 bits.
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

/// Proves the smallest bound for every queue of a graph.
///
/// The module docs define the bound and prove it. The check takes time in proportion to the graph and, for each fork
/// that joins again, to the length of its period times the queues of more than one value.
///
/// # Errors
/// See [`CheckError`]. Of several refusals, the one whose join comes first.
pub fn check(graph: &Graph) -> Result<Proof, CheckError> {
    solve(graph).map(|(_, proof)| proof)
}

/// The net with the bound of each edge.
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
