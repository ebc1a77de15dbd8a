//! Opening a slab, and reading the properties that it was created with.

use std::ffi::c_char;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use ::millstream_slab::{Error, RawSlab};

use crate::slab::millstream_slab;
use crate::status::{Failure, answer, borrow, file_path, release};

/// The system's error number for an invalid descriptor.
const EBADF: i32 = 9;

/// A program that opens a slab passes no numbers, so a number out of range comes from the file, and the slab is
/// damaged.
fn opened(outcome: Result<RawSlab, Error>) -> Result<*mut millstream_slab, Failure> {
    outcome.map(millstream_slab::give).map_err(|error| match error {
        Error::OutOfRange { .. } => Failure::Header(error),
        error => error.into(),
    })
}

/// Opens the slab in a file, and recovers it if its last users died.
///
/// If another process is rebuilding the free list, the function waits for at most ten seconds, or 0.1 s while that
/// process is stopped. Then it returns MILLSTREAM_SLAB_BUSY: try again. MILLSTREAM_SLAB_UNTRUSTED means that the file
/// belongs to another user, or that other users may write to it and so truncate it. MILLSTREAM_SLAB_SYSTEM with the
/// error number ENOENT means that there is no file. After MILLSTREAM_SLAB_NOT_A_SLAB, MILLSTREAM_SLAB_VERSION or
/// MILLSTREAM_SLAB_DAMAGED, trying again does not help.
///
/// # Safety
/// `path` is a C string; `out` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_open(path: *const c_char, out: *mut *mut millstream_slab) -> i32 {
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write, and that `path` is NULL or a C string.
    unsafe { answer(out, || opened(RawSlab::open(file_path(path)?))) }
}

/// Opens the slab in a file that is open for reading and writing, such as a memfd received from another process. The
/// call trusts every user that may write to the file. The function does not close the descriptor; the caller may close
/// it at any time.
///
/// # Safety
/// `out` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_open_fd(fd: i32, out: *mut *mut millstream_slab) -> i32 {
    let compute = || {
        let copy = if fd < 0 {
            Err(io::Error::from_raw_os_error(EBADF))
        } else {
            // SAFETY: the borrowed descriptor is used only to duplicate it, which the system refuses if it is not open.
            unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned()
        };
        let copy = copy.map_err(|source| Error::System { what: format!("copy the descriptor {fd}"), source })?;
        opened(RawSlab::open_file(File::from(copy)))
    };
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write.
    unsafe { answer(out, compute) }
}

/// Closes a slab. The slab's objects remain, and its caches still work.
///
/// # Safety
/// `slab` is NULL or came from a function that creates or opens one, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_free(slab: *mut millstream_slab) {
    // SAFETY: the caller guarantees that `slab` is NULL or came from a function that makes one, and is not used
    // afterwards.
    unsafe { release(slab) }
}

/// Returns the size of an object in bytes. After opening a slab, compare it with the size of your own type: buffers
/// must have this size.
///
/// # Safety
/// `slab` came from a function that creates or opens one; `out` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_object_bytes(slab: *const millstream_slab, out: *mut u64) -> i32 {
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write, and that `slab` is NULL or a live slab.
    unsafe { answer(out, || Ok(borrow("slab", slab)?.slab.object_bytes())) }
}

/// Returns the largest number of objects.
///
/// # Safety
/// `slab` came from a function that creates or opens one; `out` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_max_objects(slab: *const millstream_slab, out: *mut u64) -> i32 {
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write, and that `slab` is NULL or a live slab.
    unsafe { answer(out, || Ok(borrow("slab", slab)?.slab.max_objects())) }
}

/// Returns the tag that the slab was created with, 0 by default.
///
/// # Safety
/// `slab` came from a function that creates or opens one; `out` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_tag(slab: *const millstream_slab, out: *mut u64) -> i32 {
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write, and that `slab` is NULL or a live slab.
    unsafe { answer(out, || Ok(borrow("slab", slab)?.slab.tag())) }
}

/// Returns the descriptor of the slab's file or memory, to pass to other processes. The slab owns it: do not close it.
///
/// # Safety
/// `slab` came from a function that creates or opens one; `out` points to an int32_t.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_fd(slab: *const millstream_slab, out: *mut i32) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that `slab` is NULL or a live slab.
        let file = unsafe { borrow("slab", slab) }?.slab.file();
        Ok(file.expect("every function of this interface makes a slab with a file").as_raw_fd())
    };
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write.
    unsafe { answer(out, compute) }
}
