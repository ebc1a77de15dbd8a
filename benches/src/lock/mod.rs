//! Locks: how many sections a second, and how long it takes to get in.

pub mod latency;
pub mod section;
pub mod throughput;

use crate::args::Args;
use crate::error::Error;

/// Runs both in turn and prints the tables.
///
/// # Errors
/// When a lock let two in at once, or a picture cannot be written.
pub fn run(args: &Args) -> Result<(), Error> {
    println!("## lock: light fences by {}\n", millstream_fence::describe());
    if "throughput".contains(&args.part) {
        throughput::run(args)?;
    }
    if "latency".contains(&args.part) {
        latency::run(args)?;
    }
    Ok(())
}
