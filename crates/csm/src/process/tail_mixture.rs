//! Likelihood ratios averaged over one side of the threshold, with more weight near it.

use super::{EProcess, Threshold};
use crate::Direction;
use crate::number::Ball;
use crate::number::exp::exp;
use crate::number::kernel::{Rate, kernel, level};
use crate::number::ln::{ln, ln_1p};
use crate::number::tails::ln_hazard;

/// The likelihood ratio averaged over alternatives on one side of the threshold. A fifth of the stake is uniform. The
/// rest has a Beta distribution with its mean at the threshold and a weight of 5/8, counted in rarer outcomes.
///
/// A beta-binomial mixture is usually tuned to the expected number of trials. But most information is in the rarer
/// outcome, so the weight of this mixture is counted in rarer outcomes. The weight is small. If an alternative's rate
/// of the rarer outcome is `u` times the threshold's, the Beta part has nearly the density `u^(-3/8) e^(-5u/8)`. This
/// covers rates from ten times smaller than the threshold's to twice as large. The uniform part covers rates far
/// beyond.
///
/// Let the hazard `h` of a Beta distribution be its density at the threshold divided by its tail. The level of each
/// part is `ln h` after the trials minus `ln h` before them. Every alternative is on this side, so each favourable
/// outcome favours all alternatives.
///
/// Cost of a level: about a microsecond.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TailMixture {
    threshold: Threshold,
    direction: Direction,
    /// The rate of favourable outcomes at the threshold.
    rate: Rate,
    parts: [Part; 2],
}

/// A Beta distribution, truncated at the threshold.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// The shape that favourable outcomes increase. `favourable` and the other shape are multiples of 1/8.
    favourable: f64,
    other: f64,
    /// The logarithm of the hazard before any trial, plus the logarithm of the part's share of the stake.
    ln_prior: Ball,
}

/// The weight of the Beta distribution, in rarer outcomes.
const RARE: f64 = 0.625;

/// The largest shape. Its sum with a count of up to `2^49` is exact.
const MAX_SHAPE: f64 = 1_099_511_627_776.0;

/// From this number of trials on, the process has no evidence.
const MAX_TRIALS: u64 = 1 << 49;

impl TailMixture {
    /// The process that collects evidence for a rate on this side of the threshold.
    pub(crate) fn new(threshold: Threshold, direction: Direction) -> Self {
        let rate = match direction {
            Direction::Above => threshold.rate,
            Direction::Below => threshold.rate.swap(),
        };
        let (x, y) = (rate.x.hi, rate.y.hi);
        let shape = |share: f64| ((RARE * 8.0 * (share / x.min(y))).round_ties_even() / 8.0).min(MAX_SHAPE);
        let part = |favourable: f64, other: f64, weight: f64| Part {
            favourable,
            other,
            ln_prior: ln_hazard(favourable, other, &rate) + ln(weight.into()),
        };
        let parts = [part(shape(x), shape(y), 0.8), part(1.0, 1.0, 0.2)];
        TailMixture { threshold, direction, rate, parts }
    }

    /// The shapes of a part's distribution after the trials.
    fn shapes(&self, part: &Part, successes: f64, failures: f64) -> (f64, f64) {
        match self.direction {
            Direction::Above => (part.favourable + successes, part.other + failures),
            Direction::Below => (part.favourable + failures, part.other + successes),
        }
    }

    /// The level of each part, its weight included.
    pub(super) fn levels(&self, successes: f64, failures: f64) -> [Ball; 2] {
        self.parts.map(|part| {
            let (favourable, other) = self.shapes(&part, successes, failures);
            ln_hazard(favourable, other, &self.rate) - part.ln_prior
        })
    }

    /// Robbins' level, which is the same for both directions.
    pub(super) fn whole(&self, successes: f64, failures: f64) -> Ball {
        level(successes, failures, &self.threshold.rate)
    }
}

/// `-ln(e^-x + e^-y)`.
fn add_up(x: f64, y: f64) -> Ball {
    let (low, high) = (x.min(y), x.max(y));
    // The contribution of the weaker part may be omitted, which is safe.
    let help = if high - low < 40.0 { ln_1p(exp(Ball::from(low) + -high)) } else { Ball::ZERO };
    -help + low
}

impl EProcess for TailMixture {
    fn direction(&self) -> Direction {
        self.direction
    }

    fn level(&self, trials: u64, successes: u64) -> f64 {
        let (s, f) = (successes as f64, (trials - successes) as f64);
        if trials >= MAX_TRIALS || !self.threshold.speaks_for(self.direction, s, f) {
            return f64::INFINITY;
        }
        let [x, y] = self.levels(s, f).map(Ball::upper);
        add_up(x, y).upper()
    }

    fn level_at_least(&self, trials: u64, successes: u64) -> f64 {
        let (s, f) = (successes as f64, (trials - successes) as f64);
        if trials >= MAX_TRIALS || !self.threshold.speaks_for(self.direction, s, f) {
            return f64::INFINITY;
        }
        // A tail is at most one, so the hazard is at least the density.
        let [x, y] = self.parts.map(|part| {
            let (favourable, other) = self.shapes(&part, s, f);
            (kernel(favourable, other, &self.rate).ln - part.ln_prior).lower()
        });
        // The part that `add_up` omits is below e^-40.
        add_up(x, y).lower() - 1e-17
    }
}
