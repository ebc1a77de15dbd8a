//! The flow that a thread works for.

use std::cell::Cell;

thread_local! {
    /// Id of the flow that this thread works for, as a worker or as the timekeeper; 0 if none.
    static FLOW: Cell<u64> = const { Cell::new(0) };
}

/// Makes the calling thread a thread of the flow.
pub(crate) fn join(flow_id: u64) {
    FLOW.set(flow_id);
}

/// Id of the flow that the calling thread works for, if any.
pub(crate) fn own_flow() -> Option<u64> {
    Some(FLOW.get()).filter(|&flow| flow != 0)
}

/// Whether the calling thread works for the flow, as a worker or as the timekeeper. The timekeeper counts because it
/// runs wakers.
pub(crate) fn is_of(flow_id: u64) -> bool {
    FLOW.get() == flow_id
}
