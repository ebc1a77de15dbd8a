//! Reopening a slab of a million objects whose users were killed.

use std::time::Instant;

use millstream_slab::RawSlab;

use super::heap::OBJECT_BYTES;
use crate::args::Args;
use crate::compare;
use crate::error::Error;

const OBJECTS: u64 = 1_000_000;
const QUICK_OBJECTS: u64 = 10_000;

/// Prints the duration of reopening.
///
/// # Errors
/// Fails when the reopened slab differs from the slab before.
pub fn run(args: &Args) -> Result<(), Error> {
    let objects = if args.quick { QUICK_OBJECTS } else { OBJECTS };
    let mut alone = Vec::new();
    let mut beside = Vec::new();
    for _ in 0..args.rounds {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        let path = folder.as_ref().map_err(|error| Error::new(error.to_string()))?.path().join("slab");
        alone.push(once(&path, objects, false).map_err(|error| Error::new(error.to_string()))?);
        std::fs::remove_file(&path).map_err(|error| Error::new(error.to_string()))?;
        beside.push(once(&path, objects, true).map_err(|error| Error::new(error.to_string()))?);
    }
    println!("### reopen: {objects} objects, half of them published, the others in the hands of a killed process\n");
    for (name, took) in [("alone, made afresh", alone), ("next to a user, recovered", beside)] {
        println!("- {name}: {:.1} ms, median of {} rounds", compare::median(&took), took.len());
    }
    println!();
    Ok(())
}

/// Milliseconds from the call of `open` until recovery is complete.
fn once(path: &std::path::Path, objects: u64, beside: bool) -> Result<f64, millstream_slab::Error> {
    let slab = RawSlab::options(OBJECT_BYTES as u64, objects).create(path)?;
    // SAFETY: the fork happens between the threads of two workloads, so no other thread of this process holds a lock of
    // the allocator that the child uses.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let die = || {
            // SAFETY: the call only ends the process, at once.
            unsafe { libc::_exit(1) }
        };
        let Ok(cache) = slab.cache() else { die() };
        for number in 0..objects {
            let Ok(object) = cache.alloc() else { die() };
            if number % 2 == 0 {
                object.publish();
            } else {
                std::mem::forget(object);
            }
        }
        // SAFETY: the call only ends the process, at once, without returning the cache.
        unsafe { libc::_exit(0) }
    }
    // SAFETY: the child is ours and not yet reaped, and the status pointer may be null.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    let user = beside.then(|| RawSlab::cache(&slab)).transpose();
    let began = Instant::now();
    let (opened, recovered) = RawSlab::open_and_report(path)?;
    let took = began.elapsed().as_secs_f64() * 1e3;
    let usage = opened.usage();
    assert_eq!(usage.published, objects - objects / 2, "{usage:?}");
    assert_eq!(recovered.orphans, objects / 2, "{recovered:?}");
    drop(user);
    Ok(took)
}
