//! The interface of a back-end.

use crate::{barrierd, global, membarrier, mprotect, symmetric};

/// A way to make the hot side's fence cheap; each back-end has a file of its own.
#[derive(Debug)]
pub(crate) struct Backend {
    /// The name in `MILLSTREAM_FENCE` and in [`Fence::describe`](crate::Fence::describe).
    pub(crate) name: &'static str,
    /// The mechanism in one phrase, for [`Fence::describe`](crate::Fence::describe).
    pub(crate) about: &'static str,
    /// Whether the light side needs no fence instruction.
    pub(crate) asymmetric: bool,
    /// The way in which its tickets are served.
    pub(crate) tickets: Tickets,
    /// Makes the back-end ready; the error says what is missing. Must precede `heavy`; calling it again is harmless.
    pub(crate) prepare: fn() -> Result<(), String>,
    /// The cold side's fence. After an error, which is the kernel's reason for refusing, no fence was passed.
    pub(crate) heavy: fn() -> Result<(), String>,
}

/// The party that passes a ticket's fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tickets {
    /// The first caller that asks whether it is done: the fence takes microseconds.
    AtOnce,
    /// A thread of this process: the fence takes milliseconds in the kernel.
    ByThread,
    /// The processors themselves, as `barrierd`'s page shows.
    ByPage,
}

/// All back-ends, by name.
pub(crate) static ALL: [&Backend; 5] =
    [&membarrier::BACKEND, &mprotect::BACKEND, &barrierd::backend::BACKEND, &global::BACKEND, &symmetric::BACKEND];
