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

    pub(super) fn is_empty(&self) -> bool {
        // SAFETY: one thread at a time, and no reference outlives a method.
        unsafe { (*self.objects.get()).is_empty() }
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

    /// Frees up to `most` objects and tells how many. Inside of a destructor that runs from here it frees none, so
    /// that a long list of objects that own each other takes no deep stack.
    pub(super) fn free(&self, most: usize) -> usize {
        if self.freeing.replace(true) {
            return 0;
        }
        let _freeing = Freeing(&self.freeing);
        let mut freed = 0;
        while freed < most {
            // SAFETY: as above; the reference ends before the destructor runs.
            let Some(object) = (unsafe { (*self.objects.get()).pop() }) else { break };
            object.free();
            freed += 1;
        }
        freed
    }
}

/// Ends also when a destructor panics.
struct Freeing<'a>(&'a Cell<bool>);

impl Drop for Freeing<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}
