//! Statistics counters: the cost of an addition, the additions that racy code loses, and the cost of statistics to a
//! scan.

pub mod add;
pub mod scan;

use crate::args::Args;
use crate::error::Error;

/// Runs both parts in turn and prints the tables.
///
/// # Errors
/// Fails when a counter that should be exact is not.
pub fn run(args: &Args) -> Result<(), Error> {
    println!("## counter: rseq areas by {:?}\n", millstream_sync::percpu::Area::source());
    if "add".contains(&args.part) {
        add::run(args)?;
    }
    if "scan".contains(&args.part) {
        scan::run(args)?;
    }
    Ok(())
}
