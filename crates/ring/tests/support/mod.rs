//! What randomised tests need: a generator with a printed seed, and how long to go on.

mod length;
mod random;

pub(crate) use length::stress;
pub(crate) use random::Random;
