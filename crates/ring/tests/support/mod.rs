//! Helpers of randomised tests: a generator with a printed seed, and the length of a run.

mod length;
mod random;

pub(crate) use length::stress;
pub(crate) use random::Random;
