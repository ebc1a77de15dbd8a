//! Execution: the net with values in it.
//!
//! [`Running`] drives the sink on demand, by the same rule as the checker's runs. The queues therefore never need more
//! than their proven capacities, which are allocated before the first value. A value that leaves a queue is kept, and
//! the next value that enters is cloned into it. Values that clone without allocating, such as a line into a line, then
//! cost no allocation.

mod error;
mod machine;
mod queue;
mod running;
mod spill;

pub use self::error::RunError;
pub use self::running::{Part, Report, Running, Values};
pub use self::spill::Stored;

pub(crate) use self::machine::{Machine, Turn, Work};
pub(crate) use self::queue::{Inlet, MakeDisk, Queue, Shared, assign};
pub(crate) use self::spill::{Disk, SpillQueue};
