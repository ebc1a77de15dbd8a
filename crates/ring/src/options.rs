//! How a ring is made.

use std::sync::Arc;

use crate::wait::{Bell, WaitSet, WaitStrategy};

/// Capacity, waiting, and who else is woken. A plain number is a capacity with everything else as usual.
///
/// ```
/// use millstream_ring::{Options, WaitStrategy, channel};
///
/// let options = Options::new(64).wait_strategy(WaitStrategy::Block);
/// let (sender, receiver) = channel::mpsc::<u64>(options);
/// # drop((sender, receiver));
/// ```
#[derive(Debug, Clone)]
pub struct Options {
    pub(crate) capacity: usize,
    pub(crate) strategy: WaitStrategy,
    pub(crate) set: Option<Arc<Bell>>,
}

impl Options {
    /// A ring of `capacity` slots: a power of two for graphs, any number from 1 on for channels.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Options { capacity, strategy: WaitStrategy::default(), set: None }
    }

    /// How the ring's threads wait.
    #[must_use]
    pub fn wait_strategy(self, strategy: WaitStrategy) -> Self {
        Options { strategy, ..self }
    }

    /// Arrivals also end the waits on this set.
    #[must_use]
    pub fn wait_set(self, set: &WaitSet) -> Self {
        Options { set: Some(Arc::clone(&set.bell)), ..self }
    }
}

impl From<usize> for Options {
    fn from(capacity: usize) -> Self {
        Options::new(capacity)
    }
}
