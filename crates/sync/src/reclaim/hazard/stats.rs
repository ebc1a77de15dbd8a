//! Statistics of a domain.

/// The state of a domain at about one moment: each number is read once, while other threads go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// The number of slots, which is the largest number of [`Hazard`](super::Hazard)s at one time.
    pub hazards: usize,
    /// The number of slots that protect an object now.
    pub protecting: usize,
    /// The number of objects retired and not yet freed.
    pub garbage: usize,
}
