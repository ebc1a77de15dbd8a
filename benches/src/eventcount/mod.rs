//! Event counts beside the primitives that they are made of.
//!
//! Three questions: what does an increment cost without a waiter, beside a plain store and a bare locked addition?
//! What does it cost with a sleeper, beside the bare futex call? How long after an increment does the sleeper run,
//! beside a thread that sleeps on a bare futex?

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
