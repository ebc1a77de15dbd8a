//! The shared slab beside private heaps, and beside the free lists that it descends from.
//!
//! The peers differ in their promises. mimalloc, jemalloc and glibc give memory to the threads of one process, and
//! the memory goes with the process. The lists share memory between processes, and lose the objects of a process that
//! is killed. The slab shares it and loses nothing.
//!
//! mimalloc and jemalloc are C libraries that take long to build: the feature `allocators`, which `cargo xtask bench` turns
//! on, adds them.

pub mod crew;
pub mod heap;
pub mod latency;
pub mod list;
pub mod pairs;
pub mod remote;
pub mod reopen;

use crate::args::Args;
use crate::error::Error;

/// Runs all parts in turn and prints the tables.
///
/// # Errors
/// Fails when a competitor lost an object, or when a slab cannot be made.
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
