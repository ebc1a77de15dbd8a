//! Likelihood ratios averaged over one side of the threshold.

use super::{EProcess, Threshold};
use crate::Direction;
use crate::number::Ball;
use crate::number::kernel::{Rate, kernel, level};
use crate::number::tails::ln_hazard;

/// The likelihood ratio averaged over alternatives that are uniform on one side of the threshold.
///
/// Robbins' prior stakes on both sides. If the threshold is 0.99 and "above" is to be proven, 99 % of the stake is on
/// the wrong one; here none is. With Robbins' level `r`, the width `w` of the side, and the share `t` of a Beta(s + 1,
/// f + 1) distribution on that side, the level is `r + ln w - ln t`.
///
/// Every alternative on a side is favoured by every favourable outcome, so the evidence grows with each of them.
///
/// Cost of a level: 140 to 170 ns, and up to 250; at once where the counts speak against.
#[derive(Debug, Clone, Copy)]
pub struct UniformTail {
    threshold: Threshold,
    direction: Direction,
    ln_width: Ball,
    /// The threshold and the favourable outcome's rate.
    rate: Rate,
    /// `-ln` of that rate.
    minus_ln_rate: Ball,
}

impl UniformTail {
    /// Evidence for a rate on this side of the threshold.
    #[must_use]
    pub fn new(threshold: Threshold, direction: Direction) -> Self {
        let (rate, ln_rate, ln_width) = match direction {
            Direction::Above => (threshold.rate, threshold.ln(), threshold.ln_complement()),
            Direction::Below => (threshold.rate.swap(), threshold.ln_complement(), threshold.ln()),
        };
        UniformTail { threshold, direction, ln_width, rate, minus_ln_rate: -ln_rate }
    }

    /// The logarithm of the side's width.
    pub(super) fn ln_width(&self) -> Ball {
        self.ln_width
    }

    /// The shapes, that of the favourable outcome first.
    fn shapes(&self, successes: f64, failures: f64) -> (f64, f64) {
        match self.direction {
            Direction::Above => (successes + 1.0, failures + 1.0),
            Direction::Below => (failures + 1.0, successes + 1.0),
        }
    }

    /// `ln t`.
    pub(super) fn ln_share(&self, successes: f64, failures: f64) -> Ball {
        let (a, b) = self.shapes(successes, failures);
        let kernel = kernel(a, b, &self.rate);
        kernel.ln() - ln_hazard(a, b, &self.rate, &kernel)
    }

    /// Whether the observed rate is not on the other side. If it is, the threshold itself explains the data best, and
    /// the level is at least zero.
    fn speaks(&self, successes: f64, failures: f64) -> bool {
        self.threshold.speaks_for(self.direction, successes, failures)
    }

    /// Robbins' level, for both directions.
    pub(super) fn whole(&self, successes: f64, failures: f64) -> Ball {
        level(successes, failures, &self.threshold.rate)
    }
}

impl EProcess for UniformTail {
    fn direction(&self) -> Direction {
        self.direction
    }

    fn level(&self, trials: u64, successes: u64) -> f64 {
        let (s, f) = (successes as f64, (trials - successes) as f64);
        if !self.speaks(s, f) {
            return f64::INFINITY;
        }
        let (a, b) = self.shapes(s, f);
        let hazard = ln_hazard(a, b, &self.rate, &kernel(a, b, &self.rate));
        (hazard + self.minus_ln_rate).upper()
    }

    fn level_at_least(&self, trials: u64, successes: u64) -> f64 {
        let (s, f) = (successes as f64, (trials - successes) as f64);
        if !self.speaks(s, f) {
            return f64::INFINITY;
        }
        // The share is at most one, and nearly so where the evidence is strong.
        (self.whole(s, f) + self.ln_width).upper()
    }
}
