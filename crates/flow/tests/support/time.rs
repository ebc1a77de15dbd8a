//! Times as tests write them.

use std::time::Duration;

/// So many milliseconds.
pub(crate) fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}
