//! The atomics, the mutex and the fences that everything here is made of: the real ones, or loom's in a model.

pub(crate) use std::sync::PoisonError;

#[cfg(not(loom))]
mod real {
    pub(crate) use millstream_fence::{heavy, light};
    pub(crate) use std::sync::Mutex;
    pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
}

#[cfg(loom)]
mod real {
    pub(crate) use loom::sync::Mutex;
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

    /// Loom has no asymmetric fences; the full fence on both sides promises the same.
    pub(crate) fn light() {
        fence(Ordering::SeqCst);
    }

    pub(crate) fn heavy() {
        fence(Ordering::SeqCst);
    }
}

pub(crate) use real::*;
