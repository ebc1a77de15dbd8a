//! Wakers that run the test's own code at every step.

use std::sync::Arc;
use std::task::{RawWaker, RawWakerVTable, Waker};

type Hook = Box<dyn Fn() + Send + Sync>;

/// The hooks that a waker calls when it is cloned, woken and dropped.
pub(crate) struct Hooks {
    pub(crate) clone: Hook,
    pub(crate) wake: Hook,
    pub(crate) drop: Hook,
}

impl Default for Hooks {
    fn default() -> Self {
        Hooks { clone: Box::new(|| ()), wake: Box::new(|| ()), drop: Box::new(|| ()) }
    }
}

impl Hooks {
    pub(crate) fn into_waker(self) -> Waker {
        let data = Arc::into_raw(Arc::new(self)).cast();
        // SAFETY: the functions of the table satisfy a waker's contract: each waker owns a count of the hooks, which
        // any thread may use and drop.
        unsafe { Waker::from_raw(RawWaker::new(data, &TABLE)) }
    }
}

static TABLE: RawWakerVTable = RawWakerVTable::new(
    |data| {
        // SAFETY: `data` came from `Arc::into_raw`, and the waker that is cloned keeps its count.
        let hooks = unsafe { &*data.cast::<Hooks>() };
        (hooks.clone)();
        // SAFETY: `data` came from `Arc::into_raw`, and this adds the count that the new waker owns.
        unsafe { Arc::increment_strong_count(data.cast::<Hooks>()) };
        RawWaker::new(data, &TABLE)
    },
    |data| {
        // SAFETY: `data` came from `Arc::into_raw`, and the waker's count is released here.
        let hooks = unsafe { Arc::from_raw(data.cast::<Hooks>()) };
        (hooks.wake)();
    },
    |data| {
        // SAFETY: `data` came from `Arc::into_raw`, and the waker keeps its count.
        (unsafe { &*data.cast::<Hooks>() }.wake)();
    },
    |data| {
        // SAFETY: `data` came from `Arc::into_raw`, and the waker's count is released here.
        let hooks = unsafe { Arc::from_raw(data.cast::<Hooks>()) };
        (hooks.drop)();
    },
);
