//! Whether this is the process that made a cache, at the price of a load.
//!
//! A child of `fork` has copies of its parent's caches and of what they hold. It must not use them: the parent does.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::mapped::error::Error;

/// How many forks have led to this process since its forerunner made the first cache.
static FORKS: AtomicU32 = AtomicU32::new(0);
static IS_WATCHED: AtomicBool = AtomicBool::new(false);

/// The number of this process among its forerunners.
#[inline(always)]
pub(crate) fn generation() -> u32 {
    // Relaxed: written before the child has a second thread.
    FORKS.load(Ordering::Relaxed)
}

/// Has children counted from now on; the number of this process. `_Fork` and the bare system call go uncounted.
pub(crate) fn watch() -> Result<u32, Error> {
    // No lock, which a child could find taken. Of two threads both may ask, and then a child counts twice: any other number will do.
    if !IS_WATCHED.load(Ordering::Acquire) {
        // SAFETY: the function only changes an atomic, which a child may do at any time.
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
