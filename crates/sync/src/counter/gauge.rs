//! A number that goes up and down.

use super::shards::Shards;

/// How many there are now: what was added less what was taken away, wherever that was done.
///
/// Costs and progress are those of [`Counter`](super::Counter). While others add and subtract, the value may be one that it never
/// had: it can see the end of something whose beginning it missed, and be negative for that reason.
///
/// ```
/// use millstream_sync::counter::Gauge;
///
/// static CONNECTIONS: Gauge = Gauge::new();
///
/// CONNECTIONS.add(2);
/// std::thread::spawn(|| CONNECTIONS.subtract(1)).join().unwrap(); // somewhere else
/// assert_eq!(CONNECTIONS.value(), 1);
/// ```
#[derive(Debug)]
pub struct Gauge(Shards<1>);

impl Gauge {
    /// At zero.
    #[must_use]
    pub const fn new() -> Self {
        Gauge(Shards::new())
    }

    /// Adds `n`; wraps around.
    #[inline]
    pub fn add(&self, n: i64) {
        self.0.add(0, n.cast_unsigned());
    }

    /// Takes `n` away; wraps around.
    #[inline]
    pub fn subtract(&self, n: i64) {
        self.add(n.wrapping_neg());
    }

    /// All that was added less all that was taken away. Takes O(processors).
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
