//! How long stress tests run.

/// How many times the usual length the stress tests run.
pub(crate) fn stress() -> u64 {
    std::env::var("MILLSTREAM_STRESS").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}
