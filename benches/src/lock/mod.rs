//! Locks: sections per second, and the time to enter one.

pub mod latency;
pub mod section;
pub mod throughput;

use crate::args::Args;
use crate::error::Error;

/// Runs both parts in turn and prints the tables.
///
/// # Errors
/// Fails when a lock admitted two threads at once, or when a picture cannot be written.
pub fn run(args: &Args) -> Result<(), Error> {
    println!("## lock: light fences by {}\n", millstream_fence::Fence::FAST.describe());
    if "throughput".contains(&args.part) {
        throughput::run(args)?;
    }
    if "latency".contains(&args.part) {
        latency::run(args)?;
    }
    Ok(())
}
