//! Objects that are private to a cache, filled in place and published without a copy.
//!
//! The Rust value of such an object is stored in the caller's struct. So the library allocates no other memory for it,
//! and a call costs no more than in Rust.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::{self, NonNull};

use ::millstream_slab::RawPrivate;

use crate::slab::millstream_slab_handle;
use crate::slab::object::millstream_slab_cache;
use crate::status::{Failure, answer, borrow, borrow_mut};

/// An object that is private to one cache; only the cache's thread may use it. Publish or free it before you free the
/// cache. The struct may be moved. If it is copied, only one of the copies may be used.
///
/// If the process dies, the object becomes an orphan with its current bytes.
#[repr(C)]
pub struct millstream_slab_private {
    /// The object's bytes, as many as every object of the slab has, aligned to 8; NULL after it was published or freed.
    pub bytes: *mut c_void,
    /// Words reserved for the library.
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

    /// Moves the object out. The struct is then empty.
    ///
    /// # Safety
    /// `bytes` is NULL, or `give` made this struct and the object has not been taken through a copy of it.
    pub(super) unsafe fn take(&mut self) -> Option<Own> {
        let bytes = std::mem::replace(&mut self.bytes, ptr::null_mut());
        // SAFETY: `bytes` is not NULL, so `give` wrote an object into these words and, as the caller guarantees, it
        // is still there.
        (!bytes.is_null()).then(|| unsafe { self.own.as_ptr().cast::<Own>().read() })
    }
}

/// Stores an object in `out`, or a struct without bytes on failure; freeing such a struct does nothing.
///
/// # Safety
/// `out` is NULL or valid for a write.
pub(super) unsafe fn answer_or_none(
    out: *mut millstream_slab_private,
    compute: impl FnOnce() -> Result<Own, Failure>,
) -> i32 {
    if let Some(out) = NonNull::new(out) {
        // SAFETY: `out` is not NULL, so the caller guarantees that it is valid for a write. Only the field is accessed,
        // because the rest may be uninitialised.
        unsafe { (&raw mut (*out.as_ptr()).bytes).write(ptr::null_mut()) };
    }
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write.
    unsafe { answer(out, || compute().map(millstream_slab_private::give)) }
}

/// Allocates an object, which is private to the cache until it is published. Its bytes are those of its previous use,
/// or 0. On failure `out->bytes` is NULL.
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

/// Makes an object, published or orphan, private to the cache, in order to change it in place. Its handle remains
/// valid, but other calls with the handle return MILLSTREAM_SLAB_HELD until the object is published again. On failure
/// `out->bytes` is NULL.
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

/// Publishes a private object: from now on any thread of any process can use it by its handle, and `bytes` is NULL. If
/// the process is killed during the call, the object is an orphan or published.
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
/// `object` is NULL, or has no bytes, or came from millstream_slab_private_new or millstream_slab_private_claim.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_private_free(object: *mut millstream_slab_private) {
    // SAFETY: the caller guarantees that `object` is NULL, empty or holds an object that was not taken through a
    // copy of the struct.
    drop(unsafe { object.as_mut().and_then(|object| object.take()) });
}
