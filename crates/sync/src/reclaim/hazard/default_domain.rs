//! The process's own domain, and each thread's hazards and garbage in it.

use std::cell::Cell;
use std::ptr;

use crate::reclaim::{at_the_end_of_a_thread, process_wide};

use super::domain::{Shared, Stats};
use super::garbage::Local;
use super::pointer::Hazard;

/// The number of hazards that a thread keeps for the structures' operations. No operation needs more.
const SLOTS: usize = 2;

/// A thread's hazards and garbage.
struct Own {
    hazards: [Hazard<'static>; SLOTS],
    local: Local<'static>,
}

impl Own {
    fn new() -> Self {
        let shared = shared();
        Own { hazards: std::array::from_fn(|_| Hazard::new(&shared.hazards)), local: Local::new(shared) }
    }
}

process_wide! {
    /// This thread's hazards and garbage, or null. It has no destructor, so that reading it is one load, and so that
    /// destructors of the thread's other storage find it, too.
    static OWN: Own;
}

/// A slot of the process's domain, for one thread at a time.
///
/// Lock-free; linear in the largest number of hazards at one time.
///
/// ```
/// use std::sync::atomic::{AtomicPtr, Ordering::AcqRel};
/// use millstream_sync::reclaim::hazard;
///
/// let shared = AtomicPtr::new(Box::into_raw(Box::new(1)));
///
/// // A reader:
/// let mut hazard = hazard::hazard();
/// // SAFETY: every object taken out of `shared` is retired below, to the same domain.
/// let number = unsafe { hazard.protect(&shared) }.unwrap();
///
/// // A writer, at the same time:
/// let old = shared.swap(Box::into_raw(Box::new(2)), AcqRel);
/// // SAFETY: the object comes from a box, is unreachable now, and is retired once.
/// unsafe { hazard::retire(old) };
///
/// assert_eq!(*number, 1, "as long as it is protected");
/// # drop(number);
/// # unsafe { hazard::retire(shared.into_inner()) };
/// ```
#[must_use]
pub fn hazard() -> Hazard<'static> {
    Hazard::new(&shared().hazards)
}

/// [`Local::retire`] to the process's domain.
///
/// # Safety
/// The caller upholds the contract of [`Local::retire`].
#[inline]
pub unsafe fn retire<T>(object: *mut T) {
    // SAFETY: the caller keeps to the contract of `Local::retire`.
    with_own(|own| unsafe { own.local.retire(object) });
}

/// [`Local::flush`] of this thread's garbage in the process's domain. A thread that ends does this, too, and ends
/// normally even if a destructor panics.
pub fn flush() {
    with_own(|own| own.local.flush());
}

/// The state of the process's domain at about one moment.
#[must_use]
pub fn stats() -> Stats {
    shared().stats()
}

/// Calls `work` with this thread's hazards, and clears them. If `work` retires, it must do so last: destructors may
/// call this function again.
#[inline(always)]
pub(in crate::reclaim) fn with_hazards<R>(work: impl FnOnce(&[Hazard<'static>; SLOTS], &Local<'static>) -> R) -> R {
    with_own(|own| {
        let _cleared = Cleared(&own.hazards);
        work(&own.hazards, &own.local)
    })
}

/// Clears the hazards when dropped, even if the work panics.
struct Cleared<'a>(&'a [Hazard<'static>; SLOTS]);

impl Drop for Cleared<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.iter().for_each(Hazard::clear);
    }
}

/// Calls `work` with this thread's [`Own`]. A thread has one at a time, even while its storage is being destroyed: a
/// destructor that retires finds the [`Own`] that runs it.
#[inline(always)]
fn with_own<R>(work: impl FnOnce(&Own) -> R) -> R {
    let own = OWN.with(Cell::get);
    if own.is_null() {
        return with_new_own(work);
    }
    // SAFETY: the pointer is not null, and this thread resets it before it drops the `Own`.
    work(unsafe { &*own })
}

#[cold]
#[inline(never)]
fn with_new_own<R>(work: impl FnOnce(&Own) -> R) -> R {
    let own = Box::into_raw(Box::new(Own::new()));
    OWN.with(|current| current.set(own));
    // `try_with` fails when this thread's storage is being destroyed: then the `Own` lasts only for this call.
    let _end = AT_EXIT.try_with(|at_exit| at_exit.0.set(Some(own))).is_err().then(|| End(own));
    // SAFETY: the `Own` lives until the thread or this call ends.
    work(unsafe { &*own })
}

/// Frees the thread's reclaimable objects when the thread ends.
struct AtExit(Cell<Option<*mut Own>>);

impl Drop for AtExit {
    fn drop(&mut self) {
        if let Some(own) = self.0.get() {
            let _end = End(own);
            // SAFETY: the `Own` lives until `_end` is dropped. Destructors that run here find it like any other caller.
            let own = unsafe { &*own };
            at_the_end_of_a_thread(|| own.local.flush());
        }
    }
}

/// Resets the thread's pointer to its `Own` and drops the `Own`.
struct End(*mut Own);

impl Drop for End {
    fn drop(&mut self) {
        // This fails only in a model, whose threads lose all storage at once.
        let _reset = OWN.try_with(|current| current.set(ptr::null()));
        // SAFETY: the pointer comes from the box in `with_new_own`, and no reference to the `Own` is left.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::primitive::AtomicPtr;

    use super::*;

    #[test]
    fn nothing_is_protected_after_an_operation() {
        let source = AtomicPtr::new(Box::into_raw(Box::new(1)));
        let protecting = |hazards: &[Hazard<'_>; SLOTS]| hazards.iter().filter(|hazard| hazard.is_set()).count();
        let operation = || {
            with_hazards(|hazards, _| {
                hazards.iter().for_each(|hazard| assert!(!hazard.protect_raw(&source).is_null()));
                assert_eq!(protecting(hazards), SLOTS);
            });
        };
        operation();
        assert_eq!(with_own(|own| protecting(&own.hazards)), 0);
        let panicked = std::panic::catch_unwind(|| {
            with_hazards(|hazards, _| {
                let _object = hazards[1].protect_raw(&AtomicPtr::new(std::ptr::dangling_mut::<u64>()));
                panic!("deliberate");
            })
        });
        assert!(panicked.is_err());
        assert_eq!(with_own(|own| protecting(&own.hazards)), 0);
        // SAFETY: the pointer comes from a box, and this thread is the only one that has it.
        drop(unsafe { Box::from_raw(source.into_inner()) });
    }
}
