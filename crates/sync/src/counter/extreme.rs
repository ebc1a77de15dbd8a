//! The largest and the smallest of many numbers.

use super::shards::Shards;

/// The largest number recorded.
///
/// Costs and progress are those of [`Counter`](super::Counter). Most numbers change nothing; recording such a number is
/// one comparison.
///
/// ```
/// use millstream_sync::counter::{Maximum, Minimum};
///
/// let (longest, shortest) = (Maximum::new(), Minimum::new());
/// for latency_ns in [310, 290, 4000] {
///     longest.record(latency_ns);
///     shortest.record(latency_ns);
/// }
/// assert_eq!((shortest.value(), longest.value()), (290, 4000));
/// ```
#[derive(Debug)]
pub struct Maximum(Shards<1>);

impl Maximum {
    /// A maximum for which no number has been recorded.
    #[must_use]
    pub const fn new() -> Self {
        Maximum(Shards::new())
    }

    /// Records a number. Wait-free, except for the first number, which takes a lock and allocates; not ordered with any
    /// other access.
    #[inline]
    pub fn record(&self, value: u64) {
        self.0.words().word(0).raise(value);
    }

    /// The largest number so far, or 0 if there is none. It never decreases. Wait-free; takes O(processors).
    #[must_use]
    pub fn value(&self) -> u64 {
        self.0.words().word(0).copies().max().unwrap_or(0)
    }
}

impl Default for Maximum {
    fn default() -> Self {
        Self::new()
    }
}

/// The smallest number recorded; otherwise like [`Maximum`].
#[derive(Debug)]
pub struct Minimum(Maximum);

impl Minimum {
    /// A minimum for which no number has been recorded.
    #[must_use]
    pub const fn new() -> Self {
        Minimum(Maximum::new())
    }

    /// Records a number; otherwise like [`Maximum::record`].
    #[inline]
    pub fn record(&self, value: u64) {
        // The complement reverses the order.
        self.0.record(!value);
    }

    /// The smallest number so far, or [`u64::MAX`] if there is none. It never increases. Wait-free; takes
    /// O(processors).
    #[must_use]
    pub fn value(&self) -> u64 {
        !self.0.value()
    }
}

impl Default for Minimum {
    fn default() -> Self {
        Self::new()
    }
}
