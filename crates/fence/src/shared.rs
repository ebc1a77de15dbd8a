//! The same pair between processes that share memory.
//!
//! The private command of [`heavy`](crate::heavy) does not reach other processes. Here every process whose
//! threads run the hot side calls [`register`], tells the others through the shared memory whether it
//! succeeded, and uses [`light`]; the cold side calls [`heavy()`] if the hot side is registered. If it is not,
//! its `light` is a full fence, and the cold side needs no more than a full fence of its own.
//!
//! ```
//! use millstream_fence::shared;
//!
//! // In the process of the hot side:
//! let registered = shared::register().is_ok();
//! shared::light();
//!
//! // In the process of the cold side, which was told `registered`:
//! if registered && shared::heavy().is_ok() {
//!     // As if every thread of the hot side had passed a full fence.
//! }
//! ```

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering, compiler_fence, fence};

use crate::membarrier::{GLOBAL, call};

/// Whether [`register`] succeeded in this process.
static REGISTERED: AtomicBool = AtomicBool::new(false);

/// Why a fence between processes is not to be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    /// What the kernel lacks or refused.
    pub reason: String,
}

impl std::fmt::Display for Unavailable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no heavy fence between processes: {}", self.reason)
    }
}

impl std::error::Error for Unavailable {}

/// Lets the heavy fences of all processes reach the threads of this one, from now to its end.
///
/// Costs a few system calls, and from then on an interrupt whenever any process on the machine issues a [`heavy`]
/// fence while this one runs. A child of `fork` should call it again.
///
/// # Errors
/// When the kernel does not have the command (Linux < 4.16), a sandbox forbids it, or
/// `MILLSTREAM_FENCE=symmetric` turned it off. Then [`light`] stays a full fence.
pub fn register() -> Result<(), Unavailable> {
    available()?;
    GLOBAL.register().map_err(|reason| Unavailable { reason })?;
    // Relaxed: a thread that still reads `false` makes a full fence, which is never too little.
    REGISTERED.store(true, Ordering::Relaxed);
    Ok(())
}

/// The hot side's fence between processes: a compiler fence after [`register`] succeeded, otherwise a full
/// fence.
///
/// Wait-free. Cost: a load and a predicted branch, or a full fence.
///
/// ```
/// millstream_fence::shared::light();
/// ```
#[inline(always)]
pub fn light() {
    if REGISTERED.load(Ordering::Relaxed) {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// The cold side's fence between processes: reaches every thread of each process that has registered, and
/// is a full fence for the caller in any case. The caller's process need not be registered.
///
/// Blocks for as long as the kernel takes, some 10 µs.
///
/// # Errors
/// When the kernel or a sandbox does not let this thread issue it, now: it may have been allowed before. Then only the caller
/// passed a fence.
pub fn heavy() -> Result<(), Unavailable> {
    fence(Ordering::SeqCst);
    available()?;
    let refused = |error| Unavailable { reason: format!("membarrier(GLOBAL_EXPEDITED): {error}") };
    call(libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED).map(drop).map_err(refused)
}

/// Whether the kernel has the command and the environment has not turned it off; found out once. What is allowed is another
/// question, and each call answers it anew.
fn available() -> Result<(), Unavailable> {
    static AVAILABLE: OnceLock<Result<(), Unavailable>> = OnceLock::new();
    let probe = || {
        if std::env::var(crate::choice::VARIABLE).is_ok_and(|asked| asked == crate::symmetric::BACKEND.name) {
            return Err("turned off by the environment".to_owned());
        }
        GLOBAL.probe()
    };
    AVAILABLE.get_or_init(|| probe().map_err(|reason| Unavailable { reason })).clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registering_twice_is_as_good_as_once() {
        assert_eq!(register(), register());
        assert_eq!(REGISTERED.load(Ordering::Relaxed), register().is_ok());
    }

    #[test]
    fn the_heavy_fence_is_to_be_had_where_registration_is() {
        assert_eq!(register().is_ok(), heavy().is_ok());
    }
}
