//! The shared slab, compared with private heaps and with earlier designs of shared free lists.
//!
//! The peers differ in their promises. mimalloc, jemalloc and glibc allocate memory of a single process, which is gone
//! when the process ends. The lists share memory between processes, but lose the objects of a killed process. The slab
//! shares memory and loses nothing.
//!
//! mimalloc and jemalloc are C libraries that take a long time to build: the feature `allocators`, which
//! `cargo xtask bench` turns on, adds them.

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
