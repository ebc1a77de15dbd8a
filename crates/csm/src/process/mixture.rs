//! Likelihood ratios averaged over a Beta distribution; Robbins' criterion is the one over Beta(1, 1).

use super::{EProcess, Threshold};
use crate::Direction;
use crate::number::Ball;
use crate::number::exact::two_sum;
use crate::number::kernel::{kernel, level, ln_beta};

/// The likelihood ratio averaged over alternatives that are Beta distributed on the whole of (0, 1).
///
/// With prior parameters `a` and `b`, after `s` successes and `f` failures at a threshold `p`,
///
/// ```text
/// level = ln p^s (1-p)^f - ln B(a + s, b + f) + ln B(a, b)
/// ```
///
/// One more success multiplies the evidence by `m / p`, where `m = (a + s)/(a + b + s + f)` is the posterior mean. So
/// the process is evidence for "above" if `m >= p`, and for "below" if `m <= p`: from there on, each success (or
/// failure) raises both the evidence and the mean's distance from `p`. Both directions together are one test with error
/// `eps`, not two.
///
/// Cost of a level: some 100 ns.
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
    /// The uniform prior. The level is the logarithm of `(n+1) C(n, s) p^s (1-p)^(n-s)`, which is Robbins' criterion.
    pub(crate) fn robbins(threshold: Threshold, direction: Direction) -> Self {
        BetaMixture { threshold, direction, a: 1.0, b: 1.0, ln_prior: Ball::ZERO }
    }

    /// A prior with this weight, in trials, and with its mean at the threshold, up to the rounding of its parameters to
    /// eighths.
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

/// The sum, or the next float above it. It is exact for eighths up to `2^50`; beyond that, the larger shapes have a
/// smaller Beta function, which raises the level.
fn sum_up(a: f64, b: f64) -> f64 {
    let (sum, error) = two_sum(a, b);
    if error > 0.0 { sum.next_up() } else { sum }
}
