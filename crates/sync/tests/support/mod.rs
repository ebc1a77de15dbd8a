//! What stress tests need: random numbers, how long to go on, and the same again with other fences.

mod fences;
mod length;
mod random;

pub(crate) use fences::again_with_symmetric_fences;
pub(crate) use length::stress;
pub(crate) use random::Random;
