//! Retired objects. They are unreachable, and are freed a few at a time when no reader uses them any longer. So no
//! single `retire` pays for a whole batch, and memory returns to the allocator at the rate at which it is requested.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cell::{Cell, UnsafeCell};

/// An unreachable object and its destructor.
pub(super) struct Retired {
    object: *mut (),
    free: unsafe fn(*mut ()),
}

// SAFETY: the thread that retires an object promises that any thread may free it.
unsafe impl Send for Retired {}

impl Retired {
    /// A box that is freed later.
    ///
    /// # Safety
    /// `object` came from [`Box::into_raw`], nothing else frees it, and it may be freed on any thread at any later
    /// time.
    pub(super) unsafe fn boxed<T>(object: *mut T) -> Self {
        unsafe fn free<T>(object: *mut ()) {
            // SAFETY: `boxed` requires that the pointer came from a box of this type and is freed here only.
            drop(unsafe { Box::from_raw(object.cast::<T>()) });
        }
        Retired { object: object.cast(), free: free::<T> }
    }

    /// An object that `free(object)` frees.
    ///
    /// # Safety
    /// `free(object)` may be called once, on any thread at any later time.
    pub(super) unsafe fn with(object: *mut (), free: unsafe fn(*mut ())) -> Self {
        Retired { object, free }
    }

    #[cfg(feature = "std")]
    pub(super) fn closure<F: FnOnce() + Send + 'static>(closure: F) -> Self {
        unsafe fn call<F: FnOnce()>(closure: *mut ()) {
            // SAFETY: the pointer comes from a box of this type below, and `free` consumes the value, so this runs
            // once.
            (unsafe { Box::from_raw(closure.cast::<F>()) })();
        }
        Retired { object: Box::into_raw(Box::new(closure)).cast(), free: call::<F> }
    }

    /// The address that a hazard pointer to the object holds.
    pub(super) fn address(&self) -> *mut () {
        self.object
    }

    /// Runs the destructor.
    pub(super) fn free(self) {
        // SAFETY: the constructor's caller permitted one call, and this consumes `self`.
        unsafe { (self.free)(self.object) }
    }
}

/// The objects of one thread that may be freed. Destructors may retire further objects, and so call back into this
/// type.
pub(super) struct Ready {
    objects: UnsafeCell<Vec<Retired>>,
    freeing: Cell<bool>,
}

impl Ready {
    pub(super) fn new() -> Self {
        Ready { objects: UnsafeCell::new(Vec::new()), freeing: Cell::new(false) }
    }

    pub(super) fn len(&self) -> usize {
        // SAFETY: only the thread that owns the record with these objects calls this, and no reference outlives a
        // method.
        unsafe { (*self.objects.get()).len() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the caller is a destructor that `free` runs.
    pub(super) fn is_freeing(&self) -> bool {
        self.freeing.get()
    }

    /// Moves all of `objects` here. If there are none here yet, swaps the vectors, so `objects` keeps some memory.
    pub(super) fn take_in(&self, objects: &mut Vec<Retired>) {
        // SAFETY: only the thread that owns the record with these objects calls this, and no reference outlives a
        // method.
        let ready = unsafe { &mut *self.objects.get() };
        if ready.is_empty() {
            core::mem::swap(ready, objects);
        } else {
            ready.append(objects);
        }
    }

    /// Moves all objects out.
    #[cfg(feature = "std")]
    pub(super) fn take_out(&self) -> Vec<Retired> {
        // SAFETY: only the thread that owns the record with these objects calls this, and no reference outlives a
        // method.
        core::mem::take(unsafe { &mut *self.objects.get() })
    }

    /// Frees up to `most` objects. Calls `leaves` before each, so that the owner's count is right even if a destructor
    /// panics. A call from a destructor that this function runs does not free any, so a long list of objects that own
    /// each other causes no deep recursion.
    pub(super) fn free(&self, most: usize, leaves: impl Fn()) {
        if self.freeing.replace(true) {
            return;
        }
        let _freeing = Freeing(&self.freeing);
        for _ in 0..most {
            // SAFETY: only the thread that owns the record with these objects calls this, and the reference ends before
            // the destructor runs.
            let Some(object) = (unsafe { (*self.objects.get()).pop() }) else { break };
            leaves();
            object.free();
        }
    }

    /// Frees, like [`free`](Ready::free), until at most `left` objects remain. This is needed if destructors retire
    /// objects faster than `free` frees them. A call from a destructor that this function runs does not free any.
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
