//! How long stress tests run.

/// `MILLSTREAM_STRESS`: how many times longer than usual.
pub(crate) fn stress() -> u64 {
    std::env::var("MILLSTREAM_STRESS").ok().map_or(1, |factor| factor.parse().expect("MILLSTREAM_STRESS is a number"))
}
