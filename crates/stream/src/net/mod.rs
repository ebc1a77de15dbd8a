//! The net: the graph as actors with queues. The checker works on the net, and the executor runs it.
//!
//! An *actor* is a source, a zip, a merge, a repeat, a prefix, a reduce or a sink. Every other operator produces at most one
//! value for each value it takes, and produces it immediately. It needs no queue, and belongs to the *tree* of the actor whose
//! values it processes. An *edge* is a queue that leads from an actor, down a path of its tree, to an input of another actor.
//!
//! When an actor *fires*, it takes at most one value from each input and produces at most one value. That value passes down the
//! tree and enters every queue that it reaches. A firing is one step: it happens only if the inputs have the values and these
//! queues have room.

mod contract;
mod tokens;
mod view;

pub(crate) use contract::{EdgeId, Elastic, Net};
#[cfg(test)]
pub(crate) use tokens::Ready;
pub(crate) use tokens::{Driven, Fire, Stuck, Tokens};
pub(crate) use view::{Kind, View};
