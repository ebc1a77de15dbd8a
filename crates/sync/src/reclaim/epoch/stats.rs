//! Statistics of a collector.

/// The state of a collector at about one moment: each number is read once, while other threads go on.
///
/// A reader that does not leave shows in `behind`, which grows with every batch, as does `garbage`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// The number of closed batches, plus one.
    pub epoch: u64,
    /// The number of threads that may pin.
    pub members: usize,
    /// The number of threads that are pinned now.
    pub pinned: usize,
    /// The number of epochs by which the oldest pinned thread is behind; 0 if no thread is pinned.
    pub behind: u64,
    /// The number of objects retired and not yet freed, without those of threads that have ended.
    pub garbage: usize,
}

/// There is no room for more garbage, since a reader has been holding it back for long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{garbage} objects wait to be freed, {limit} may: a reader has been pinned for {behind} epochs; let it leave or refresh its guard"
)]
pub struct Stalled {
    /// The number of objects that this thread has retired and cannot free.
    pub garbage: usize,
    /// The limit given by the caller.
    pub limit: usize,
    /// The number of epochs by which the oldest reader is behind.
    pub behind: u64,
}
