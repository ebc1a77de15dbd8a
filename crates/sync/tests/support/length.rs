//! The length of stress tests.

/// The factor by which the stress tests run longer than usual.
pub(crate) fn stress() -> u64 {
    std::env::var("MILLSTREAM_STRESS").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}
