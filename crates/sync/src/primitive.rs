//! The atomics, the mutex and the fences that everything here is made of: the real ones, or loom's in a model.

pub(crate) use std::sync::PoisonError;

#[cfg(not(loom))]
mod real {
    pub(crate) use millstream_fence::{Fence, Ticket, heavy, light};
    pub(crate) use std::hint::spin_loop;
    pub(crate) use std::sync::Mutex;
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};
}

#[cfg(loom)]
mod real {
    pub(crate) use loom::sync::Mutex;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};
    pub(crate) use millstream_fence::Fence;

    /// Only time would pass, of which a model has none.
    pub(crate) fn spin_loop() {}

    /// Loom has no asymmetric fences; the full fence on both sides promises the same.
    pub(crate) fn light() {
        fence(Ordering::SeqCst);
    }

    pub(crate) fn heavy() {
        fence(Ordering::SeqCst);
    }

    /// A fence that is passed when the ticket is asked whether it was.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Ticket;

    impl Ticket {
        pub(crate) fn is_done(self) -> bool {
            fence(Ordering::SeqCst);
            true
        }
    }
}

pub(crate) use real::*;

/// Draws a ticket for a fence of this kind.
#[cfg(not(loom))]
pub(crate) fn ticket(fence: Fence) -> Ticket {
    fence.ticket()
}

/// Draws a ticket for a fence of this kind.
#[cfg(loom)]
pub(crate) fn ticket(_fence: Fence) -> Ticket {
    Ticket
}
