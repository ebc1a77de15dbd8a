//! Containment of destructors that panic.

use std::any::Any;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

/// The first panic of several destructors that run one after another. The panic hook reports every panic.
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct Panic(Option<Box<dyn Any + Send>>);

impl Panic {
    /// Drops a value. If its destructor panics, this keeps the panic and returns, so that other destructors still run.
    pub(crate) fn contain_drop<T>(&mut self, value: T) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
            match self.0 {
                None => self.0 = Some(payload),
                // The payload is leaked, because its destructor may panic, too.
                Some(_) => mem::forget(payload),
            }
        }
    }

    /// Resumes the panic, unless the thread is panicking already.
    pub(crate) fn resume(mut self) {
        if let Some(payload) = self.0.take()
            && !thread::panicking()
        {
            resume_unwind(payload);
        }
    }

    /// Discards the panic, in a thread that did not cause it.
    pub(crate) fn end(self) {
        // The payload is leaked, because its destructor may panic, too.
        mem::forget(self);
    }
}
