//! The atomics, the mutex and the fences on which this crate is built: the real ones, or loom's in a model.

#[cfg(feature = "std")]
pub(crate) use std::sync::PoisonError;

#[cfg(loom)]
pub(crate) mod asymmetric;

/// Defines a function that is `const`, except in a model: loom's atomics cannot be made at compile time.
macro_rules! const_fn {
    ($(#[$attribute:meta])* $visibility:vis fn $name:ident($($argument:ident: $type:ty)?) -> $out:ty $body:block) => {
        $(#[$attribute])*
        #[cfg(not(loom))]
        $visibility const fn $name($($argument: $type)?) -> $out $body

        $(#[$attribute])*
        #[cfg(loom)]
        $visibility fn $name($($argument: $type)?) -> $out $body
    };
}
pub(crate) use const_fn;

#[cfg(not(loom))]
mod real {
    pub(crate) use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
    pub(crate) use millstream_fence::{Ticket, light};

    #[cfg(feature = "std")]
    pub(crate) use millstream_fence::heavy;

    #[cfg(feature = "std")]
    pub(crate) use core::hint::spin_loop;
    #[cfg(feature = "std")]
    pub(crate) use core::sync::atomic::{AtomicU32, AtomicU64, fence};
    #[cfg(feature = "std")]
    pub(crate) use millstream_fence::is_asymmetric;
    #[cfg(feature = "std")]
    pub(crate) use std::sync::Mutex;

    /// A light fence for callers that have checked [`is_asymmetric`].
    #[cfg(feature = "std")]
    #[inline(always)]
    pub(crate) fn free_light() {
        core::sync::atomic::compiler_fence(Ordering::SeqCst);
    }

    /// Executes a heavy fence, and returns `false` only if every kind of heavy fence is refused.
    #[cfg(feature = "std")]
    pub(crate) fn try_heavy() -> bool {
        millstream_fence::Fence::FAST.try_heavy().is_ok()
    }

    /// Executes the heavy fence.
    #[cfg(not(feature = "std"))]
    pub(crate) fn try_heavy() -> bool {
        millstream_fence::heavy();
        true
    }

    /// Takes a ticket for a fence of kind `fence`.
    pub(crate) fn ticket(fence: millstream_fence::Fence) -> Ticket {
        fence.ticket()
    }
}

#[cfg(loom)]
mod real {
    pub(crate) use super::asymmetric::{Ticket, heavy, is_asymmetric, light, light as free_light, ticket, try_heavy};
    pub(crate) use loom::sync::Mutex;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

    /// Does nothing: spinning only lets time pass, and no time passes in a model.
    pub(crate) fn spin_loop() {}
}

pub(crate) use real::*;
