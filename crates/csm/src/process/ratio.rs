//! Wald's sequential probability ratio test: the whole stake on one alternative.

use super::{EProcess, Threshold};
use crate::Direction;
use crate::number::Ball;

/// The likelihood ratio of one rate to the threshold.
///
/// If the true rate is one of the two, no test decides in fewer trials on average (Wald and Wolfowitz 1948). For other
/// rates the test may take long, and longest for rates midway between the two. In that case [`Blend`](super::Blend) is
/// faster.
///
/// Cost of a level: about 10 ns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LikelihoodRatio {
    direction: Direction,
    /// The amounts that a success and a failure add to the level.
    success: Ball,
    failure: Ball,
}

impl LikelihoodRatio {
    /// The process against `threshold`, whose evidence grows if `alternative` explains the outcomes better. It proves
    /// the direction from the threshold to the alternative.
    pub(crate) fn new(threshold: Threshold, alternative: Threshold) -> Self {
        let direction = if alternative.value() >= threshold.value() { Direction::Above } else { Direction::Below };
        LikelihoodRatio {
            direction,
            success: threshold.ln() - alternative.ln(),
            failure: threshold.ln_complement() - alternative.ln_complement(),
        }
    }
}

impl EProcess for LikelihoodRatio {
    fn direction(&self) -> Direction {
        self.direction
    }

    fn level(&self, trials: u64, successes: u64) -> f64 {
        (self.success * successes as f64 + self.failure * (trials - successes) as f64).upper()
    }
}
