//! Memory reclamation: the cost to readers, the cost to writers, and structures built on it.
//!
//! Readers and writers do nothing else in these loops, so the figures are upper bounds of the cost to a program.

#[cfg(liburcu)]
pub mod liburcu;
pub mod peers;
pub mod read;
pub mod structures;
pub mod threads;
pub mod update;

use crate::args::Args;
use crate::error::Error;

/// Runs all parts in turn and prints the tables.
///
/// # Errors
/// Fails when a competitor did not do all of the work.
pub fn run(args: &Args) -> Result<(), Error> {
    println!("## reclaim: heavy fences by {}\n", millstream_fence::Fence::FAST.describe());
    read::run(args)?;
    update::run(args)?;
    structures::run(args)
}
