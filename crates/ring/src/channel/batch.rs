//! A vector whose values leave from the front.

use std::ptr;

/// Values that are moved out one run after the other; the rest moves to the front once, at the end.
#[derive(Debug)]
pub(super) struct Batch<'a, T> {
    /// Its length is zero meanwhile: should anything panic, values are leaked, not dropped twice.
    values: &'a mut Vec<T>,
    given: usize,
    len: usize,
}

impl<'a, T> Batch<'a, T> {
    pub(super) fn of(values: &'a mut Vec<T>) -> Self {
        let len = values.len();
        // SAFETY: shorter than before; what is beyond is still there, and ours to account for.
        unsafe { values.set_len(0) };
        Batch { values, given: 0, len }
    }

    /// How many values are left.
    pub(super) fn left(&self) -> usize {
        self.len - self.given
    }

    /// The next `n` values, to be moved out before anything else happens to the batch.
    ///
    /// # Panics
    /// When there are not as many.
    pub(super) fn give_up(&mut self, n: usize) -> *const T {
        assert!(n <= self.left(), "{n} values wanted, {} left", self.left());
        // SAFETY: within the vector's allocation.
        let values = unsafe { self.values.as_ptr().add(self.given) };
        self.given += n;
        values
    }
}

impl<T> Drop for Batch<'_, T> {
    fn drop(&mut self) {
        let left = self.left();
        // SAFETY: the values from `given` on were not moved out, and there are `left` of them.
        unsafe {
            ptr::copy(self.values.as_ptr().add(self.given), self.values.as_mut_ptr(), left);
            self.values.set_len(left);
        }
    }
}
