//! The outcome of a fiber: passes the result from the fiber to its handle.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU8,
    Ordering::{AcqRel, Acquire, Relaxed},
};

use crate::contained::discard;
use crate::error::JoinError;
use crate::scope::ScopeState;

/// The fiber has stored no result yet, and its handle still exists.
const OPEN: u8 = 0;
/// The fiber has stored its result, which now belongs to the handle.
const READY: u8 = 1;
/// The handle is gone, or has taken the result.
const DETACHED: u8 = 2;

/// A fiber's result. Either the fiber drops the result before its scope ends, or the result belongs to the handle.
pub(crate) struct Outcome<T> {
    stage: AtomicU8,
    result: UnsafeCell<Option<Result<T, JoinError>>>,
    scope: Option<Arc<ScopeState>>,
}

impl<T> Outcome<T> {
    pub(crate) fn new(scope: Option<Arc<ScopeState>>) -> Self {
        Outcome { stage: AtomicU8::new(OPEN), result: UnsafeCell::new(None), scope }
    }

    pub(crate) fn scope(&self) -> Option<&Arc<ScopeState>> {
        self.scope.as_ref()
    }

    /// Stores the result.
    ///
    /// # Safety
    /// Only the fiber calls this, before [`leave`](Self::leave).
    pub(crate) unsafe fn put(&self, result: Result<T, JoinError>) {
        // SAFETY: before the exchange in `leave`, only the fiber uses the result.
        unsafe { *self.result.get() = Some(result) };
    }

    /// Passes the result to the handle. If the handle is gone, drops the result; a panic of its destructor is caught.
    ///
    /// # Safety
    /// Only the fiber calls this, once.
    pub(crate) unsafe fn leave(&self) {
        // Release publishes the result to the handle; acquire pairs with the release in `detach`.
        if self.stage.swap(READY, AcqRel) == DETACHED {
            // SAFETY: the handle is gone, so the result still belongs to the fiber.
            discard(Abandoned { outcome: self, result: unsafe { (*self.result.get()).take() } });
        }
    }

    /// Takes the result.
    ///
    /// # Safety
    /// The fiber has ended, and the caller has its only handle.
    pub(crate) unsafe fn take(&self) -> Result<T, JoinError> {
        // Acquire pairs with the release in `leave`.
        assert_eq!(self.stage.load(Acquire), READY, "a fiber that has ended has left a result");
        // Relaxed: only the handle reads the stage from now on.
        self.stage.store(DETACHED, Relaxed);
        // SAFETY: the result belongs to the handle.
        unsafe { (*self.result.get()).take() }.expect("a result is taken once")
    }

    /// Marks the handle as gone, and drops the result if the fiber has stored one.
    pub(crate) fn detach(&self) {
        // Acquire pairs with the release in `leave`, and release pairs with the acquire in `leave`.
        if self.stage.load(Relaxed) != DETACHED && self.stage.swap(DETACHED, AcqRel) == READY {
            // SAFETY: the result belongs to the handle.
            drop(Abandoned { outcome: self, result: unsafe { (*self.result.get()).take() } });
        }
    }
}

/// A result that is dropped because no joiner took it. If it is a panic, the fiber's scope will panic at its end.
struct Abandoned<'a, T> {
    outcome: &'a Outcome<T>,
    result: Option<Result<T, JoinError>>,
}

impl<T> Drop for Abandoned<'_, T> {
    fn drop(&mut self) {
        if let (Some(scope), Some(Err(JoinError::Panicked(_)))) = (&self.outcome.scope, &self.result) {
            scope.note_panic();
        }
    }
}
