//! Objects private to a cache, filled in place and published without a copy.
//!
//! The Rust value of such an object lives in the caller's struct: the library allocates nothing else for it, and a
//! call costs what the slab's own path costs.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

use ::millstream_slab::RawPrivate;

use crate::slab::millstream_slab_handle;
use crate::slab::object::millstream_slab_cache;
use crate::status::{Failure, answer, borrow, borrow_mut};

/// An object private to one cache, which only that cache's thread may use. Publish or free it before freeing the
/// cache. It may be moved, but only one of several copies may be used.
///
/// If the process dies, the object becomes an orphan with whatever bytes it has.
#[repr(C)]
pub struct millstream_slab_private {
    /// The object's bytes, as many as every object of the slab has, aligned to 8; NULL after it was published or freed.
    pub bytes: *mut c_void,
    /// Words reserved for the library, more than it needs today.
    pub own: MaybeUninit<[u64; 7]>,
}

/// The words of the library in a [`millstream_slab_private`], whose size never changes.
type Words = [u64; 7];

/// The value in the library's words while `bytes` is not NULL.
type Own = RawPrivate<'static>;

const _: () = assert!(size_of::<Own>() <= size_of::<Words>() && align_of::<Own>() <= align_of::<Words>());

impl millstream_slab_private {
    pub(super) fn give(mut object: Own) -> Self {
        let bytes = object.as_mut_ptr().cast();
        let mut own = MaybeUninit::<Words>::uninit();
        // SAFETY: the value fits the words in size and alignment, as asserted above.
        unsafe { own.as_mut_ptr().cast::<Own>().write(object) };
        Self { bytes, own }
    }

    /// Takes the object out; the struct then has none.
    ///
    /// # Safety
    /// `bytes` is NULL, or `give` made this struct and no copy of it has been taken from.
    pub(super) unsafe fn take(&mut self) -> Option<Own> {
        let bytes = std::mem::replace(&mut self.bytes, ptr::null_mut());
        // SAFETY: `bytes` is not NULL, so `give` wrote an object into these words and, as the caller guarantees, it
        // is still there.
        (!bytes.is_null()).then(|| unsafe { self.own.as_ptr().cast::<Own>().read() })
    }
}

/// Stores an object in `out`, or a struct without bytes on failure: freeing that frees nothing.
///
/// # Safety
/// `out` is NULL or valid for a write.
pub(super) unsafe fn answer_or_none(
    out: *mut millstream_slab_private,
    compute: impl FnOnce() -> Result<Own, Failure>,
) -> i32 {
    if let Some(out) = NonNull::new(out) {
        // SAFETY: `out` is not NULL, so the caller guarantees that it is valid for a write. Only the field is
        // accessed, as the rest may be uninitialised.
        unsafe { (&raw mut (*out.as_ptr()).bytes).write(ptr::null_mut()) };
    }
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write.
    unsafe { answer(out, || compute().map(millstream_slab_private::give)) }
}

/// Allocates an object, private to the cache until it is published. Its bytes are those of the last holder, or 0. On
/// failure `out->bytes` is NULL.
///
/// # Safety
/// `cache` was made by millstream_slab_cache_new, and is freed after the object; `out` points to a
/// `millstream_slab_private`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_private_new(
    cache: *const millstream_slab_cache,
    out: *mut millstream_slab_private,
) -> i32 {
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write, and that `cache` is NULL or a live
    // cache.
    unsafe { answer_or_none(out, || Ok(borrow("cache", cache)?.cache.alloc()?)) }
}

/// Makes an object, published or orphan, private to the cache: the way to change it in place. Its handle stays valid,
/// but other calls with it return MILLSTREAM_SLAB_HELD until it is published again. On failure `out->bytes` is NULL.
///
/// # Safety
/// The conditions are those of millstream_slab_private_new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_private_claim(
    cache: *const millstream_slab_cache,
    handle: millstream_slab_handle,
    out: *mut millstream_slab_private,
) -> i32 {
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write, and that `cache` is NULL or a live
    // cache.
    unsafe { answer_or_none(out, || Ok(borrow("cache", cache)?.cache.claim(handle.into())?)) }
}

/// Publishes a private object: from now on any thread of any process can use it by its handle, and `bytes` is NULL. A
/// kill before that moment leaves an orphan; a kill after it leaves a published object.
///
/// # Safety
/// `object` came from millstream_slab_private_new or millstream_slab_private_claim; `out` points to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_private_publish(
    object: *mut millstream_slab_private,
    out: *mut millstream_slab_handle,
) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that `object` is NULL, empty or holds an object that was not taken through a
        // copy of the struct.
        let object = unsafe { borrow_mut("object", object)?.take() };
        Ok(object.ok_or(Failure::Null { what: "object->bytes" })?.publish().into())
    };
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write.
    unsafe { answer(out, compute) }
}

/// Frees a private object. A struct without bytes is left unchanged.
///
/// # Safety
/// `object` is NULL, or its `bytes` are, or it came from millstream_slab_private_new or millstream_slab_private_claim.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_private_free(object: *mut millstream_slab_private) {
    // SAFETY: the caller guarantees that `object` is NULL, empty or holds an object that was not taken through a
    // copy of the struct.
    drop(unsafe { object.as_mut().and_then(|object| object.take()) });
}
