//! The interface of a back-end.

use crate::{barrierd, global, membarrier, mprotect, symmetric};

/// A back-end: a mechanism for heavy fences. Each back-end has a file of its own.
#[derive(Debug)]
pub(crate) struct Backend {
    /// The name in `MILLSTREAM_FENCE` and in [`Fence::describe`](crate::Fence::describe).
    pub(crate) name: &'static str,
    /// The mechanism in one phrase, for [`Fence::describe`](crate::Fence::describe).
    pub(crate) about: &'static str,
    /// Whether the light side needs no fence instruction.
    pub(crate) asymmetric: bool,
    /// The thread that passes the fences of tickets.
    pub(crate) tickets: Tickets,
    /// Prepares the back-end; the error says what is missing. Must be called before `heavy`. Calling it again is harmless.
    pub(crate) prepare: fn() -> Result<(), String>,
    /// The cold side's fence. An error is the kernel's reason for the refusal, and means that no fence was passed.
    pub(crate) heavy: fn() -> Result<(), String>,
}

/// The thread that passes a ticket's fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tickets {
    /// The first caller of `is_done`, because the fence takes only microseconds.
    AtOnce,
    /// A separate thread of this process, because the fence takes milliseconds in the kernel.
    ByThread,
    /// No thread of this process: the processors pass barriers of their own accord, and the page of `barrierd` shows when.
    ByPage,
}

/// All back-ends, by name.
pub(crate) static ALL: [&Backend; 5] =
    [&membarrier::BACKEND, &mprotect::BACKEND, &barrierd::backend::BACKEND, &global::BACKEND, &symmetric::BACKEND];
