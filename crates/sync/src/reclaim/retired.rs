//! An object that nobody can find any more, and what to do when nobody looks at it any more.

use alloc::boxed::Box;

/// A destructor that runs later.
pub(super) struct Retired {
    object: *mut (),
    free: unsafe fn(*mut ()),
}

// SAFETY: who retires an object promises that any thread may free it.
unsafe impl Send for Retired {}

impl Retired {
    /// # Safety
    /// `object` came from [`Box::into_raw`], nobody else frees it, and that may happen on any thread at any later time.
    pub(super) unsafe fn boxed<T>(object: *mut T) -> Self {
        unsafe fn free<T>(object: *mut ()) {
            // SAFETY: the promise made to `boxed`.
            drop(unsafe { Box::from_raw(object.cast::<T>()) });
        }
        Retired { object: object.cast(), free: free::<T> }
    }

    /// # Safety
    /// `free(object)` may be called once, on any thread at any later time.
    pub(super) unsafe fn with(object: *mut (), free: unsafe fn(*mut ())) -> Self {
        Retired { object, free }
    }

    #[cfg(feature = "std")]
    pub(super) fn closure<F: FnOnce() + Send + 'static>(closure: F) -> Self {
        unsafe fn call<F: FnOnce()>(closure: *mut ()) {
            // SAFETY: made from a box of this type below, and called once.
            (unsafe { Box::from_raw(closure.cast::<F>()) })();
        }
        Retired { object: Box::into_raw(Box::new(closure)).cast(), free: call::<F> }
    }

    /// What a hazard pointer to it would hold.
    pub(super) fn address(&self) -> *mut () {
        self.object
    }

    /// Runs the destructor.
    pub(super) fn free(self) {
        // SAFETY: what was promised when it was made; `self` is used up.
        unsafe { (self.free)(self.object) }
    }
}
