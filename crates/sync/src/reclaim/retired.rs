//! An unreachable object, and the way to free it once no reader uses it.

use alloc::boxed::Box;

/// A destructor that runs later.
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

    /// An object with a destructor of its own kind.
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
