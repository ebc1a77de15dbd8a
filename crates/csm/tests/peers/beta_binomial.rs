//! The beta-binomial mixture of Howard, Ramdas, McAuliffe and Sekhon, as the library confseq has it, in floats.

use std::sync::Arc;

use millstream_csm::Direction;
use millstream_csm::power::test_power;
use millstream_csm::process::{EProcess, Test};

/// A beta-binomial mixture: likelihood ratios averaged over a Beta distribution with its mean at the threshold.
#[derive(Debug)]
struct BetaBinomial {
    threshold: f64,
    weight: f64,
    direction: Direction,
}

/// The logarithm of the Gamma function, by Stirling's series after some steps up.
fn ln_gamma(x: f64) -> f64 {
    let steps = (12.0 - x).ceil().max(0.0);
    let down: f64 = (0..steps as u32).map(|step| (x + f64::from(step)).ln()).sum();
    let x = x + steps;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) - down
}

fn ln_beta(a: f64, b: f64) -> f64 {
    ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b)
}

impl EProcess for BetaBinomial {
    fn direction(&self) -> Direction {
        self.direction
    }

    fn level(&self, trials: u64, successes: u64) -> f64 {
        let (s, f, p) = (successes as f64, (trials - successes) as f64, self.threshold);
        let (a, b) = (self.weight * p, self.weight * (1.0 - p));
        let is_above = (a + s) / (a + b + s + f) >= p;
        if is_above != (self.direction == Direction::Above) {
            return f64::INFINITY;
        }
        s * p.ln() + f * (1.0 - p).ln() - ln_beta(a + s, b + f) + ln_beta(a, b)
    }
}

/// The number of trials of a beta-binomial mixture that is tuned, as its authors advise, to the error and to its own
/// number of trials: the weight of its distribution is `trials / (l + ln(1 + l)) - 1`, where `l = -2 ln(error)`.
pub(crate) fn tuned_trials(threshold: f64, rate: f64, error: f64, limit: u64) -> f64 {
    let l = -2.0 * error.ln();
    let (mut weight, mut mean) = (50.0f64, 0.0);
    for _ in 0..5 {
        let both = [Direction::Above, Direction::Below]
            .map(|direction| Arc::new(BetaBinomial { threshold, weight, direction }) as Arc<dyn EProcess>);
        mean = test_power(&Test::of(both, error.ln()).unwrap(), rate, limit).unwrap().mean_trials;
        weight = (mean / (l + l.ln_1p()) - 1.0).max(1e-3);
    }
    mean
}
