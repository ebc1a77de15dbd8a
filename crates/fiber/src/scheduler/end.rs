//! The end of a runtime: its owner waits until no fiber is left, and every fiber is cancelled.
//!
//! The owner announces the end and cancels the fibers that it finds. A fiber that is spawned meanwhile must not be missed. A
//! thread outside the workers therefore asks with a fence after each spawn: either it sees the end, or the owner finds the
//! fiber. A worker asks without one, as a fence would cost more than the rest of a spawn. It may miss the end, and so it
//! asks again with a fence before it rests, and then cancels all fibers once more.

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

    /// Returns whether the end has begun. `false` means that its owner finds all fibers that the caller has spawned.
    pub(crate) fn has_begun(&self) -> bool {
        // Pairs with the fence in `begin`. The load is part of a total order as well; see `Shared::has_ended`.
        fence(SeqCst);
        self.0.load(SeqCst)
    }

    /// As [`has_begun`](Self::has_begun), without a fence: `false` says nothing.
    pub(crate) fn seems_begun(&self) -> bool {
        self.0.load(Relaxed)
    }
}
