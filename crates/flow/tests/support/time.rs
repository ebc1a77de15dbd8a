//! Times in the units in which tests write them.

use std::time::Duration;

/// A duration of this many milliseconds.
pub(crate) fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
