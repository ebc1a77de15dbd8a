//! Execution: runs the net with values and the code of its nodes.
//!
//! A program that is one chain runs as one loop; see [`fuse`](crate::fuse). Otherwise [`Running`] drives the sink on demand, by
//! the same rule as the checker's runs. The queues therefore never need more than their proven capacities, which are allocated
//! before the first value. If all clocks are periodic, the firings of one period are recorded before the run, and the run repeats
//! the record. If the data decide, the firings are recorded during the run.
//!
//! A value that has left a queue stays in its slot, and a later value is cloned into it. Values that can reuse memory, such as
//! lines, therefore cost no allocation.

#[cfg(test)]
mod any_order;
mod chains;
mod error;
mod fifo;
mod machine;
mod memo;
mod plan;
mod queue;
mod running;
mod schedule;
mod spill;
mod work;

pub use self::error::RunError;
pub use self::running::{Part, Report, Running, Values};
pub use self::spill::Stored;

pub(crate) use self::machine::Machine;
pub(crate) use self::plan::Plan;
pub(crate) use self::queue::{Inlet, MakeDisk, Queue, Shared, assign};
pub(crate) use self::spill::{Disk, SpillQueue};
pub(crate) use self::work::{Draw, Turn, Work};
