//! What a collector looks like from outside.

/// A collector at about one moment: each number is read once, while others go on.
///
/// A reader that does not leave shows as `behind` growing with every batch, and `garbage` with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// How many batches have been closed, plus one.
    pub epoch: u64,
    /// Threads that may pin.
    pub members: usize,
    /// Threads that are pinned now.
    pub pinned: usize,
    /// By how many epochs the oldest pinned thread is behind; 0 if none is pinned.
    pub behind: u64,
    /// Objects that were retired and not freed, without those of threads that have ended.
    pub garbage: usize,
}

/// There is no room for more garbage: a reader has held it back since long ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{garbage} objects wait to be freed, {limit} may: a reader has been pinned for {behind} epochs; let it leave or refresh its guard"
)]
pub struct Stalled {
    /// What this thread has retired and cannot free, in objects.
    pub garbage: usize,
    /// The limit that was asked for.
    pub limit: usize,
    /// By how many epochs the oldest reader is behind.
    pub behind: u64,
}
