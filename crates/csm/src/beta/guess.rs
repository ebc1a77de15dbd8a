//! An approximate quantile of a Beta distribution, the start of the search. Its accuracy affects only the time.
//!
//! Let `z` be the quantile of a normal distribution. The guess is the rate at which `a + b` times the Kullback-Leibler
//! divergence from the mean is `z^2 / 2`. This is Temme's first approximation, which is good even far out in the tail.

use super::odds::{Odds, rough_exp};
use crate::number::deviance::minus_deviances;
use crate::number::ln::ln;

/// The maximum number of steps. Where the divergence is exponential in the logarithm of the odds, a step changes that
/// logarithm by about 1, and fewer than 60 such steps are needed.
const MAX_STEPS: u32 = 80;

/// Odds near those of the quantile.
pub(super) fn guess(a: f64, b: f64, eps: f64) -> Odds {
    if eps > 0.5 {
        return below_mean(b, a, 1.0 - eps).swap();
    }
    below_mean(a, b, eps)
}

/// The rate below the mean at which `a ln(x n / a) + b ln((1-x) n / b)` is about `-z^2 / 2`.
fn below_mean(a: f64, b: f64, eps: f64) -> Odds {
    let z = normal_quantile(ln(eps.into()).mid.hi);
    let target = -0.5 * z * z;
    // Two starting rates below the solution. The first treats the logarithm of the odds as normal. The second writes
    // the odds as a ratio of two Gamma variables and uses bounds on their tails (Laurent and Massart); it is close if a
    // shape is small.
    let normal = a / b * rough_exp(-z * (1.0 / a + 1.0 / b).sqrt());
    let gamma = (a - z * a.sqrt()) / (b + z * b.sqrt() + 0.5 * z * z);
    let mut odds = Odds::new(normal.max(gamma));
    for _ in 0..MAX_STEPS {
        let deviances = minus_deviances(a, b, &odds.rate());
        let missing = target - deviances.minus.mid.hi;
        if missing.abs() <= 0.02 {
            break;
        }
        let Some(moved) = odds.moved(missing / deviances.lead) else { break };
        if moved == odds {
            break;
        }
        odds = moved;
    }
    odds
}

/// The number of standard deviations below the mean at which the tail of a normal distribution has the probability
/// `e^ln_eps`, which is at most 1/2. Approximate (Hastings' rational approximation, Abramowitz and Stegun 26.2.23).
fn normal_quantile(ln_eps: f64) -> f64 {
    let t = (-2.0 * ln_eps).sqrt();
    let top = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let bottom = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    (t - top / bottom).max(0.0)
}
