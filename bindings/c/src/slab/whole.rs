//! What is asked of all objects of a slab at once.

use ::millstream_slab::Usage;

use crate::slab::millstream_slab;
use crate::status::{answer, borrow, note, status};

/// The most problems that a message tells; a damaged slab has one for each object.
const PROBLEMS_TOLD: usize = 20;

/// How the objects of a slab are used.
#[repr(C)]
pub struct millstream_slab_usage_result {
    /// The most there can be.
    pub max_objects: u64,
    /// Those that may be used before the slab grows.
    pub capacity: u64,
    /// Never used.
    pub virgin: u64,
    /// Free, for every cache to take.
    pub free: u64,
    /// Free, in the caches.
    pub cached: u64,
    /// Allocated and private.
    pub held: u64,
    /// Allocated and published.
    pub published: u64,
    /// Allocated, and their process is dead.
    pub orphans: u64,
    /// Used so often that they are never used again.
    pub retired: u64,
    /// In a state that this library never leaves them in.
    pub damaged: u64,
    /// Caches in use.
    pub caches: u64,
}

/// How the objects are used: a count over all of them, exact if nobody allocates or frees meanwhile.
///
/// # Safety
/// `slab` came from a function that creates or opens one; `out` points to a `millstream_slab_usage_result`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_usage(
    slab: *const millstream_slab,
    out: *mut millstream_slab_usage_result,
) -> i32 {
    let compute = || {
        // SAFETY: the caller's promise.
        let usage = unsafe { borrow("slab", slab) }?.slab.usage();
        let Usage { max_objects, capacity, virgin, free, cached, held, published, orphans, retired, damaged, caches } =
            usage;
        Ok(millstream_slab_usage_result {
            max_objects,
            capacity,
            virgin,
            free,
            cached,
            held,
            published,
            orphans,
            retired,
            damaged,
            caches,
        })
    };
    // SAFETY: the caller's promise.
    unsafe { answer(out, compute) }
}

/// Checks every invariant; how many problems there are, 0 for a sound slab. Of the first of them millstream_error_message()
/// has a line each, though the status is MILLSTREAM_OK.
///
/// Exact if nobody allocates or frees meanwhile; otherwise what others do while it looks may show as a problem.
///
/// # Safety
/// `slab` came from a function that creates or opens one; `out` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_verify(slab: *const millstream_slab, out: *mut u64) -> i32 {
    let compute = || {
        // SAFETY: the caller's promise.
        let problems = unsafe { borrow("slab", slab) }?.slab.verify().problems;
        if !problems.is_empty() {
            note(&problems[..problems.len().min(PROBLEMS_TOLD)].join("\n"), 0);
        }
        Ok(problems.len() as u64)
    };
    // SAFETY: the caller's promise.
    unsafe { answer(out, compute) }
}

/// Makes the kernel write everything to the device, and waits for it. Objects that were published before are there after a
/// power failure, with their contents; without it, only the death of processes is survived.
///
/// # Safety
/// `slab` came from a function that creates or opens one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_sync(slab: *const millstream_slab) -> i32 {
    // SAFETY: the caller's promise.
    status(unsafe { borrow("slab", slab) }.and_then(|slab| Ok(slab.slab.sync()?)))
}

/// Returns what dead processes had in their hands, while others go on; how many objects that were. MILLSTREAM_SLAB_BUSY if another process takes
/// too long to recover some of it.
///
/// # Safety
/// `slab` came from a function that creates or opens one; `out` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_recover(slab: *const millstream_slab, out: *mut u64) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        answer(out, || {
            let recovered = borrow("slab", slab)?.slab.recover()?;
            Ok(recovered.freed + recovered.orphans)
        })
    }
}
