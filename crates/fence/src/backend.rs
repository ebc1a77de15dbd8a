//! What a back-end is.

use crate::{barrierd, global, membarrier, mprotect, symmetric};

/// A way to make the hot side's fence cheap; one file each.
#[derive(Debug)]
pub(crate) struct Backend {
    /// Its name in `MILLSTREAM_FENCE` and in [`describe`](crate::describe).
    pub(crate) name: &'static str,
    /// What happens, in one phrase, for [`describe`](crate::describe).
    pub(crate) about: &'static str,
    /// Whether the light side needs no fence instruction.
    pub(crate) asymmetric: bool,
    /// How its tickets are served.
    pub(crate) tickets: Tickets,
    /// Makes the back-end ready; the error says what is missing. Called before the other; once more is harmless.
    pub(crate) prepare: fn() -> Result<(), String>,
    /// The cold side's fence. The error is the kernel's reason to refuse it: then it was not passed.
    pub(crate) heavy: fn() -> Result<(), String>,
}

/// Who passes the fence that a ticket stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tickets {
    /// Whoever asks first whether it is done: the fence takes microseconds.
    AtOnce,
    /// A thread of this process: the fence takes milliseconds in the kernel.
    ByThread,
    /// Nobody: `barrierd`'s page tells when it has come to pass.
    ByPage,
}

/// All of them, by name.
pub(crate) static ALL: [&Backend; 5] =
    [&membarrier::BACKEND, &mprotect::BACKEND, &barrierd::backend::BACKEND, &global::BACKEND, &symmetric::BACKEND];
