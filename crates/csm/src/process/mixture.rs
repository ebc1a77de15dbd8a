//! Likelihood ratios averaged over a Beta distribution. With Beta(1, 1), this is Robbins' criterion.

use super::{EProcess, Threshold};
use crate::Direction;
use crate::number::Ball;
use crate::number::exact::two_sum;
use crate::number::kernel::{kernel, level, ln_beta};

/// The likelihood ratio averaged over a Beta distribution of alternatives on (0, 1).
///
/// With prior parameters `a` and `b`, after `s` successes and `f` failures at a threshold `p`,
///
/// ```text
/// level = ln p^s (1-p)^f - ln B(a + s, b + f) + ln B(a, b)
/// ```
///
/// A further success multiplies the evidence by `m / p`, where `m = (a + s)/(a + b + s + f)` is the posterior mean. So
/// the process is evidence for "above" if `m >= p`, and for "below" if `m <= p`. In the first case, each further
/// success raises both the evidence and the mean's distance from `p`; in the second, each further failure does. Both
/// directions together are one test with error `eps`.
///
/// Cost of a level: about 100 ns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BetaMixture {
    threshold: Threshold,
    direction: Direction,
    a: f64,
    b: f64,
    /// `ln B(a, b) - ln p^a (1-p)^b`.
    ln_prior: Ball,
}

impl BetaMixture {
    /// The process with a uniform prior. Its level is the logarithm of `(n+1) C(n, s) p^s (1-p)^(n-s)`, which is
    /// Robbins' criterion.
    pub(crate) fn robbins(threshold: Threshold, direction: Direction) -> Self {
        BetaMixture { threshold, direction, a: 1.0, b: 1.0, ln_prior: Ball::ZERO }
    }

    /// The process whose prior has its mean at the threshold and this weight, in trials. The shapes of the prior are
    /// rounded to eighths.
    ///
    /// # Panics
    /// Unless `1 <= weight <= 1e6`.
    pub(crate) fn centred(threshold: Threshold, direction: Direction, weight: f64) -> Self {
        assert!((1.0..=1e6).contains(&weight), "a prior's weight of {weight}");
        let eighths = |x: f64| (x * 8.0).round_ties_even().max(1.0) / 8.0;
        let a = eighths(threshold.value() * weight);
        let b = eighths((1.0 - threshold.value()) * weight);
        let ln_prior = ln_beta(a, b) - threshold.ln() * a - threshold.ln_complement() * b;
        BetaMixture { threshold, direction, a, b, ln_prior }
    }

    /// The weight that [`Method::Centred`](super::Method::Centred) uses, in trials.
    pub(crate) const WEIGHT: f64 = 50.0;
}

impl EProcess for BetaMixture {
    fn direction(&self) -> Direction {
        self.direction
    }

    fn level(&self, trials: u64, successes: u64) -> f64 {
        let (s, f) = (successes as f64, (trials - successes) as f64);
        let (a, b) = (sum_up(self.a, s), sum_up(self.b, f));
        if !self.threshold.speaks_for(self.direction, a, b) {
            return f64::INFINITY;
        }
        if self.a == 1.0 && self.b == 1.0 {
            return level(s, f, &self.threshold.rate).upper();
        }
        (kernel(a, b, &self.threshold.rate).ln + self.ln_prior).upper()
    }
}

/// The sum, rounded up. Exact for multiples of 1/8 up to `2^50`. Above that, a larger shape makes the Beta function
/// smaller, which raises the level and so is safe.
fn sum_up(a: f64, b: f64) -> f64 {
    let (sum, error) = two_sum(a, b);
    if error > 0.0 { sum.next_up() } else { sum }
}
