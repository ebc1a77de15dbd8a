//! What everything here is made of: the machine's atomics, cells, fences and pauses, or loom's in a model.

#[cfg(not(loom))]
mod real {
    pub(crate) use millstream_fence::{heavy, light};
    pub(crate) use std::hint::spin_loop as pause;
    pub(crate) use std::sync::{Arc, atomic};
    pub(crate) use std::thread::yield_now;

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
    pub(crate) use loom::thread::{yield_now, yield_now as pause};

    /// Loom has no asymmetric fences; the full fence on both sides promises the same.
    pub(crate) fn light() {
        atomic::fence(atomic::Ordering::SeqCst);
    }

    pub(crate) fn heavy() {
        atomic::fence(atomic::Ordering::SeqCst);
    }
}

pub(crate) use real::*;
