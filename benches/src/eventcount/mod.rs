//! Event counts beside what they are made of.
//!
//! Three questions: what does an increment cost with nobody waiting, beside a plain store and a bare locked
//! addition; what does it cost with a sleeper, beside the bare futex call; and how long after an increment does
//! the sleeper run, beside a thread that sleeps on a bare futex.

pub mod clock;
pub mod increment;
pub mod sleeper;
pub mod wake;

use crate::args::Args;
use crate::error::Error;

/// Runs all of them in turn and prints the tables.
///
/// # Errors
/// When a count is wrong after the work.
pub fn run(args: &Args) -> Result<(), Error> {
    println!("## eventcount: heavy fences by {}\n", millstream_fence::describe());
    increment::run(args)?;
    wake::run(args)
}
