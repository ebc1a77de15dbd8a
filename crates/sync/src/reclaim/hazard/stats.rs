//! What a domain looks like from outside.

/// A domain at about one moment: each number is read once, while others go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Slots there are: as many as there have been [`Hazard`](super::Hazard)s at once.
    pub hazards: usize,
    /// Slots that protect an object now.
    pub protecting: usize,
    /// Objects that were retired and not freed.
    pub garbage: usize,
}
