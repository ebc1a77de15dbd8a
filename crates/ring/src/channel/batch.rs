//! A vector whose values are moved out from the front.

use std::ptr;

/// Values that are moved out from the front, several at a time. The remaining values move to the front once, on drop.
#[derive(Debug)]
pub(super) struct Batch<'a, T> {
    /// Its length is zero while the batch exists, so that after a panic values are leaked rather than dropped twice.
    values: &'a mut Vec<T>,
    given: usize,
    len: usize,
}

impl<'a, T> Batch<'a, T> {
    pub(super) fn of(values: &'a mut Vec<T>) -> Self {
        let len = values.len();
        // SAFETY: zero is within the capacity, and the batch becomes responsible for the elements beyond the length.
        unsafe { values.set_len(0) };
        Batch { values, given: 0, len }
    }

    /// The number of values left.
    pub(super) fn left(&self) -> usize {
        self.len - self.given
    }

    /// The next `n` values. The caller must move them out before it uses the batch again.
    ///
    /// # Panics
    /// If fewer than `n` values are left.
    pub(super) fn give_up(&mut self, n: usize) -> *const T {
        assert!(n <= self.left(), "{n} values wanted, {} left", self.left());
        // SAFETY: `given` is at most `len`, which is within the vector's allocation.
        let values = unsafe { self.values.as_ptr().add(self.given) };
        self.given += n;
        values
    }
}

impl<T> Drop for Batch<'_, T> {
    fn drop(&mut self) {
        let left = self.left();
        // SAFETY: the `left` values from `given` on have not been moved out.
        unsafe {
            ptr::copy(self.values.as_ptr().add(self.given), self.values.as_mut_ptr(), left);
            self.values.set_len(left);
        }
    }
}
