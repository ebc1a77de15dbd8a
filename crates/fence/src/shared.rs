//! Light and heavy fences between processes that share memory.
//!
//! The command of [`heavy`](crate::heavy) reaches only the threads of its own process. The functions of this module use another
//! command, which reaches other processes as well. Every process whose threads run the hot side calls [`register`], records in
//! the shared memory whether this succeeded, and uses [`light`]. If it succeeded, the cold side calls [`heavy()`]. If not,
//! `light` is a full fence in that process, and the cold side needs only a full fence of its own.
//!
//! ```
//! use millstream_fence::shared;
//!
//! // In the process of the hot side:
//! let registered = shared::register().is_ok();
//! shared::light();
//!
//! // In the process of the cold side, which knows `registered`:
//! if registered && shared::heavy().is_ok() {
//!     // This acts as if every thread of the hot side had passed a full fence.
//! }
//! ```

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering, compiler_fence, fence};

use crate::membarrier::{GLOBAL, call};

/// Whether [`register`] succeeded in this process.
static REGISTERED: AtomicBool = AtomicBool::new(false);

/// The reason why there is no fence between processes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unavailable {
    /// The missing feature, or the kernel's refusal.
    pub reason: String,
}

impl std::fmt::Display for Unavailable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no heavy fence between processes: {}", self.reason)
    }
}

impl std::error::Error for Unavailable {}

/// Registers this process: from now until it ends, the heavy fences of all processes reach its threads.
///
/// This function makes a few system calls. From then on, this process is interrupted whenever it runs while any process on the
/// machine passes a [`heavy`] fence. A child of `fork` should call this function again.
///
/// # Errors
/// Returns an error if the kernel lacks the command (Linux < 4.16), a sandbox forbids it, or `MILLSTREAM_FENCE=symmetric`
/// disables it. [`light`] then remains a full fence.
pub fn register() -> Result<(), Unavailable> {
    available()?;
    GLOBAL.register().map_err(|reason| Unavailable { reason })?;
    // Relaxed: a thread that still reads `false` passes a full fence, which is always sufficient.
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

/// The cold side's fence between processes. It reaches every thread of each registered process. For the caller itself, it is
/// always a full fence. The caller's process need not be registered.
///
/// Blocks for as long as the kernel takes, about 10 µs.
///
/// # Errors
/// Returns an error if the kernel or a sandbox refuses the fence to this thread, which may happen even if it was allowed before.
/// Only the caller has then passed a fence.
pub fn heavy() -> Result<(), Unavailable> {
    fence(Ordering::SeqCst);
    available()?;
    let refused = |error| Unavailable { reason: format!("membarrier(GLOBAL_EXPEDITED): {error}") };
    call(libc::MEMBARRIER_CMD_GLOBAL_EXPEDITED).map(drop).map_err(refused)
}

/// Returns an error if the kernel lacks the command or the environment has disabled it. This is determined once. Whether a
/// sandbox allows the command is not checked here: each [`register`] and each [`heavy`] finds out when it issues the command.
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
    fn registering_twice_has_the_same_effect_as_once() {
        assert_eq!(register(), register());
        assert_eq!(REGISTERED.load(Ordering::Relaxed), register().is_ok());
    }

    #[test]
    fn the_heavy_fence_works_where_registration_does() {
        assert_eq!(register().is_ok(), heavy().is_ok());
    }
}
