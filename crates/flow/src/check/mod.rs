//! The static checks, which prove before a flow runs that it cannot deadlock.
//!
//! The main check finds a **resource order**. Suppose that a unit holds one resource across stages while a
//! later stage asks for another resource. Such a unit could deadlock with a unit that acquires the two resources in
//! the opposite order. So the checks follow every path through the stages and note each pair "holds *a*, asks for
//! *b*". If these pairs form a cycle, the checks refuse the flow and name the cycle. Otherwise the resources have a
//! topological order, which the engine's grants follow. To the checks, a bounded queue is a resource like any other:
//! the previous stages ask for slots of the queue, and a unit holds its slot until it leaves the stage.

pub(crate) mod error;
pub(crate) mod graph;
pub(crate) mod pairs;
pub(crate) mod proof;
