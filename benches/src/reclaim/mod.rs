//! Memory reclamation: what readers pay, what writers pay, and structures on top.
//!
//! Readers and writers do nothing else in these loops, so the figures are what is added to a program at most.

#[cfg(liburcu)]
pub mod liburcu;
pub mod peers;
pub mod read;
pub mod structures;
pub mod threads;
pub mod update;

use crate::args::Args;
use crate::error::Error;

/// Runs all of them in turn and prints the tables.
///
/// # Errors
/// When a competitor did not do the whole work.
pub fn run(args: &Args) -> Result<(), Error> {
    println!("## reclaim: heavy fences by {}\n", millstream_fence::describe());
    read::run(args)?;
    update::run(args)?;
    structures::run(args)
}
