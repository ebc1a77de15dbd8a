//! Numbers of heavy fences, by which one fence serves all callers that asked before it began.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use crate::backend::Backend;
use crate::stand_in;

/// The number of heavy fences that have begun, which is the number of the latest.
static BEGUN: AtomicU64 = AtomicU64::new(0);
/// The largest number of a fence that has ended.
static ENDED: AtomicU64 = AtomicU64::new(0);

/// Issues a fence, or one that stands in for it, and records it.
///
/// # Errors
/// The reason for the refusal, if the stand-ins are refused, too. Then no fence was passed.
pub(crate) fn issue(backend: &Backend) -> Result<(), String> {
    if !backend.asymmetric {
        // No caller waits for its number, since the light side has full fences; see `Ticket::is_done`.
        return (backend.heavy)();
    }
    // AcqRel, and a full fence in the kernel: see `next` for the other side.
    let number = BEGUN.fetch_add(1, Ordering::AcqRel) + 1;
    stand_in::pass(backend)?;
    // Release pairs with the acquire in `has_ended`: everything other threads wrote before the fence is visible to a
    // thread that sees its number.
    ENDED.fetch_max(number, Ordering::Release);
    Ok(())
}

/// The smallest number of a fence that begins after this call, and so comes after everything the caller wrote.
///
/// The caller's writes, this full fence, and the load come in this order. If the load finds `n`, the addition that
/// makes it `n + 1` comes later in the counter's order. This fence precedes the load, and the heavy fence follows that
/// addition; so the heavy fence comes after this one, and after everything written before this call.
pub(crate) fn next() -> u64 {
    fence(Ordering::SeqCst);
    BEGUN.load(Ordering::Relaxed) + 1
}

/// Whether a fence with this number or a later one has ended.
pub(crate) fn has_ended(number: u64) -> bool {
    ENDED.load(Ordering::Acquire) >= number
}
