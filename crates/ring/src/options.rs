//! The options of a ring.

use std::sync::Arc;

use crate::wait::{Notifier, WaitSet, WaitStrategy};

/// The capacity of a ring, the wait strategy of its threads, and the [`WaitSet`] whose waiters it wakes. A plain number
/// is a capacity, with defaults for the rest.
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
    pub(crate) set: Option<Arc<Notifier>>,
}

impl Options {
    /// A ring of `capacity` slots: a power of two for graphs, any positive number for channels.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Options { capacity, strategy: WaitStrategy::default(), set: None }
    }

    /// Sets how the ring's threads wait.
    #[must_use]
    pub fn wait_strategy(self, strategy: WaitStrategy) -> Self {
        Options { strategy, ..self }
    }

    /// Makes each event that arrives in the ring wake the waiters of this set as well.
    #[must_use]
    pub fn wait_set(self, set: &WaitSet) -> Self {
        Options { set: Some(Arc::clone(&set.notifier)), ..self }
    }
}

impl From<usize> for Options {
    fn from(capacity: usize) -> Self {
        Options::new(capacity)
    }
}
