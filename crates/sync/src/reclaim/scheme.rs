//! The way in which a structure protects its nodes.

use crate::primitive::{AtomicPtr, Ordering};

use super::{epoch, hazard};

/// The way in which a [`Stack`](super::Stack) or a [`Queue`](super::Queue) protects the nodes it reads: [`Epochs`] or
/// [`Hazards`]. The structures' code is the same for both.
pub trait Scheme: sealed::Protect + Send + Sync + 'static {}

/// Protection by the process's [`epoch`](super::epoch) collector, which is the cheapest. A thread that stops inside an
/// operation holds back every object retired in the meantime.
#[derive(Debug, Clone, Copy)]
pub struct Epochs;

/// Protection by the process's [`hazard`](super::hazard) domain: garbage is bounded even if threads stop.
#[derive(Debug, Clone, Copy)]
pub struct Hazards;

impl Scheme for Epochs {}
impl Scheme for Hazards {}

pub(super) mod sealed {
    use super::AtomicPtr;

    pub trait Protect {
        /// Runs an operation. The objects that it protects stay allocated until it returns.
        fn section<R>(work: impl FnOnce(&Self::Section<'_>) -> R) -> R;
        type Section<'s>: Section;
    }

    /// An operation in progress.
    pub trait Section {
        /// The value of `source`, kept alive until `slot` protects another object. There are two slots.
        fn protect<T>(&self, slot: usize, source: &AtomicPtr<T>) -> *mut T;

        /// Retires an object. This may run destructors, which use the same slots: no protected object may be used
        /// afterwards.
        ///
        /// # Safety
        /// The object comes from a box, is unreachable, is retired once, and may be freed on any thread at any later
        /// time.
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
    fn protect<T>(&self, _slot: usize, source: &AtomicPtr<T>) -> *mut T {
        source.load(Ordering::Acquire)
    }

    #[inline(always)]
    unsafe fn retire<T>(&self, object: *mut T) {
        // SAFETY: the caller promises what `Guard::retire` requires: a box that is unreachable, retired once, and may
        // be freed on any thread at any later time.
        unsafe { epoch::Guard::retire(self, object) }
    }
}

/// A thread's hazards and its garbage.
pub struct HazardSection<'s> {
    hazards: &'s [hazard::Hazard<'static>; 2],
    local: &'s hazard::Local<'static>,
}

impl sealed::Protect for Hazards {
    type Section<'s> = HazardSection<'s>;

    #[inline(always)]
    fn section<R>(work: impl FnOnce(&Self::Section<'_>) -> R) -> R {
        hazard::with_hazards(|hazards, local| work(&HazardSection { hazards, local }))
    }
}

impl sealed::Section for HazardSection<'_> {
    #[inline(always)]
    fn protect<T>(&self, slot: usize, source: &AtomicPtr<T>) -> *mut T {
        self.hazards[slot].protect_raw(source)
    }

    #[inline(always)]
    unsafe fn retire<T>(&self, object: *mut T) {
        // SAFETY: the caller promises what `Local::retire` requires: a box that is unreachable, retired once, and may
        // be freed on any thread at any later time.
        unsafe { self.local.retire(object) }
    }
}
