//! Durations in the units that tests use.

use std::time::Duration;

/// A duration of this many milliseconds.
pub(crate) fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
