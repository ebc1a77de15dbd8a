//! What a back-end is.

/// A way to make the hot side's fence cheap; one file each.
pub(crate) struct Backend {
    /// Its name in `MILLSTREAM_FENCE` and in [`describe`](crate::describe).
    pub(crate) name: &'static str,
    /// What happens, in one phrase, for [`describe`](crate::describe).
    pub(crate) about: &'static str,
    /// Whether the light side needs no fence instruction.
    pub(crate) asymmetric: bool,
    /// Makes the back-end ready; the error says what is missing. Called once, before the others.
    pub(crate) prepare: fn() -> Result<(), String>,
    /// The cold side's fence.
    pub(crate) heavy: fn(),
}
