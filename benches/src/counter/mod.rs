//! Statistics counters: what an addition costs, what is lost, and what statistics do to a scan.

pub mod add;
pub mod scan;

use crate::args::Args;
use crate::error::Error;

/// Runs both in turn and prints the tables.
///
/// # Errors
/// When a counter that should be exact is not.
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
