//! Opening a slab, and what it was made as.

use std::ffi::c_char;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use ::millstream_slab::{Error, RawSlab};

use crate::slab::millstream_slab;
use crate::status::{Failure, answer, borrow, file_path, release};

/// What the system says of a descriptor that is none.
const EBADF: i32 = 9;

/// Who opens a slab gives no numbers: those that are out of range are the file's.
fn opened(outcome: Result<RawSlab, Error>) -> Result<*mut millstream_slab, Failure> {
    outcome.map(millstream_slab::give).map_err(|error| match error {
        Error::OutOfRange { .. } => Failure::Header(error),
        error => error.into(),
    })
}

/// Opens the slab in a file, whatever state its last users left it in.
///
/// Waits while another process rebuilds the free list, for ten seconds at most, or 0.1 s while that process is stopped: MILLSTREAM_SLAB_BUSY says to try
/// again. MILLSTREAM_SLAB_UNTRUSTED says that the file belongs to another user, or that others may write to it, and so cut it off.
/// MILLSTREAM_SLAB_SYSTEM and an error number of ENOENT say that there is no file. MILLSTREAM_SLAB_NOT_A_SLAB,
/// MILLSTREAM_SLAB_VERSION and MILLSTREAM_SLAB_DAMAGED say that trying again will not help.
///
/// # Safety
/// `path` is a C string; `out` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_open(path: *const c_char, out: *mut *mut millstream_slab) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { answer(out, || opened(RawSlab::open(file_path(path)?))) }
}

/// Opens the slab in a file that is open for reading and writing, as a memfd that was handed over is. All who may write to the file are trusted. The
/// descriptor stays the caller's, to be closed at any time.
///
/// # Safety
/// `out` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_open_fd(fd: i32, out: *mut *mut millstream_slab) -> i32 {
    let compute = || {
        let copy = if fd < 0 {
            Err(io::Error::from_raw_os_error(EBADF))
        } else {
            // SAFETY: only asked for a copy of itself, which the system refuses if it is not open.
            unsafe { BorrowedFd::borrow_raw(fd) }.try_clone_to_owned()
        };
        let copy = copy.map_err(|source| Error::System { what: format!("copy the descriptor {fd}"), source })?;
        opened(RawSlab::open_file(File::from(copy)))
    };
    // SAFETY: the caller's promise.
    unsafe { answer(out, compute) }
}

/// Gives a slab back. Its objects stay, and its caches go on.
///
/// # Safety
/// `slab` is NULL or came from a function that creates or opens one, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_free(slab: *mut millstream_slab) {
    // SAFETY: the caller's promise.
    unsafe { release(slab) }
}

/// The bytes of an object. Whoever opens a slab compares them with the size of his own type: buffers have to be as long.
///
/// # Safety
/// `slab` came from a function that creates or opens one; `out` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_object_bytes(slab: *const millstream_slab, out: *mut u64) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { answer(out, || Ok(borrow("slab", slab)?.slab.object_bytes())) }
}

/// The most objects there can be.
///
/// # Safety
/// `slab` came from a function that creates or opens one; `out` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_max_objects(slab: *const millstream_slab, out: *mut u64) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { answer(out, || Ok(borrow("slab", slab)?.slab.max_objects())) }
}

/// The tag that was given when the slab was made; 0 if none was.
///
/// # Safety
/// `slab` came from a function that creates or opens one; `out` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_tag(slab: *const millstream_slab, out: *mut u64) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { answer(out, || Ok(borrow("slab", slab)?.slab.tag())) }
}

/// The descriptor of the slab's file or memory, to be handed to other processes. It stays the slab's: do not close it.
///
/// # Safety
/// `slab` came from a function that creates or opens one; `out` points to an int32_t.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_slab_fd(slab: *const millstream_slab, out: *mut i32) -> i32 {
    let compute = || {
        // SAFETY: the caller's promise.
        let file = unsafe { borrow("slab", slab) }?.slab.file();
        Ok(file.expect("no function of this face makes a slab without a file").as_raw_fd())
    };
    // SAFETY: the caller's promise.
    unsafe { answer(out, compute) }
}
