//! Helpers of stress tests: random numbers, the length of a run, and repetition with other fences.

mod fences;
mod length;
mod random;

pub(crate) use fences::again_with_symmetric_fences;
pub(crate) use length::stress;
pub(crate) use random::Random;
