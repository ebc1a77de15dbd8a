//! The atomics, the mutex and the fences that everything here is made of: the real ones, or loom's in a model.

pub(crate) use std::sync::PoisonError;

#[cfg(loom)]
mod asymmetric;

#[cfg(not(loom))]
mod real {
    pub(crate) use millstream_fence::{Ticket, heavy, is_asymmetric, light};
    pub(crate) use std::hint::spin_loop;
    pub(crate) use std::sync::Mutex;
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

    /// A light fence for who knows that it [`is_asymmetric`].
    #[inline(always)]
    pub(crate) fn free_light() {
        std::sync::atomic::compiler_fence(Ordering::SeqCst);
    }

    /// Draws a ticket for a fence of this kind.
    pub(crate) fn ticket(fence: millstream_fence::Fence) -> Ticket {
        fence.ticket()
    }
}

#[cfg(loom)]
mod real {
    pub(crate) use super::asymmetric::{Ticket, heavy, light, light as free_light, ticket};
    pub(crate) use loom::sync::Mutex;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

    pub(crate) fn is_asymmetric() -> bool {
        true
    }

    /// Only time would pass, of which a model has none.
    pub(crate) fn spin_loop() {}
}

pub(crate) use real::*;
