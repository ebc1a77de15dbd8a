//! Detects whether this process made a cache, at the cost of one load.
//!
//! A child of `fork` has copies of its parent's caches and of their objects. It must not use them, because the parent
//! uses them.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::mapped::error::Error;

/// The number of forks between the process that made the first cache and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);
static IS_WATCHED: AtomicBool = AtomicBool::new(false);

/// The number of forks that led to this process.
#[inline(always)]
pub(crate) fn generation() -> u32 {
    // Relaxed: the value is written before the child has a second thread.
    FORKS.load(Ordering::Relaxed)
}

/// Starts to count forks, and returns the number of forks that led to this process. `_Fork` and the bare system call
/// are not counted.
pub(crate) fn watch() -> Result<u32, Error> {
    // This takes no lock, because a child could inherit it locked. Two threads may both register the handler, and a
    // child then counts twice; any number other than the parent's will do.
    if !IS_WATCHED.load(Ordering::Acquire) {
        // SAFETY: the handler only changes an atomic, which is async-signal-safe and so allowed in the child of a
        // multithreaded process.
        let refused = unsafe { libc::pthread_atfork(None, None, Some(in_the_child)) };
        if refused != 0 {
            return Err(Error::system("watch for forks", io::Error::from_raw_os_error(refused)));
        }
        IS_WATCHED.store(true, Ordering::Release);
    }
    Ok(generation())
}

extern "C" fn in_the_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}
