//! Likelihood ratios averaged over one side of the threshold.

use super::{EProcess, Threshold};
use crate::Direction;
use crate::number::Ball;
use crate::number::kernel::{Rate, kernel, level};
use crate::number::tails::ln_hazard;

/// The likelihood ratio averaged over alternatives that are uniform on one side of the threshold.
///
/// Robbins' prior divides the stake between both sides. If the threshold is 0.99 and "above" is to be proven, 99 % of
/// Robbins' stake is on the wrong side. The stake of this process is entirely on the right side. Its level is
/// `r + ln w - ln t`, where `r` is Robbins' level, `w` the width of the side, and `t` the share of a Beta(s + 1, f + 1)
/// distribution on that side.
///
/// Every favourable outcome favours every alternative on the side, so the evidence grows with each such outcome.
///
/// Cost of a level: below a microsecond; almost nothing if the counts are evidence against the direction.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UniformTail {
    threshold: Threshold,
    direction: Direction,
    ln_width: Ball,
    /// The rate of favourable outcomes at the threshold.
    rate: Rate,
    /// `-ln` of `rate`.
    minus_ln_rate: Ball,
}

impl UniformTail {
    /// The process that collects evidence for a rate on this side of the threshold.
    pub(crate) fn new(threshold: Threshold, direction: Direction) -> Self {
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

    /// The shapes of the Beta distribution, that of favourable outcomes first.
    fn shapes(&self, successes: f64, failures: f64) -> (f64, f64) {
        match self.direction {
            Direction::Above => (successes + 1.0, failures + 1.0),
            Direction::Below => (failures + 1.0, successes + 1.0),
        }
    }

    /// `ln t`.
    pub(super) fn ln_share(&self, successes: f64, failures: f64) -> Ball {
        let (a, b) = self.shapes(successes, failures);
        kernel(a, b, &self.rate).ln - ln_hazard(a, b, &self.rate)
    }

    /// Whether the observed rate is on this side or at the threshold. Otherwise, the threshold explains the data better
    /// than any alternative on this side, and the level is at least zero.
    fn speaks(&self, successes: f64, failures: f64) -> bool {
        self.threshold.speaks_for(self.direction, successes, failures)
    }

    /// Robbins' level, which is the same for both directions.
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
        (ln_hazard(a, b, &self.rate) + self.minus_ln_rate).upper()
    }

    fn level_at_least(&self, trials: u64, successes: u64) -> f64 {
        let (s, f) = (successes as f64, (trials - successes) as f64);
        if !self.speaks(s, f) {
            return f64::INFINITY;
        }
        // Without `- ln t`, this is a lower bound on the level, because the share `t` is at most one. If the evidence is
        // strong, `t` is nearly one, so the bound is close.
        (self.whole(s, f) + self.ln_width).upper()
    }
}

#[cfg(test)]
mod tests {
    use num_bigint::BigInt;
    use num_traits::One;

    use super::*;
    use crate::exactly::binomial::{dyadic, pascal};
    use crate::exactly::ln::ln;
    use crate::exactly::rational::{of, power};
    use crate::exactly::size::at_least_one;

    const MAX_N: u32 = 60;

    const RATES: [f64; 8] = [0.5, 0.98, 1.0 / 3.0, 0.01, 0.999_999, 1e-300, 5e-324, 1.0 - f64::EPSILON / 2.0];

    #[test]
    fn every_one_sided_level_is_above_the_truth() {
        let mut levels = 0;
        for alpha in RATES {
            let (p, bits) = dyadic(alpha);
            let q = (BigInt::one() << bits) - &p;
            let processes = [Direction::Above, Direction::Below]
                .map(|direction| UniformTail::new(Threshold::new(alpha).expect("a threshold"), direction));
            // Exact integers are slow for rates with many bits, so these rates are tested with small numbers of trials
            // only.
            let trials =
                (0..=MAX_N).chain([90, 150, 300].into_iter().filter(|_| bits < 100)).filter(|&n| n < 20 || bits < 100);
            for n in trials {
                let (coefficients, next) = (pascal(n), pascal(n + 1));
                let all = BigInt::one() << (bits * (n + 1));
                for s in (0..=n).step_by(if n > MAX_N { 7 } else { 1 }) {
                    let likelihood = &coefficients[s as usize] * (n + 1) * p.pow(s) * q.pow(n - s);
                    // The probability that a Beta(s + 1, n - s + 1) variable is above alpha equals that of at most s
                    // successes in n + 1 trials.
                    let above: BigInt = (0..=s).map(|j| &next[j as usize] * p.pow(j) * q.pow(n + 1 - j)).sum();
                    let sides = [(&q, above.clone()), (&p, &all - above)];
                    for (process, (width, share)) in processes.iter().zip(sides) {
                        let level = process.level(n.into(), s.into());
                        if level == f64::INFINITY {
                            continue;
                        }
                        // Likelihood, width and share have the denominators 2^(bits n), 2^bits and 2^(bits (n + 1)), which
                        // cancel.
                        let truth = ln(&(&likelihood * width), &share);
                        let name = format!("{s} of {n} at {alpha:e}: {level:e}");
                        assert!(of(level) >= truth.1, "{name} is below the truth");
                        let slack = power(10, -12) * at_least_one(&truth.0);
                        assert!(of(level) <= &truth.0 + slack, "{name} is too far above the truth");
                        levels += 1;
                    }
                }
            }
        }
        assert!(levels > 5000, "only {levels}");
    }
}
