//! Slabs of shared memory that survive `kill -9`.
//!
//! A slab and its handles are here; each of the modules has what is done at one moment of their lives.

// The order of the header: a slab, its objects, all of them.
pub mod create;
pub mod open;

pub mod object;
pub mod private;

pub mod next;
pub mod whole;

use ::millstream_slab::{Handle, RawSlab};

/// A slab: objects of one size in a file, shared by threads and processes. May be used by all threads at once.
pub struct millstream_slab {
    slab: RawSlab,
}

impl millstream_slab {
    /// For the caller to keep, until it is given to millstream_slab_free.
    fn give(slab: RawSlab) -> *mut Self {
        Box::into_raw(Box::new(millstream_slab { slab }))
    }
}

/// The name of an object, the same in every process; may be stored in objects and sent to other processes.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct millstream_slab_handle {
    /// Lower half.
    pub low: u64,
    /// Upper half.
    pub high: u64,
}

impl From<Handle> for millstream_slab_handle {
    fn from(handle: Handle) -> Self {
        let [low, high] = bytemuck::cast(handle);
        millstream_slab_handle { low, high }
    }
}

impl From<millstream_slab_handle> for Handle {
    fn from(handle: millstream_slab_handle) -> Self {
        bytemuck::cast([handle.low, handle.high])
    }
}
