//! Going over what is allocated.

use ::millstream_slab::Holder;

use crate::slab::{millstream_slab, millstream_slab_handle};
use crate::status::{Failure, answer, borrow, borrow_mut};

/// The object is everybody's.
pub const MILLSTREAM_SLAB_PUBLISHED: i32 = 0;
/// The object was held by a process that died: to be claimed, changed or freed by anybody.
pub const MILLSTREAM_SLAB_ORPHAN: i32 = 1;
/// Some process has the object to itself.
pub const MILLSTREAM_SLAB_PRIVATE: i32 = 2;

/// An allocated object, as millstream_slab_next finds it.
#[repr(C)]
pub struct millstream_slab_object {
    /// Its name. Of a private object, the one that it will have.
    pub handle: millstream_slab_handle,
    /// MILLSTREAM_SLAB_PUBLISHED, MILLSTREAM_SLAB_ORPHAN or MILLSTREAM_SLAB_PRIVATE.
    pub state: i32,
    /// The process that has a private object to itself, 0 if it can't be named because its cache was given back. Of all
    /// others, 0.
    pub pid: u32,
    /// Who has it, or had it last, as given to millstream_slab_set_owner; 0 where nobody said so or the slab keeps no owners.
    pub owner: u64,
}

/// The next allocated object whose number is `*from` or higher; raises `*from` beyond it. MILLSTREAM_SLAB_END if there is
/// none.
///
/// # Safety
/// `slab` came from a function that creates or opens one; `from` points to a number; `out` points to an object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_next(
    slab: *const millstream_slab,
    from: *mut u64,
    out: *mut millstream_slab_object,
) -> i32 {
    let compute = || {
        // SAFETY: the caller's promise.
        let slab = &unsafe { borrow("slab", slab) }?.slab;
        // SAFETY: the caller's promise.
        let from = unsafe { borrow_mut("from", from) }?;
        let object = slab.live_from(*from).next().ok_or(Failure::End)?;
        *from = object.handle.index() + 1;
        let (state, pid) = match object.holder {
            Holder::Published => (MILLSTREAM_SLAB_PUBLISHED, 0),
            Holder::Orphan => (MILLSTREAM_SLAB_ORPHAN, 0),
            Holder::Process { pid } => (MILLSTREAM_SLAB_PRIVATE, pid),
        };
        Ok(millstream_slab_object { handle: object.handle.into(), state, pid, owner: object.owner })
    };
    // SAFETY: the caller's promise.
    unsafe { answer(out, compute) }
}
