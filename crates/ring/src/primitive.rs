//! The atomics, cells, fences and pauses that the crate builds on: those of the machine, or loom's in a model.

/// The number of bytes that a prefetch fetches. On machines with larger lines, some lines are requested twice, which
/// costs an instruction.
pub(crate) const LINE_BYTES: usize = 64;

#[cfg(not(loom))]
mod real {
    pub(crate) use millstream_fence::{heavy, light};
    pub(crate) use parking_lot::RwLock;
    pub(crate) use std::hint::spin_loop as pause;
    pub(crate) use std::sync::{Arc, atomic};
    pub(crate) use std::thread::{self, yield_now};

    /// Requests the cache line at an address for writing. This is a hint, so any address is valid.
    #[inline(always)]
    pub(crate) fn prefetch_for_writing<T>(at: *const T) {
        // SAFETY: a prefetch changes only the contents of caches, and does not fault. All x86-64 processors accept the
        // instruction, some as a no-op.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        unsafe {
            std::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
        }
        // SAFETY: a prefetch changes only the contents of caches, and does not fault.
        #[cfg(all(target_arch = "aarch64", not(miri)))]
        unsafe {
            std::arch::asm!("prfm pstl1keep, [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
        }
        #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
        let _ = at;
    }

    /// The standard cell with loom's interface.
    #[derive(Debug)]
    #[repr(transparent)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) fn new(value: T) -> Self {
            UnsafeCell(std::cell::UnsafeCell::new(value))
        }

        /// Passes the pointer to `read` for reading.
        #[inline(always)]
        pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
            read(self.0.get())
        }

        /// Passes the pointer to `write` for writing.
        #[inline(always)]
        pub(crate) fn with_mut<R>(&self, write: impl FnOnce(*mut T) -> R) -> R {
            write(self.0.get())
        }
    }
}

#[cfg(loom)]
mod real {
    pub(crate) use loom::cell::UnsafeCell;
    pub(crate) use loom::sync::{Arc, atomic};
    use loom::sync::{RwLockReadGuard, RwLockWriteGuard};
    pub(crate) use loom::thread::{self, yield_now, yield_now as pause};
    // As with the real fences, a light and a heavy fence order each other; two light ones do not.
    pub(crate) use millstream_sync::model::{heavy, light};

    /// Loom's lock with `parking_lot`'s interface. A reader waits for a writer that has the lock, but not for a waiting
    /// one.
    #[derive(Debug)]
    pub(crate) struct RwLock<T>(loom::sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub(crate) fn new(value: T) -> Self {
            RwLock(loom::sync::RwLock::new(value))
        }

        pub(crate) fn read_recursive(&self) -> RwLockReadGuard<'_, T> {
            self.0.read().unwrap()
        }

        pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
            self.0.write().unwrap()
        }
    }

    /// Does nothing: a model has no caches.
    pub(crate) fn prefetch_for_writing<T>(_at: *const T) {}
}

pub(crate) use real::*;
