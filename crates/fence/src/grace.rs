//! The numbers of heavy fences. These numbers allow one fence to serve all callers that requested a fence before it began.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use crate::backend::Backend;
use crate::stand_in;

/// The number of heavy fences that have begun, which is also the number of the latest fence.
static BEGUN: AtomicU64 = AtomicU64::new(0);
/// The largest number of any fence that has ended.
static ENDED: AtomicU64 = AtomicU64::new(0);

/// Passes a fence, or a stand-in for it, and records it.
///
/// # Errors
/// Returns the reason for the refusal if the kernel refuses the stand-ins as well. In this case, no fence was passed.
pub(crate) fn issue(backend: &Backend) -> Result<(), String> {
    if !backend.asymmetric {
        // This fence gets no number, because light fences are full fences, and no caller waits for a fence with a number; see
        // `Ticket::is_done`.
        return (backend.heavy)();
    }
    // AcqRel, followed by a full fence in the kernel. The comment in `next` explains the other side.
    let number = BEGUN.fetch_add(1, Ordering::AcqRel) + 1;
    stand_in::pass(backend)?;
    // Release pairs with the acquire in `has_ended`: everything other threads wrote before the fence is visible to a
    // thread that sees its number.
    ENDED.fetch_max(number, Ordering::Release);
    Ok(())
}

/// Returns the smallest number of a fence that is certain to begin after this call, and that therefore comes after everything the
/// caller wrote.
///
/// The caller's writes come first, then the full fence in this function, then its load of the counter. If the load reads `n`, the
/// addition that makes the counter `n + 1` comes later in the counter's order. The heavy fence with this number comes after that
/// addition. Hence it comes after the full fence here, and after everything written before this call.
pub(crate) fn next() -> u64 {
    fence(Ordering::SeqCst);
    BEGUN.load(Ordering::Relaxed) + 1
}

/// Returns whether a fence with this number or a later one has ended.
pub(crate) fn has_ended(number: u64) -> bool {
    ENDED.load(Ordering::Acquire) >= number
}
