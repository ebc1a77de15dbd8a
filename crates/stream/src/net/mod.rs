//! The net: the graph as actors with queues, which the checker reasons about and the executor runs.
//!
//! An *actor* is a source, a zip, a merge, a repeat, a prefix, a reduce or a sink. Every other operator gives at most one
//! value for each that it takes, and at once; so it needs no queue, and belongs to the *tree* of the actor whose values it
//! works on. An *edge* is a queue: it leads from an actor, down a path of its tree, to an input of another actor.
//!
//! When an actor *fires* it takes at most one value from each input and gives at most one. The given value passes down the
//! tree, and enters every queue to which a path lets it through. All of that is one step: it happens if the inputs have
//! their values and those queues have room, and not at all otherwise.

mod contract;
mod tokens;
mod view;

pub(crate) use contract::{EdgeId, Elastic, Net};
pub(crate) use tokens::{Driven, Stuck, Tokens};
pub(crate) use view::{Kind, View};
