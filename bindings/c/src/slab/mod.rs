//! Slabs of shared memory that survive `kill -9`.
//!
//! This module defines a slab and its handles; each submodule covers one phase of their lives.

// The modules follow the order of the header: a slab, its objects, and all objects together.
pub mod create;
pub mod open;

pub mod object;
pub mod parcel;
pub mod private;

pub mod next;
pub mod whole;

use ::millstream_slab::{Handle, RawSlab};
use bytemuck::{Pod, Zeroable};

/// A slab: objects of one size in a file, shared by threads and processes. All threads may use it concurrently.
pub struct millstream_slab {
    slab: RawSlab,
}

impl millstream_slab {
    /// Passes ownership of the slab to the caller, until millstream_slab_free.
    fn give(slab: RawSlab) -> *mut Self {
        Box::into_raw(Box::new(millstream_slab { slab }))
    }
}

/// The name of an object, which is the same in every process. Programs may store handles in objects and send them to
/// other processes.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct millstream_slab_handle {
    /// The lower half of the name.
    pub low: u64,
    /// The upper half of the name.
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
