//! The atomics that the free list is made of: the machine's, or loom's in a model.

#[cfg(not(loom))]
mod real {
    pub(crate) use portable_atomic::AtomicU128;
    pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
}

#[cfg(loom)]
mod real {
    use loom::sync::Mutex;
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering, fence};

    /// Loom has no atomics of 128 bits. Under a mutex, every access is one step that acquires and releases, and the
    /// free list requires no more of its head.
    pub(crate) struct AtomicU128(Mutex<u128>);

    impl AtomicU128 {
        pub(crate) fn new(value: u128) -> Self {
            AtomicU128(Mutex::new(value))
        }

        pub(crate) fn load(&self, _: Ordering) -> u128 {
            *self.0.lock().expect("no thread of a model panics with the head in its hands")
        }

        pub(crate) fn compare_exchange(&self, old: u128, new: u128, _: Ordering, _: Ordering) -> Result<u128, u128> {
            let mut value = self.0.lock().expect("no thread of a model panics with the head in its hands");
            if *value != old {
                return Err(*value);
            }
            *value = new;
            Ok(old)
        }
    }
}

pub(crate) use real::*;
