//! A number that goes up and down.

use super::shards::Shards;

/// A current amount: the sum of all additions minus all subtractions, from any thread.
///
/// Costs and progress are those of [`Counter`](super::Counter). While other threads add and subtract, a reader may see
/// a value that the gauge never had: it may see a subtraction without the addition before it, so that the value may
/// even be negative.
///
/// ```
/// use millstream_sync::counter::Gauge;
///
/// static CONNECTIONS: Gauge = Gauge::new();
///
/// CONNECTIONS.add(2);
/// std::thread::spawn(|| CONNECTIONS.subtract(1)).join().unwrap(); // from another thread
/// assert_eq!(CONNECTIONS.value(), 1);
/// ```
#[derive(Debug)]
pub struct Gauge(Shards<1>);

impl Gauge {
    /// A gauge at zero.
    #[must_use]
    pub const fn new() -> Self {
        Gauge(Shards::new())
    }

    /// Adds `n`; wraps around. Progress and ordering are those of [`Counter::add`](super::Counter::add).
    #[inline]
    pub fn add(&self, n: i64) {
        self.0.add(0, n.cast_unsigned());
    }

    /// Subtracts `n`; otherwise like [`add`](Self::add).
    #[inline]
    pub fn subtract(&self, n: i64) {
        self.add(n.wrapping_neg());
    }

    /// The sum of all additions minus all subtractions. Wait-free; takes O(processors).
    #[must_use]
    pub fn value(&self) -> i64 {
        self.0.words().word(0).copies().fold(0, u64::wrapping_add).cast_signed()
    }
}

impl Default for Gauge {
    fn default() -> Self {
        Self::new()
    }
}
