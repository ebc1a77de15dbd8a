//! The atomics and locks of the scheduler: the real ones, or loom's in a model.

#[cfg(not(loom))]
pub(crate) use {
    parking_lot::Mutex,
    std::hint::spin_loop,
    std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence},
};

#[cfg(loom)]
pub(crate) use {
    loom::hint::spin_loop,
    loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence},
};

/// Loom's mutex with the interface of `parking_lot::Mutex`.
#[cfg(loom)]
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

#[cfg(loom)]
impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Mutex(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
        self.0.lock().expect("no thread panics under the lock")
    }
}
