//! Objects that are copied in and out, and the cache that they come from.

use std::ffi::c_void;

use ::millstream_slab::RawCache;

use crate::slab::{millstream_slab, millstream_slab_handle};
use crate::status::{Failure, answer, borrow, release, status};

/// A thread's access to a slab. One for each thread; not to be used in the child after a fork.
pub struct millstream_slab_cache {
    pub(super) cache: RawCache,
}

/// Makes a cache for the calling thread. MILLSTREAM_SLAB_NO_CACHE if as many as the slab has room for are in use.
///
/// # Safety
/// `slab` came from a function that creates or opens one; `out` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_cache_new(
    slab: *const millstream_slab,
    out: *mut *mut millstream_slab_cache,
) -> i32 {
    let compute = || {
        // SAFETY: the caller's promise.
        let cache = unsafe { borrow("slab", slab) }?.slab.cache()?;
        Ok(Box::into_raw(Box::new(millstream_slab_cache { cache })))
    };
    // SAFETY: the caller's promise.
    unsafe { answer(out, compute) }
}

/// Gives a cache back, with the free objects in it.
///
/// # Safety
/// `cache` is NULL or was made by millstream_slab_cache_new, and neither it nor a private object of it is used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_cache_free(cache: *mut millstream_slab_cache) {
    // SAFETY: the caller's promise.
    unsafe { release(cache) }
}

/// Says who uses a cache: a worker, a job. Objects that it publishes from now on have this owner, and so have those that it
/// holds when its process dies: so what a dead worker left can be told from what others have, by millstream_slab_next. Without
/// effect where the slab was made without `owners`.
///
/// # Safety
/// `cache` was made by millstream_slab_cache_new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_set_owner(cache: *const millstream_slab_cache, owner: u64) -> i32 {
    // SAFETY: the caller's promise.
    status(unsafe { borrow("cache", cache) }.map(|cache| cache.cache.set_owner(owner)))
}

/// Allocates an object, copies its bytes from `bytes` and publishes it. A kill at any moment leaves it published with these
/// bytes, or free, or (between the two) an orphan whose bytes may be of any sort, for a survivor to find by
/// millstream_slab_next.
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
        // SAFETY: the caller's promise.
        let mut object = unsafe { borrow("cache", cache) }?.cache.alloc()?;
        // SAFETY: not NULL, and the caller's promise.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.cast(), object.len()) };
        object.copy_from_slice(bytes);
        Ok(object.publish().into())
    };
    // SAFETY: the caller's promise.
    unsafe { answer(out, compute) }
}

/// Copies an object, published or orphan, to `bytes`. MILLSTREAM_SLAB_STALE if it was freed, even while it was copied; a
/// mixture of both if somebody changed it meanwhile.
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
        // SAFETY: the caller's promise.
        let slab = &unsafe { borrow("slab", slab) }?.slab;
        if bytes.is_null() {
            return Err(Failure::Null { what: "bytes" });
        }
        // SAFETY: not NULL, and the caller's promise.
        let bytes = unsafe { std::slice::from_raw_parts_mut(bytes.cast(), slab.object_bytes() as usize) };
        Ok(slab.read(handle.into(), bytes)?)
    };
    status(compute())
}

/// Changes the bytes of an object, published or orphan, which is nobody else's meanwhile and published afterwards.
///
/// A kill in the middle leaves an orphan whose bytes may be half old, half new. millstream_slab_get copies it like any
/// other; millstream_slab_next tells that it is one. Where no half may ever be seen, put a new object and delete the old one.
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
        // SAFETY: the caller's promise.
        let mut object = unsafe { borrow("cache", cache) }?.cache.claim(handle.into())?;
        // SAFETY: not NULL, and the caller's promise.
        let bytes = unsafe { std::slice::from_raw_parts(bytes.cast(), object.len()) };
        object.copy_from_slice(bytes);
        object.publish();
        Ok(())
    };
    status(compute())
}

/// Frees an object, whoever put it there. MILLSTREAM_SLAB_STALE if it was freed before.
///
/// # Safety
/// `cache` was made by millstream_slab_cache_new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_delete(
    cache: *const millstream_slab_cache,
    handle: millstream_slab_handle,
) -> i32 {
    // SAFETY: the caller's promise.
    status(unsafe { borrow("cache", cache) }.and_then(|cache| Ok(cache.cache.free(handle.into())?)))
}

/// Where a published object or an orphan lies in this process, aligned to 8 bytes: for structures whose users have an
/// agreement of their own, such as atomics in the object. Not to be touched once somebody frees or claims the object, or
/// once the slab and all its caches were given back.
///
/// # Safety
/// `slab` came from a function that creates or opens one; `out` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_pointer(
    slab: *const millstream_slab,
    handle: millstream_slab_handle,
    out: *mut *mut c_void,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { answer(out, || Ok(borrow("slab", slab)?.slab.pointer(handle.into())?.as_ptr().cast())) }
}

/// millstream_slab_sync of one object: once it returns, the object is there after a power failure, with its bytes. Before,
/// it may be there with other bytes: tell others of its handle afterwards.
///
/// # Safety
/// `slab` came from a function that creates or opens one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_sync_object(
    slab: *const millstream_slab,
    handle: millstream_slab_handle,
) -> i32 {
    // SAFETY: the caller's promise.
    status(unsafe { borrow("slab", slab) }.and_then(|slab| Ok(slab.slab.sync_object(handle.into())?)))
}
