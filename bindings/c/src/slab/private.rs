//! Objects that a cache has to itself, filled in place and published without a copy.
//!
//! The Rust value that stands for such an object lives in the caller's struct: nothing is allocated for it elsewhere, and a
//! call costs what the slab's own path costs.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

use ::millstream_slab::RawPrivate;

use crate::slab::millstream_slab_handle;
use crate::slab::object::millstream_slab_cache;
use crate::status::{Failure, answer, borrow, borrow_mut};

/// An object that is private to one cache, and used by that cache's thread alone. It has to be published or freed before
/// the cache is given back. It may be moved, but of several copies only one may be used.
///
/// If the process dies, it becomes an orphan with whatever bytes it has.
#[repr(C)]
pub struct millstream_slab_private {
    /// Its bytes, as many as the slab's objects have, aligned to 8; NULL once it was published or freed.
    pub bytes: *mut c_void,
    /// The library's own.
    pub own: MaybeUninit<[u64; 2]>,
}

/// What is in the library's own words while there are bytes.
type Own = RawPrivate<'static>;

const _: () = assert!(size_of::<Own>() <= size_of::<[u64; 2]>() && align_of::<Own>() <= align_of::<[u64; 2]>());

impl millstream_slab_private {
    fn give(mut object: Own) -> Self {
        let bytes = object.as_mut_ptr().cast();
        let mut own = MaybeUninit::<[u64; 2]>::uninit();
        // SAFETY: it fits, as is asserted above.
        unsafe { own.as_mut_ptr().cast::<Own>().write(object) };
        Self { bytes, own }
    }

    /// The object, which is not here any more afterwards.
    ///
    /// # Safety
    /// `bytes` is NULL, or `give` made this, and nobody has taken from a copy of it.
    unsafe fn take(&mut self) -> Option<Own> {
        let bytes = std::mem::replace(&mut self.bytes, ptr::null_mut());
        // SAFETY: there are bytes, so the caller's promise is that the object is still in here.
        (!bytes.is_null()).then(|| unsafe { self.own.as_ptr().cast::<Own>().read() })
    }
}

/// Gives an object, or one without bytes if there is none: whoever frees that frees nothing.
///
/// # Safety
/// `out` is NULL or valid for a write.
unsafe fn answer_or_none(out: *mut millstream_slab_private, compute: impl FnOnce() -> Result<Own, Failure>) -> i32 {
    if let Some(out) = NonNull::new(out) {
        // SAFETY: not NULL, and the caller's promise. The field alone: the rest may never have been written.
        unsafe { (&raw mut (*out.as_ptr()).bytes).write(ptr::null_mut()) };
    }
    // SAFETY: the caller's promise.
    unsafe { answer(out, || compute().map(millstream_slab_private::give)) }
}

/// Allocates an object, private to the cache until it is published. Its bytes are what their last holder left, or 0. If there
/// is none, `out->bytes` is NULL.
///
/// # Safety
/// `cache` was made by millstream_slab_cache_new, and is given back after the object; `out` points to a
/// `millstream_slab_private`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_private_new(
    cache: *const millstream_slab_cache,
    out: *mut millstream_slab_private,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { answer_or_none(out, || Ok(borrow("cache", cache)?.cache.alloc()?)) }
}

/// Makes an object, published or orphan, private to the cache: the way to change it in place. Its handle stays good, and is
/// answered with MILLSTREAM_SLAB_HELD until it is published again. If it can't be had, `out->bytes` is NULL.
///
/// # Safety
/// As for millstream_slab_private_new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_private_claim(
    cache: *const millstream_slab_cache,
    handle: millstream_slab_handle,
    out: *mut millstream_slab_private,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { answer_or_none(out, || Ok(borrow("cache", cache)?.cache.claim(handle.into())?)) }
}

/// Makes a private object everybody's: from now on any thread of any process can use it by its handle, and `bytes` is
/// NULL. A kill comes before it and leaves an orphan, or after it and leaves a published object.
///
/// # Safety
/// `object` came from millstream_slab_private_new or millstream_slab_private_claim; `out` points to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_private_publish(
    object: *mut millstream_slab_private,
    out: *mut millstream_slab_handle,
) -> i32 {
    let compute = || {
        // SAFETY: the caller's promise.
        let object = unsafe { borrow_mut("object", object)?.take() };
        Ok(object.ok_or(Failure::Null { what: "object->bytes" })?.publish().into())
    };
    // SAFETY: the caller's promise.
    unsafe { answer(out, compute) }
}

/// Frees a private object. One without bytes is left alone.
///
/// # Safety
/// `object` is NULL, or its `bytes` are, or it came from millstream_slab_private_new or millstream_slab_private_claim.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_private_free(object: *mut millstream_slab_private) {
    // SAFETY: the caller's promise.
    drop(unsafe { object.as_mut().and_then(|object| object.take()) });
}
