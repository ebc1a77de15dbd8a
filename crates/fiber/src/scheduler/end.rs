//! The end of a runtime: its owner cancels every fiber and waits until none is left.
//!
//! The owner announces the end and cancels the fibers that it finds. A fiber that is spawned at the same time must be cancelled
//! as well. A thread outside the workers therefore checks for the end with a fence after each spawn: either the thread sees the
//! end, or the owner finds the fiber. A worker checks without a fence, because a fence would more than double the cost of a
//! spawn. It may miss the end, so it checks again with a fence before it sleeps. If it then sees the end, it cancels all fibers
//! once more.

use crate::primitive::{
    AtomicBool,
    Ordering::{Relaxed, SeqCst},
    fence,
};

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct End(AtomicBool);

impl End {
    pub(crate) fn new() -> Self {
        End(AtomicBool::new(false))
    }

    /// Announces the end. The owner then cancels all fibers that it finds.
    pub(crate) fn begin(&self) {
        self.0.store(true, SeqCst);
        // Pairs with the fence in `has_begun`.
        fence(SeqCst);
    }

    /// Returns whether the end has begun. `false` means that the owner will find all fibers that the caller has spawned.
    pub(crate) fn has_begun(&self) -> bool {
        // Pairs with the fence in `begin`. The load must be sequentially consistent for another reason as well; see
        // `Shared::has_ended`.
        fence(SeqCst);
        self.0.load(SeqCst)
    }

    /// Like [`has_begun`](Self::has_begun), but without a fence, so `false` proves nothing.
    pub(crate) fn seems_begun(&self) -> bool {
        self.0.load(Relaxed)
    }
}
