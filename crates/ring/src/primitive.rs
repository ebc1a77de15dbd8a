//! What everything here is made of: the machine's atomics, cells, fences and pauses, or loom's in a model.

/// How much a prefetch fetches. Where lines are larger, some are asked for twice, which costs an instruction.
pub(crate) const LINE_BYTES: usize = 64;

#[cfg(not(loom))]
mod real {
    pub(crate) use millstream_fence::{heavy, light};
    pub(crate) use parking_lot::RwLock;
    pub(crate) use std::hint::spin_loop as pause;
    pub(crate) use std::sync::{Arc, atomic};
    pub(crate) use std::thread::{self, yield_now};

    /// Asks for the cache line at an address, to write to it soon. A hint: no address is wrong.
    #[inline(always)]
    pub(crate) fn prefetch_for_writing<T>(at: *const T) {
        // SAFETY: a prefetch changes nothing but what caches hold, and does not fault. All 64-bit processors of the kind
        // know the instruction, some as one that does nothing.
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        unsafe {
            std::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
        }
        // SAFETY: as above.
        #[cfg(all(target_arch = "aarch64", not(miri)))]
        unsafe {
            std::arch::asm!("prfm pstl1keep, [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
        }
        #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
        let _ = at;
    }

    /// The standard cell behind loom's interface.
    #[derive(Debug)]
    #[repr(transparent)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) fn new(value: T) -> Self {
            UnsafeCell(std::cell::UnsafeCell::new(value))
        }

        /// Lends the pointer for reading.
        #[inline(always)]
        pub(crate) fn with<R>(&self, read: impl FnOnce(*const T) -> R) -> R {
            read(self.0.get())
        }

        /// Lends the pointer for writing.
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
    // They order each other no more than the real ones do.
    pub(crate) use millstream_sync::model::{heavy, light};

    /// Loom's lock behind the interface of the one that runs. Its readers wait for who writes, not for who waits to write.
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

    /// A model has no caches.
    pub(crate) fn prefetch_for_writing<T>(_at: *const T) {}
}

pub(crate) use real::*;
