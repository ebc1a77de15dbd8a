//! Parcels: private objects that move from one thread to another in the same process.

use std::ffi::c_void;

use ::millstream_slab::RawParcel;

use crate::slab::millstream_slab;
use crate::slab::object::millstream_slab_cache;
use crate::slab::private::{answer_or_none, millstream_slab_private};
use crate::status::{Failure, answer, borrow, borrow_mut, release, status};

/// Private objects that move to another thread of this process, which frees them or takes them out, with its own cache.
/// If one thread allocates objects and another frees them, a parcel is the cheapest method, in particular if the parcel
/// goes back and forth: one thread fills it and the other clears it. One thread at a time may use a parcel; pass it on
/// through a queue or a join, which order the memory accesses. To send objects to other processes, publish them.
///
/// As long as a parcel exists, it occupies one of the slab's caches. If its process dies, its objects become orphans.
/// In the child of a fork, its functions return MILLSTREAM_SLAB_UNUSABLE.
pub struct millstream_slab_parcel {
    parcel: RawParcel,
}

/// Makes an empty parcel. Returns MILLSTREAM_SLAB_NO_CACHE if all caches of the slab are in use.
///
/// # Safety
/// `slab` came from a function that creates or opens one; `out` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_parcel_new(
    slab: *const millstream_slab,
    out: *mut *mut millstream_slab_parcel,
) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that `slab` is NULL or a live slab.
        let parcel = unsafe { borrow("slab", slab) }?.slab.parcel()?;
        Ok(Box::into_raw(Box::new(millstream_slab_parcel { parcel })))
    };
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write.
    unsafe { answer(out, compute) }
}

/// Frees a parcel and the objects in it.
///
/// # Safety
/// `parcel` is NULL or was made by millstream_slab_parcel_new, and neither it nor any of its objects is used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_parcel_free(parcel: *mut millstream_slab_parcel) {
    // SAFETY: the caller guarantees that `parcel` is NULL or came from a function that makes one, and is not used
    // afterwards.
    unsafe { release(parcel) }
}

/// Sets the owner of the objects in a parcel, in case the process dies; see millstream_slab_set_owner.
///
/// # Safety
/// `parcel` was made by millstream_slab_parcel_new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_parcel_set_owner(parcel: *const millstream_slab_parcel, owner: u64) -> i32 {
    // SAFETY: the caller guarantees that `parcel` is NULL or a live parcel.
    status(unsafe { borrow("parcel", parcel) }.map(|parcel| parcel.parcel.set_owner(owner)))
}

/// Returns the number of objects in a parcel.
///
/// # Safety
/// `parcel` was made by millstream_slab_parcel_new; `out` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_parcel_objects(parcel: *const millstream_slab_parcel, out: *mut u64) -> i32 {
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write, and that `parcel` is NULL or a live parcel.
    unsafe { answer(out, || Ok(borrow("parcel", parcel)?.parcel.len() as u64)) }
}

/// Returns the number of free objects that a parcel has retained since it was cleared.
///
/// # Safety
/// `parcel` was made by millstream_slab_parcel_new; `out` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_parcel_kept(parcel: *const millstream_slab_parcel, out: *mut u64) -> i32 {
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write, and that `parcel` is NULL or a live parcel.
    unsafe { answer(out, || Ok(borrow("parcel", parcel)?.parcel.kept() as u64)) }
}

/// Puts a private object into a parcel; afterwards `object->bytes` is NULL. An object of another slab is freed, and the
/// status is MILLSTREAM_SLAB_FOREIGN.
///
/// # Safety
/// `parcel` was made by millstream_slab_parcel_new; `object` came from millstream_slab_private_new,
/// millstream_slab_private_claim or millstream_slab_parcel_pop, and the calling thread uses its cache.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_parcel_push(
    parcel: *mut millstream_slab_parcel,
    object: *mut millstream_slab_private,
) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that `parcel` is NULL or a live parcel that no other thread uses.
        let parcel = &mut unsafe { borrow_mut("parcel", parcel) }?.parcel;
        // SAFETY: the caller guarantees that `object` is NULL, empty or holds an object that was not taken through a
        // copy of the struct.
        let object = unsafe { borrow_mut("object", object)?.take() };
        Ok(parcel.push(object.ok_or(Failure::Null { what: "object->bytes" })?)?)
    };
    status(compute())
}

/// Allocates an object directly in a parcel, and stores the address of its bytes in `*bytes`. Write to the bytes before
/// you pass the parcel on. The bytes are those of the object's previous use, or 0.
///
/// # Safety
/// `parcel` was made by millstream_slab_parcel_new, and `cache`, which the calling thread uses, by
/// millstream_slab_cache_new; `bytes` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_parcel_alloc(
    parcel: *mut millstream_slab_parcel,
    cache: *const millstream_slab_cache,
    bytes: *mut *mut c_void,
) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that both are NULL or live, and that no other thread uses them.
        let (parcel, cache) = unsafe { (borrow_mut("parcel", parcel)?, borrow("cache", cache)?) };
        Ok(parcel.parcel.alloc(&cache.cache)?.as_mut_ptr().cast())
    };
    // SAFETY: the caller guarantees that `bytes` is NULL or valid for a write.
    unsafe { answer(bytes, compute) }
}

/// Takes out the object that was put in last, which is then private to `cache`. Returns MILLSTREAM_SLAB_END for an empty
/// parcel. On failure `out->bytes` is NULL.
///
/// # Safety
/// `parcel` was made by millstream_slab_parcel_new, and `cache`, which the calling thread uses and frees after the object,
/// by millstream_slab_cache_new; `out` points to a `millstream_slab_private`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_parcel_pop(
    parcel: *mut millstream_slab_parcel,
    cache: *const millstream_slab_cache,
    out: *mut millstream_slab_private,
) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that both are NULL or live, and that no other thread uses them.
        let (parcel, cache) = unsafe { (borrow_mut("parcel", parcel)?, borrow("cache", cache)?) };
        parcel.parcel.pop(&cache.cache)?.ok_or(Failure::End)
    };
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write, and that `cache` outlives the object.
    unsafe { answer_or_none(out, compute) }
}

/// Frees all objects in a parcel, into `cache`.
///
/// # Safety
/// `parcel` was made by millstream_slab_parcel_new, and `cache`, which the calling thread uses, by
/// millstream_slab_cache_new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_parcel_delete(
    parcel: *mut millstream_slab_parcel,
    cache: *const millstream_slab_cache,
) -> i32 {
    // SAFETY: the caller guarantees that both are NULL or live, and that no other thread uses them.
    unsafe { change(parcel, cache, RawParcel::free) }
}

/// Frees all objects in a parcel, and retains the free objects for the next millstream_slab_parcel_alloc. So objects
/// that one thread allocates and another frees never leave the parcel.
///
/// # Safety
/// The conditions are those of millstream_slab_parcel_delete.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_parcel_clear(
    parcel: *mut millstream_slab_parcel,
    cache: *const millstream_slab_cache,
) -> i32 {
    // SAFETY: the caller guarantees that both are NULL or live, and that no other thread uses them.
    unsafe { change(parcel, cache, RawParcel::clear) }
}

/// Returns the free objects that a parcel has retained to the slab, for all caches.
///
/// # Safety
/// The conditions are those of millstream_slab_parcel_delete.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_parcel_flush(
    parcel: *mut millstream_slab_parcel,
    cache: *const millstream_slab_cache,
) -> i32 {
    // SAFETY: the caller guarantees that both are NULL or live, and that no other thread uses them.
    unsafe { change(parcel, cache, RawParcel::flush) }
}

/// # Safety
/// Both are NULL or live, and no other thread uses them.
unsafe fn change(
    parcel: *mut millstream_slab_parcel,
    cache: *const millstream_slab_cache,
    change: impl FnOnce(&mut RawParcel, &::millstream_slab::RawCache) -> Result<(), ::millstream_slab::Error>,
) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that both are NULL or live, and that no other thread uses them.
        let (parcel, cache) = unsafe { (borrow_mut("parcel", parcel)?, borrow("cache", cache)?) };
        Ok(change(&mut parcel.parcel, &cache.cache)?)
    };
    status(compute())
}
