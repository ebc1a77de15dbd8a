//! Iterating over the allocated objects.

use ::millstream_slab::Holder;
use bytemuck::{Pod, Zeroable};

use crate::extensible::{self, Extensible};
use crate::slab::{millstream_slab, millstream_slab_handle};
use crate::status::{Failure, borrow, borrow_mut};

/// The object is shared by all processes.
pub const MILLSTREAM_SLAB_PUBLISHED: i32 = 0;
/// The process that had the object died. Any process may claim, change or free the object.
pub const MILLSTREAM_SLAB_ORPHAN: i32 = 1;
/// A process has the object exclusively.
pub const MILLSTREAM_SLAB_PRIVATE: i32 = 2;

/// An allocated object: the result of millstream_slab_next.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct millstream_slab_object {
    /// sizeof(millstream_slab_object), set by the caller.
    pub struct_bytes: u64,
    /// The object's handle; for a private object, the handle that it will have.
    pub handle: millstream_slab_handle,
    /// MILLSTREAM_SLAB_PUBLISHED, MILLSTREAM_SLAB_ORPHAN or MILLSTREAM_SLAB_PRIVATE.
    pub state: i32,
    /// The process that has a private object, or 0 if it is unknown because its cache was freed. 0 for other objects.
    pub pid: u32,
    /// The current or last owner, from millstream_slab_set_owner; 0 without an owner, or in a slab that does not record
    /// owners.
    pub owner: u64,
}

// SAFETY: `Pod` rules out padding, and the first member is the size.
unsafe impl Extensible for millstream_slab_object {
    const NAME: &'static str = "millstream_slab_object";
    const FIRST_BYTES: u64 = 40;
}

/// Finds the first allocated object whose number is at least `*from`, and sets `*from` to the number after it. Returns
/// MILLSTREAM_SLAB_END if there is none.
///
/// # Safety
/// `slab` came from a function that creates or opens one; `from` points to a number; `out` points to a
/// `millstream_slab_object` whose `struct_bytes` is its size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_next(
    slab: *const millstream_slab,
    from: *mut u64,
    out: *mut millstream_slab_object,
) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that `slab` is NULL or a live slab.
        let slab = &unsafe { borrow("slab", slab) }?.slab;
        // SAFETY: the caller guarantees that `from` is NULL or a number that no other thread uses.
        let from = unsafe { borrow_mut("from", from) }?;
        let object = slab.live_from(*from).next().ok_or(Failure::End)?;
        *from = object.handle.index() + 1;
        let (state, pid) = match object.holder {
            Holder::Published => (MILLSTREAM_SLAB_PUBLISHED, 0),
            Holder::Orphan => (MILLSTREAM_SLAB_ORPHAN, 0),
            Holder::Process { pid } => (MILLSTREAM_SLAB_PRIVATE, pid),
        };
        let struct_bytes = millstream_slab_object::BYTES;
        Ok(millstream_slab_object { struct_bytes, handle: object.handle.into(), state, pid, owner: object.owner })
    };
    // SAFETY: the caller guarantees that `out` is NULL or as large as its first member says.
    unsafe { extensible::answer(out, compute) }
}
