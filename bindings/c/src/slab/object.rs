//! Objects that are copied in and out, and caches.

use std::ffi::c_void;

use ::millstream_slab::RawCache;

use crate::slab::{millstream_slab, millstream_slab_handle};
use crate::status::{Failure, answer, borrow, release, status};

/// A thread's access to a slab. Each thread needs its own cache. After a fork, the child must not use it.
pub struct millstream_slab_cache {
    pub(super) cache: RawCache,
}

/// Makes a cache for the calling thread. Returns MILLSTREAM_SLAB_NO_CACHE if all caches of the slab are in use.
///
/// # Safety
/// `slab` came from a function that creates or opens one; `out` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_cache_new(
    slab: *const millstream_slab,
    out: *mut *mut millstream_slab_cache,
) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that `slab` is NULL or a live slab.
        let cache = unsafe { borrow("slab", slab) }?.slab.cache()?;
        Ok(Box::into_raw(Box::new(millstream_slab_cache { cache })))
    };
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write.
    unsafe { answer(out, compute) }
}

/// Frees a cache and returns its free objects to the slab.
///
/// # Safety
/// `cache` is NULL or was made by millstream_slab_cache_new, and neither it nor any private object of it is used
/// afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_cache_free(cache: *mut millstream_slab_cache) {
    // SAFETY: the caller guarantees that `cache` is NULL or came from a function that makes one, and is not used
    // afterwards.
    unsafe { release(cache) }
}

/// Sets the owner of a cache: a number for a worker or a job. It becomes the owner of all objects that the cache
/// publishes from now on, and of those that are private to the cache when its process dies. millstream_slab_next
/// reports it, so that the objects of a dead worker can be found. The call has no effect on a slab that was created
/// without `owners`.
///
/// # Safety
/// `cache` was made by millstream_slab_cache_new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_set_owner(cache: *const millstream_slab_cache, owner: u64) -> i32 {
    // SAFETY: the caller guarantees that `cache` is NULL or a live cache.
    status(unsafe { borrow("cache", cache) }.map(|cache| cache.cache.set_owner(owner)))
}

/// Allocates an object, copies its bytes from `bytes` and publishes it. If the process is killed before the call is
/// complete, the object is still free, or already published with these bytes, or an orphan with arbitrary bytes, which
/// survivors find with millstream_slab_next.
///
/// # Safety
/// `cache` was made by millstream_slab_cache_new; `bytes` points to as many bytes as an object has; `out` points to a
/// handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_put(
    cache: *const millstream_slab_cache,
    bytes: *const c_void,
    out: *mut millstream_slab_handle,
) -> i32 {
    let compute = || {
        if bytes.is_null() {
            return Err(Failure::Null { what: "bytes" });
        }
        // SAFETY: the caller guarantees that `cache` is NULL or a live cache.
        let mut object = unsafe { borrow("cache", cache) }?.cache.alloc()?;
        // SAFETY: `bytes` is not NULL, and the caller guarantees that it points to as many bytes as an object has.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.cast(), object.len()) };
        object.copy_from_slice(bytes);
        Ok(object.publish().into())
    };
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write.
    unsafe { answer(out, compute) }
}

/// Copies an object, published or orphan, to `bytes`. Returns MILLSTREAM_SLAB_STALE if the object was freed, even
/// during the copy; a concurrent change leaves a mixture of old and new bytes.
///
/// # Safety
/// `slab` came from a function that creates or opens one; `bytes` points to as many bytes as an object has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_get(
    slab: *const millstream_slab,
    handle: millstream_slab_handle,
    bytes: *mut c_void,
) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that `slab` is NULL or a live slab.
        let slab = &unsafe { borrow("slab", slab) }?.slab;
        if bytes.is_null() {
            return Err(Failure::Null { what: "bytes" });
        }
        // SAFETY: `bytes` is not NULL, and the caller guarantees that it points to as many bytes as an object has.
        let bytes = unsafe { std::slice::from_raw_parts_mut(bytes.cast(), slab.object_bytes() as usize) };
        Ok(slab.read(handle.into(), bytes)?)
    };
    status(compute())
}

/// Changes the bytes of an object, published or orphan. During the call, the object is private to the cache; afterwards
/// it is published.
///
/// If the process is killed during the call, the object becomes an orphan, whose bytes may be partly old and partly
/// new. millstream_slab_get copies it like any other object; millstream_slab_next reports it as an orphan. If readers
/// must never see a partial change, put a new object and delete the old one.
///
/// # Safety
/// `cache` was made by millstream_slab_cache_new; `bytes` points to as many bytes as an object has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_set(
    cache: *const millstream_slab_cache,
    handle: millstream_slab_handle,
    bytes: *const c_void,
) -> i32 {
    let compute = || {
        if bytes.is_null() {
            return Err(Failure::Null { what: "bytes" });
        }
        // SAFETY: the caller guarantees that `cache` is NULL or a live cache.
        let mut object = unsafe { borrow("cache", cache) }?.cache.claim(handle.into())?;
        // SAFETY: `bytes` is not NULL, and the caller guarantees that it points to as many bytes as an object has.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.cast(), object.len()) };
        object.copy_from_slice(bytes);
        object.publish();
        Ok(())
    };
    status(compute())
}

/// Frees an object, whichever process put it there. Returns MILLSTREAM_SLAB_STALE if it was freed before.
///
/// # Safety
/// `cache` was made by millstream_slab_cache_new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_delete(
    cache: *const millstream_slab_cache,
    handle: millstream_slab_handle,
) -> i32 {
    // SAFETY: the caller guarantees that `cache` is NULL or a live cache.
    status(unsafe { borrow("cache", cache) }.and_then(|cache| Ok(cache.cache.free(handle.into())?)))
}

/// Returns the address of a published object or an orphan in this process, aligned to 8 bytes. It is for structures
/// with their own synchronisation, such as atomics in the object. Do not access the address after any process has freed
/// or claimed the object, or after the slab and all its caches were freed.
///
/// # Safety
/// `slab` came from a function that creates or opens one; `out` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_pointer(
    slab: *const millstream_slab,
    handle: millstream_slab_handle,
    out: *mut *mut c_void,
) -> i32 {
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write, and that `slab` is NULL or a live slab.
    unsafe { answer(out, || Ok(borrow("slab", slab)?.slab.pointer(handle.into())?.as_ptr().cast())) }
}

/// Writes a single object to the device; see millstream_slab_sync. When the call has returned, the object survives a
/// power failure with its bytes. Before that it may survive with other bytes, so pass its handle to others only
/// afterwards.
///
/// # Safety
/// `slab` came from a function that creates or opens one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_sync_object(
    slab: *const millstream_slab,
    handle: millstream_slab_handle,
) -> i32 {
    // SAFETY: the caller guarantees that `slab` is NULL or a live slab.
    status(unsafe { borrow("slab", slab) }.and_then(|slab| Ok(slab.slab.sync_object(handle.into())?)))
}
