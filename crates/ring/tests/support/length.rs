//! The length of stress tests.

/// `MILLSTREAM_STRESS`: the factor by which tests run longer than usual.
pub(crate) fn stress() -> u64 {
    std::env::var("MILLSTREAM_STRESS").ok().map_or(1, |factor| factor.parse().expect("MILLSTREAM_STRESS is a number"))
}
