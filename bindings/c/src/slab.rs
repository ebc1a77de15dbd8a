//! Slabs of shared memory that survive `kill -9`.

use std::ffi::c_char;

use ::millstream_slab::{Error, Handle, Holder, RawCache, RawSlab};

use crate::status::{Failure, answer, borrow, release, status, text};

/// A slab: objects of one size in a file, shared by threads and processes. May be used by all threads at once.
pub struct millstream_slab {
    slab: RawSlab,
}

/// A thread's access to a slab. One for each thread; not to be used in the child after a fork.
pub struct millstream_slab_cache {
    cache: RawCache,
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

/// An allocated object, as millstream_slab_next finds it.
#[repr(C)]
pub struct millstream_slab_object {
    /// Its name.
    pub handle: millstream_slab_handle,
    /// 0: published; -1: its process died; otherwise the process that has it to itself.
    pub holder: i64,
}

/// Makes a slab of at most `max_objects` objects of `object_bytes` bytes, a multiple of 8, in a new file.
///
/// # Safety
/// `path` is a C string; `out` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_create(
    path: *const c_char,
    object_bytes: u64,
    max_objects: u64,
    out: *mut *mut millstream_slab,
) -> i32 {
    let compute = || {
        // SAFETY: the caller's promise.
        let path = unsafe { text("path", path) }?.ok_or(Failure::Null { what: "path" })?;
        // Rust rounds up; here the caller's buffers would be too short.
        if !object_bytes.is_multiple_of(8) {
            let (least, most) = (object_bytes - object_bytes % 8, object_bytes.saturating_add(8 - object_bytes % 8));
            return Err(
                Error::OutOfRange { what: "object_bytes, a multiple of 8,", found: object_bytes, least, most }.into()
            );
        }
        let slab = RawSlab::options(object_bytes, max_objects).create(path)?;
        Ok(Box::into_raw(Box::new(millstream_slab { slab })))
    };
    // SAFETY: the caller's promise.
    unsafe { answer(out, compute) }
}

/// Opens the slab in a file, whatever state its last users left it in.
///
/// # Safety
/// `path` is a C string; `out` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_open(path: *const c_char, out: *mut *mut millstream_slab) -> i32 {
    let compute = || {
        // SAFETY: the caller's promise.
        let path = unsafe { text("path", path) }?.ok_or(Failure::Null { what: "path" })?;
        let slab = RawSlab::open(path)?;
        Ok(Box::into_raw(Box::new(millstream_slab { slab })))
    };
    // SAFETY: the caller's promise.
    unsafe { answer(out, compute) }
}

/// Gives a slab back. Its objects stay, and its caches go on.
///
/// # Safety
/// `slab` is NULL or was made by millstream_slab_create or millstream_slab_open, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_free(slab: *mut millstream_slab) {
    // SAFETY: the caller's promise.
    unsafe { release(slab) }
}

/// The bytes of an object.
///
/// # Safety
/// `slab` was made by millstream_slab_create or millstream_slab_open; `out` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_object_bytes(slab: *const millstream_slab, out: *mut u64) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { answer(out, || Ok(borrow("slab", slab)?.slab.object_bytes())) }
}

/// Makes a cache for the calling thread.
///
/// # Safety
/// `slab` was made by millstream_slab_create or millstream_slab_open; `out` points to a pointer.
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
/// `cache` is NULL or was made by millstream_slab_cache_new, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_cache_free(cache: *mut millstream_slab_cache) {
    // SAFETY: the caller's promise.
    unsafe { release(cache) }
}

/// Allocates an object, copies its bytes from `bytes` and publishes it. A kill at any moment leaves it published with these
/// bytes, or free, or (between the two) for a survivor to find by millstream_slab_next.
///
/// # Safety
/// `cache` was made by millstream_slab_cache_new; `bytes` points to as many bytes as an object has; `out` points to a
/// handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_put(
    cache: *const millstream_slab_cache,
    bytes: *const u8,
    out: *mut millstream_slab_handle,
) -> i32 {
    let compute = || {
        if bytes.is_null() {
            return Err(Failure::Null { what: "bytes" });
        }
        // SAFETY: the caller's promise.
        let mut object = unsafe { borrow("cache", cache) }?.cache.alloc()?;
        // SAFETY: not NULL, and the caller's promise.
        let bytes = unsafe { std::slice::from_raw_parts(bytes, object.len()) };
        object.copy_from_slice(bytes);
        Ok(object.publish().into())
    };
    // SAFETY: the caller's promise.
    unsafe { answer(out, compute) }
}

/// Copies an object to `bytes`. MILLSTREAM_SLAB_STALE if it was freed, even while it was copied; a mixture of both if
/// somebody changed it meanwhile.
///
/// # Safety
/// `slab` was made by millstream_slab_create or millstream_slab_open; `bytes` points to as many bytes as an object has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_get(
    slab: *const millstream_slab,
    handle: millstream_slab_handle,
    bytes: *mut u8,
) -> i32 {
    let compute = || {
        // SAFETY: the caller's promise.
        let slab = &unsafe { borrow("slab", slab) }?.slab;
        if bytes.is_null() {
            return Err(Failure::Null { what: "bytes" });
        }
        // SAFETY: not NULL, and the caller's promise.
        let bytes = unsafe { std::slice::from_raw_parts_mut(bytes, slab.object_bytes() as usize) };
        Ok(slab.read(handle.into(), bytes)?)
    };
    status(compute())
}

/// Changes the bytes of an object, which is nobody else's meanwhile.
///
/// # Safety
/// `cache` was made by millstream_slab_cache_new; `bytes` points to as many bytes as an object has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_set(
    cache: *const millstream_slab_cache,
    handle: millstream_slab_handle,
    bytes: *const u8,
) -> i32 {
    let compute = || {
        if bytes.is_null() {
            return Err(Failure::Null { what: "bytes" });
        }
        // SAFETY: the caller's promise.
        let mut object = unsafe { borrow("cache", cache) }?.cache.claim(handle.into())?;
        // SAFETY: not NULL, and the caller's promise.
        let bytes = unsafe { std::slice::from_raw_parts(bytes, object.len()) };
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

/// The next allocated object whose number is `*from` or higher; raises `*from` beyond it. MILLSTREAM_SLAB_END if there is
/// none.
///
/// # Safety
/// `slab` was made by millstream_slab_create or millstream_slab_open; `from` points to a number; `out` points to an
/// object.
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
        let from = unsafe { crate::status::borrow_mut("from", from) }?;
        let object = slab.live_from(*from).next().ok_or(Failure::End)?;
        *from = object.handle.index() + 1;
        let holder = match object.holder {
            Holder::Published => 0,
            Holder::Orphan => -1,
            Holder::Process { pid } => i64::from(pid),
        };
        Ok(millstream_slab_object { handle: object.handle.into(), holder })
    };
    // SAFETY: the caller's promise.
    unsafe { answer(out, compute) }
}

/// Returns what dead processes had in their hands, while others go on; how many objects that were.
///
/// # Safety
/// `slab` was made by millstream_slab_create or millstream_slab_open; `out` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_recover(slab: *const millstream_slab, out: *mut u64) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        answer(out, || {
            let recovered = borrow("slab", slab)?.slab.recover()?;
            Ok(recovered.freed + recovered.orphans)
        })
    }
}
