//! Users' destructors where a panic has nowhere to go.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Drops a value. If its destructor panics, the panic hook has reported it, and the panic ends here.
pub(crate) fn discard<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        discard_payload(payload);
    }
}

/// Ends the process when it is dropped. It guards code that must not unwind, and is forgotten at its end.
pub(crate) struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        std::process::abort();
    }
}

/// Drops a panic's payload; if even its destructor panics, the second payload is leaked.
fn discard_payload(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(second);
    }
}
