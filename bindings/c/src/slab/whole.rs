//! Functions on all objects of a slab at once.

use ::millstream_slab::Usage;
use bytemuck::{Pod, Zeroable};

use crate::extensible::{self, Extensible};
use crate::slab::millstream_slab;
use crate::status::{answer, borrow, note, status};

/// The maximum number of problems listed in a message. A damaged slab may have a problem in each object.
const MAX_PROBLEMS_LISTED: usize = 20;

/// Counts of a slab's objects by state.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct millstream_slab_usage_result {
    /// sizeof(millstream_slab_usage_result), set by the caller.
    pub struct_bytes: u64,
    /// The largest number of objects.
    pub max_objects: u64,
    /// Objects that are usable until the slab grows.
    pub capacity: u64,
    /// Objects that were never used.
    pub virgin: u64,
    /// Free objects that any cache can take.
    pub free: u64,
    /// Free objects in the caches.
    pub cached: u64,
    /// Allocated private objects.
    pub held: u64,
    /// Allocated published objects.
    pub published: u64,
    /// Allocated objects whose process died.
    pub orphans: u64,
    /// Objects that have been used the maximum number of times, and are never used again.
    pub retired: u64,
    /// Objects in a state that this library never leaves behind.
    pub damaged: u64,
    /// Number of caches in use.
    pub caches: u64,
}

// SAFETY: `Pod` rules out padding, and the first member is the size.
unsafe impl Extensible for millstream_slab_usage_result {
    const NAME: &'static str = "millstream_slab_usage_result";
    const FIRST_BYTES: u64 = 96;
}

/// Counts the objects by state. The counts are exact if no thread allocates or frees during the call.
///
/// # Safety
/// `slab` came from a function that creates or opens one; `out` points to a `millstream_slab_usage_result`
/// whose `struct_bytes` is its size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_usage(
    slab: *const millstream_slab,
    out: *mut millstream_slab_usage_result,
) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that `slab` is NULL or a live slab.
        let usage = unsafe { borrow("slab", slab) }?.slab.usage();
        let Usage {
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
            ..
        } = usage;
        Ok(millstream_slab_usage_result {
            struct_bytes: millstream_slab_usage_result::BYTES,
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
    // SAFETY: the caller guarantees that `out` is NULL or as large as its first member says.
    unsafe { extensible::answer(out, compute) }
}

/// Checks every invariant and returns the number of problems, 0 for a sound slab. millstream_error_message() then
/// lists the first of them, one per line, although the status is MILLSTREAM_OK.
///
/// The result is exact if no thread allocates or frees during the call; otherwise concurrent changes may be reported as
/// problems.
///
/// # Safety
/// `slab` came from a function that creates or opens one; `out` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_verify(slab: *const millstream_slab, out: *mut u64) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that `slab` is NULL or a live slab.
        let problems = unsafe { borrow("slab", slab) }?.slab.verify().problems;
        if !problems.is_empty() {
            note(&problems[..problems.len().min(MAX_PROBLEMS_LISTED)].join("\n"), 0);
        }
        Ok(problems.len() as u64)
    };
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write.
    unsafe { answer(out, compute) }
}

/// Makes the kernel write everything to the device, and waits until it is written. Objects published before the call
/// then survive a power failure, with their contents. Without this call, they survive only the death of processes.
///
/// # Safety
/// `slab` came from a function that creates or opens one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_sync(slab: *const millstream_slab) -> i32 {
    // SAFETY: the caller guarantees that `slab` is NULL or a live slab.
    status(unsafe { borrow("slab", slab) }.and_then(|slab| Ok(slab.slab.sync()?)))
}

/// Recovers the objects of dead processes, while other processes continue, and returns the number of these objects.
/// Returns MILLSTREAM_SLAB_BUSY if another process takes too long to recover some of them.
///
/// # Safety
/// `slab` came from a function that creates or opens one; `out` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_recover(slab: *const millstream_slab, out: *mut u64) -> i32 {
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write, and that `slab` is NULL or a live slab.
    unsafe {
        answer(out, || {
            let recovered = borrow("slab", slab)?.slab.recover()?;
            Ok(recovered.freed + recovered.orphans)
        })
    }
}
