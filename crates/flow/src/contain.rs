//! Containment of user code that runs for no particular unit: wake-ups, listeners, destructors.
//!
//! If such code panics, the panic hook reports it, and the engine's thread continues.

use std::any::Any;
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;

thread_local! {
    /// Whether this thread is running a wake-up.
    static WAKES: Cell<bool> = const { Cell::new(false) };
}

/// Runs user code. Returns `None` if it panicked.
pub(crate) fn contain<T>(code: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(code)) {
        Ok(value) => Some(value),
        Err(panic) => {
            drop_panic(panic);
            None
        }
    }
}

/// Runs a wake-up, which may poll its task at once. Returns whether the wake-up ended without a panic.
pub(crate) fn wake(waker: Contained<Waker>) -> bool {
    // On a thread that is ending, the flag may already be destroyed. No code that runs on such a thread needs the flag.
    let before = WAKES.try_with(|wakes| wakes.replace(true)).unwrap_or(true);
    let ended = contain(|| waker.into_inner().wake()).is_some();
    let _ = WAKES.try_with(|wakes| wakes.set(before));
    ended
}

/// Whether the calling thread is running a wake-up. A task that is polled in a wake-up may wait for room, because its
/// wait does not block the thread.
pub(crate) fn is_waking() -> bool {
    WAKES.try_with(Cell::get).unwrap_or(false)
}

/// Drops the payload of a panic. If its destructor panics, the payload of that second panic is leaked.
pub(crate) fn drop_panic(panic: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
        std::mem::forget(another);
    }
}

/// A user's value whose destructor may panic. The panic is contained, even while another panic unwinds.
#[derive(Debug)]
pub(crate) struct Contained<T>(ManuallyDrop<T>);

impl<T> Contained<T> {
    #[inline]
    pub(crate) fn new(value: T) -> Self {
        Contained(ManuallyDrop::new(value))
    }

    /// Returns the value. From then on, a panic of the value's destructor is not contained.
    #[inline]
    pub(crate) fn into_inner(self) -> T {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped, so the value is taken only once.
        unsafe { ManuallyDrop::take(&mut this.0) }
    }
}

impl<T> Drop for Contained<T> {
    #[inline]
    fn drop(&mut self) {
        if std::mem::needs_drop::<T>() {
            // SAFETY: no code uses the value after this destructor, which runs once.
            contain(|| unsafe { ManuallyDrop::drop(&mut self.0) });
        }
    }
}

impl<T> Deref for Contained<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Contained<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            std::panic::panic_any(Bomb);
        }
    }

    #[test]
    fn a_payload_that_panics_when_dropped_is_contained() {
        assert!(contain(|| drop(Bomb)).is_none());
    }

    #[test]
    fn a_destructor_may_panic_while_another_panic_unwinds() {
        let outer = contain(|| {
            let _value = Contained::new(Bomb);
            panic!("outer");
        });
        assert!(outer.is_none());
        assert_eq!(contain(|| Contained::new(7).into_inner()), Some(7));
    }
}
