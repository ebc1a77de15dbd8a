//! What a back-end is.

use crate::{global, membarrier, mprotect, symmetric};

/// A way to make the hot side's fence cheap; one file each.
#[derive(Debug)]
pub(crate) struct Backend {
    /// Its name in `MILLSTREAM_FENCE` and in [`describe`](crate::describe).
    pub(crate) name: &'static str,
    /// What happens, in one phrase, for [`describe`](crate::describe).
    pub(crate) about: &'static str,
    /// Whether the light side needs no fence instruction.
    pub(crate) asymmetric: bool,
    /// Whether the cold side's fence takes microseconds. One that takes milliseconds is issued for tickets by a
    /// thread of its own.
    pub(crate) prompt: bool,
    /// Makes the back-end ready; the error says what is missing. Called once, before the other.
    pub(crate) prepare: fn() -> Result<(), String>,
    /// The cold side's fence.
    pub(crate) heavy: fn(),
}

/// All of them, by name.
pub(crate) static ALL: [&Backend; 4] =
    [&membarrier::BACKEND, &mprotect::BACKEND, &global::BACKEND, &symmetric::BACKEND];
