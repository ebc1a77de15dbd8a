//! The static checks, which prove before a flow runs that it cannot deadlock.
//!
//! The heart is the **resource order**. A unit that holds one resource across stages (class 3) while a later stage asks
//! for another could deadlock with a unit that does it the other way round. So the checks follow every path through the
//! stages, note each pair "holds *a*, asks for *b*", and refuse the flow if those pairs form a cycle, naming it. If
//! they do not, a topological order of them exists, and the engine's grants follow it. A bounded queue is a resource
//! like any other here: the stages before it ask for its places, and a unit holds one until it leaves that stage.

pub(crate) mod error;
pub(crate) mod graph;
pub(crate) mod pairs;
pub(crate) mod proof;
