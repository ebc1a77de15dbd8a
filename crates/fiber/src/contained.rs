//! Runs users' destructors in code that must not unwind.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Drops a value. If its destructor panics, the panic hook reports the panic, and this function catches it.
pub(crate) fn discard<T>(value: T) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
        discard_payload(payload);
    }
}

/// Drops values one after another. If a destructor panics, the other destructors still run. The first panic resumes at the end,
/// unless the thread is panicking already. The panic hook has reported every panic by then.
pub(crate) fn drop_all<T>(values: impl IntoIterator<Item = T>) {
    let mut first = None;
    for value in values {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
            match first {
                None => first = Some(payload),
                Some(_) => discard_payload(payload),
            }
        }
    }
    match first {
        Some(payload) if std::thread::panicking() => discard_payload(payload),
        Some(payload) => resume_unwind(payload),
        None => {}
    }
}

/// A guard for code that must not unwind: dropping the guard aborts the process. After the code, the caller passes the guard to
/// `mem::forget`.
pub(crate) struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        std::process::abort();
    }
}

/// Drops a panic's payload. If the payload's destructor panics too, the second payload is leaked.
fn discard_payload(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(second);
    }
}
