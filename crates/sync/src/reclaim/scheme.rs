//! Which way a structure protects its nodes.

use crate::primitive::{AtomicPtr, Ordering};

use super::{epoch, hazard};

/// How a [`Stack`](super::Stack) or a [`Queue`](super::Queue) protects what it reads: [`Epochs`] or [`Hazards`]. The
/// structures' code is the same for both.
pub trait Scheme: sealed::Protect + Send + Sync + 'static {}

/// Protected by the process's [`epoch`](super::epoch) collector: cheapest. A thread that stops inside of an operation holds
/// back everything that is retired meanwhile.
#[derive(Debug, Clone, Copy)]
pub struct Epochs;

/// Protected by the process's [`hazard`](super::hazard) domain: garbage is bounded even if threads stop.
#[derive(Debug, Clone, Copy)]
pub struct Hazards;

impl Scheme for Epochs {}
impl Scheme for Hazards {}

pub(super) mod sealed {
    use super::AtomicPtr;

    pub trait Protect {
        /// Runs an operation whose protected objects stay until it returns.
        fn section<R>(work: impl FnOnce(&Self::Section<'_>) -> R) -> R;
        type Section<'s>: Section;
    }

    /// An operation under way.
    pub trait Section {
        /// What `source` holds, kept until `place` protects something else. There are two places.
        fn protect<T>(&self, place: usize, source: &AtomicPtr<T>) -> *mut T;

        /// May run destructors, which use the same places: nothing that is protected may be used afterwards.
        ///
        /// # Safety
        /// Made by a box, not reachable any more, retired once; may be freed on any thread at any later time.
        unsafe fn retire<T>(&self, object: *mut T);
    }
}

impl sealed::Protect for Epochs {
    type Section<'s> = epoch::Guard<'static>;

    #[inline(always)]
    fn section<R>(work: impl FnOnce(&Self::Section<'_>) -> R) -> R {
        work(&epoch::pin())
    }
}

impl sealed::Section for epoch::Guard<'static> {
    #[inline(always)]
    fn protect<T>(&self, _place: usize, source: &AtomicPtr<T>) -> *mut T {
        source.load(Ordering::Acquire)
    }

    #[inline(always)]
    unsafe fn retire<T>(&self, object: *mut T) {
        // SAFETY: the caller's promise.
        unsafe { epoch::Guard::retire(self, object) }
    }
}

/// A thread's hazards and its garbage.
pub struct Places<'s> {
    hazards: &'s [hazard::Hazard<'static>; 2],
    local: &'s hazard::Local<'static>,
}

impl sealed::Protect for Hazards {
    type Section<'s> = Places<'s>;

    #[inline(always)]
    fn section<R>(work: impl FnOnce(&Self::Section<'_>) -> R) -> R {
        hazard::with_hazards(|hazards, local| work(&Places { hazards, local }))
    }
}

impl sealed::Section for Places<'_> {
    #[inline(always)]
    fn protect<T>(&self, place: usize, source: &AtomicPtr<T>) -> *mut T {
        self.hazards[place].protect_raw(source)
    }

    #[inline(always)]
    unsafe fn retire<T>(&self, object: *mut T) {
        // SAFETY: the caller's promise.
        unsafe { self.local.retire(object) }
    }
}
