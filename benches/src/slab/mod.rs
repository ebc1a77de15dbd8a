//! The shared slab beside private heaps, and beside the free lists that it descends from.
//!
//! The peers differ in what they promise. mimalloc, jemalloc and glibc give memory to the threads of one process, and it
//! is gone with the process. The lists share it between processes, and lose what a process held when it is killed. The
//! slab shares it and loses nothing.

pub mod crew;
pub mod heap;
pub mod latency;
pub mod list;
pub mod pairs;
pub mod remote;
pub mod reopen;

use crate::args::Args;
use crate::error::Error;

/// Runs all of them in turn and prints the tables.
///
/// # Errors
/// When a competitor lost an object, or a slab could not be made.
pub fn run(args: &Args) -> Result<(), Error> {
    println!("## slab: objects of {} bytes\n", heap::OBJECT_BYTES);
    let wants = |part: &str| part.contains(args.part.as_str());
    if wants("pairs") {
        pairs::run(args)?;
    }
    if wants("remote") {
        remote::run(args)?;
    }
    if wants("latency") {
        latency::run(args)?;
    }
    if wants("reopen") {
        reopen::run(args)?;
    }
    Ok(())
}
