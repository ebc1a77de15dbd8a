//! Event counts, compared with the primitives on which they are built.
//!
//! There are three questions. What does an increment cost without a waiter, compared with a plain store and a locked
//! addition? What does an increment that wakes a sleeper cost, compared with a bare futex call? How long after an
//! increment does the sleeper run, compared with a thread that sleeps on a bare futex?

pub mod clock;
pub mod increment;
pub mod sleeper;
pub mod wake;

use crate::args::Args;
use crate::error::Error;

/// Runs all parts in turn and prints the tables.
///
/// # Errors
/// Fails when a count is wrong after the work.
pub fn run(args: &Args) -> Result<(), Error> {
    println!("## eventcount: heavy fences by {}\n", millstream_fence::Fence::FAST.describe());
    increment::run(args)?;
    wake::run(args)
}
