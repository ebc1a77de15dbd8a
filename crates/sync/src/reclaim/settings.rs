//! The settings of reclamation: how often, and by which fence.

use millstream_fence::Fence;

/// The settings of a [`Collector`](super::epoch::Collector) or a [`Domain`](super::hazard::Domain).
///
/// ```
/// use millstream_sync::reclaim::{Fence, Settings};
/// use millstream_sync::reclaim::epoch::Collector;
///
/// // Never interrupts another core; garbage waits some milliseconds longer.
/// let collector = Collector::with(Settings { fence: Fence::QUIET, ..Settings::DEFAULT });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The number of objects that each thread retires before it executes a fence and frees those that no reader uses.
    /// With a larger batch, more objects share the cost of a fence (some 10 µs), and more memory waits to be freed. At
    /// least 1.
    pub batch: usize,
    /// The fence. [`Fence::FAST`] frees sooner; with [`Fence::QUIET`] no call waits in the kernel and no other core is
    /// interrupted. The readers' work is the same.
    pub fence: Fence,
}

impl Settings {
    /// Batches of 1024 objects, [`Fence::FAST`].
    pub const DEFAULT: Settings = Settings { batch: if cfg!(loom) { 1 } else { 1024 }, fence: Fence::FAST };
}

impl Default for Settings {
    fn default() -> Self {
        Settings::DEFAULT
    }
}
