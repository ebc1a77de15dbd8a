//! Objects that may be freed, a few at a time: so that no single `retire` pays for a whole batch, and the allocator gets
//! memory back at the pace at which it is asked for.

use alloc::vec::Vec;
use core::cell::{Cell, UnsafeCell};

use super::retired::Retired;

/// For one thread at a time. Destructors may retire further objects, which comes back here.
pub(super) struct Ready {
    objects: UnsafeCell<Vec<Retired>>,
    freeing: Cell<bool>,
}

impl Ready {
    pub(super) fn new() -> Self {
        Ready { objects: UnsafeCell::new(Vec::new()), freeing: Cell::new(false) }
    }

    pub(super) fn len(&self) -> usize {
        // SAFETY: one thread at a time, and no reference outlives a method.
        unsafe { (*self.objects.get()).len() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the caller is a destructor that runs from here.
    pub(super) fn is_freeing(&self) -> bool {
        self.freeing.get()
    }

    /// Takes all of `objects` in and leaves room in exchange.
    pub(super) fn take_in(&self, objects: &mut Vec<Retired>) {
        // SAFETY: as above.
        let ready = unsafe { &mut *self.objects.get() };
        if ready.is_empty() {
            core::mem::swap(ready, objects);
        } else {
            ready.append(objects);
        }
    }

    /// Frees up to `most` objects. Calls `leaves` before each, so that the owner's count is right also when a destructor
    /// panics. Inside of a destructor that runs from here it frees none, so that a long list of objects that own each other takes no deep stack.
    pub(super) fn free(&self, most: usize, leaves: impl Fn()) {
        if self.freeing.replace(true) {
            return;
        }
        let _freeing = Freeing(&self.freeing);
        for _ in 0..most {
            // SAFETY: as above; the reference ends before the destructor runs.
            let Some(object) = (unsafe { (*self.objects.get()).pop() }) else { break };
            leaves();
            object.free();
        }
    }

    /// Frees, as [`free`](Ready::free) does, until at most `left` objects remain: destructors that retire make objects ready faster than a few at a
    /// time are freed. Inside of a destructor that runs from here it frees none.
    #[inline]
    pub(super) fn free_down_to(&self, left: usize, leaves: impl Fn()) {
        while self.len() > left && !self.is_freeing() {
            self.free(self.len() - left, &leaves);
        }
    }
}

/// Ends also when a destructor panics.
struct Freeing<'a>(&'a Cell<bool>);

impl Drop for Freeing<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}
