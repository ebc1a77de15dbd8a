//! Objects for one thread at a time. A second thread gets an error.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::status::Failure;

/// A value that one thread at a time can access.
pub(crate) struct Exclusive<T> {
    is_used: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: `with` lets only one thread at a time access the value, which may move between threads.
unsafe impl<T: Send> Sync for Exclusive<T> {}

impl<T> Exclusive<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { is_used: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Calls `work` with the value, unless another thread uses it.
    pub(crate) fn with<R>(
        &self,
        what: &'static str,
        work: impl FnOnce(&mut T) -> Result<R, Failure>,
    ) -> Result<R, Failure> {
        /// Ends the use, even if `work` panics.
        struct Used<'a>(&'a AtomicBool);

        impl Drop for Used<'_> {
            fn drop(&mut self) {
                // Release pairs with the acquire of the next user, for all changes to the value.
                self.0.store(false, Ordering::Release);
            }
        }

        // Acquire pairs with the release of the last user.
        if self.is_used.swap(true, Ordering::Acquire) {
            return Err(Failure::InUse { what });
        }
        let _used = Used(&self.is_used);
        // SAFETY: the swap found the value unused, and until `_used` is dropped every other swap finds it used.
        work(unsafe { &mut *self.value.get() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_user_is_refused_and_a_later_one_is_not() {
        let number = Exclusive::new(1);
        let outcome = number.with("number", |value| {
            assert!(matches!(number.with("number", |_| Ok(())), Err(Failure::InUse { what: "number" })));
            *value += 1;
            Err::<(), _>(Failure::End)
        });
        assert!(matches!(outcome, Err(Failure::End)));
        assert!(matches!(number.with("number", |value| Ok(*value)), Ok(2)));
    }
}
