//! Objects that may be freed, a few at a time: so no single `retire` pays for a whole batch, and the allocator gets
//! memory back at the pace of the requests.

use alloc::vec::Vec;
use core::cell::{Cell, UnsafeCell};

use super::retired::Retired;

/// The ready objects of one thread at a time. Destructors may retire further objects, and so call back into this type.
pub(super) struct Ready {
    objects: UnsafeCell<Vec<Retired>>,
    freeing: Cell<bool>,
}

impl Ready {
    pub(super) fn new() -> Self {
        Ready { objects: UnsafeCell::new(Vec::new()), freeing: Cell::new(false) }
    }

    pub(super) fn len(&self) -> usize {
        // SAFETY: one thread at a time uses this, and no reference outlives a method.
        unsafe { (*self.objects.get()).len() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the caller is a destructor that `free` runs.
    pub(super) fn is_freeing(&self) -> bool {
        self.freeing.get()
    }

    /// Takes all of `objects`, and may leave an empty vector's memory in exchange.
    pub(super) fn take_in(&self, objects: &mut Vec<Retired>) {
        // SAFETY: one thread at a time uses this, and no reference outlives a method.
        let ready = unsafe { &mut *self.objects.get() };
        if ready.is_empty() {
            core::mem::swap(ready, objects);
        } else {
            ready.append(objects);
        }
    }

    /// Frees up to `most` objects. Calls `leaves` before each, so that the owner's count is right even if a destructor
    /// panics. Inside a destructor that runs from here it frees none, so that a long list of objects that own each
    /// other takes no deep stack.
    pub(super) fn free(&self, most: usize, leaves: impl Fn()) {
        if self.freeing.replace(true) {
            return;
        }
        let _freeing = Freeing(&self.freeing);
        for _ in 0..most {
            // SAFETY: one thread at a time uses this, and the reference ends before the destructor runs.
            let Some(object) = (unsafe { (*self.objects.get()).pop() }) else { break };
            leaves();
            object.free();
        }
    }

    /// Frees, like [`free`](Ready::free), until at most `left` objects remain: destructors that retire make objects
    /// ready faster than a few at a time are freed. Inside a destructor that runs from here it frees none.
    #[inline]
    pub(super) fn free_down_to(&self, left: usize, leaves: impl Fn()) {
        while self.len() > left && !self.is_freeing() {
            self.free(self.len() - left, &leaves);
        }
    }
}

/// Clears the flag when dropped, even if a destructor panics.
struct Freeing<'a>(&'a Cell<bool>);

impl Drop for Freeing<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}
