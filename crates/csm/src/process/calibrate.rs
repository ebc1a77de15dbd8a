//! Calibration: how much evidence each direction of a test needs, so that the two directions together keep the error.
//!
//! At the threshold itself, two [mixtures](TailMixture), one for each side, may together stop with a probability of at
//! most `eps`. By Ville's inequality they do so if each stops at `1/(share eps)` and the shares add up to one. But
//! evidence moves in jumps, because the rarer outcome multiplies it by a large factor. So a mixture jumps past its
//! limit instead of reaching it exactly, and stops with a probability below its share. [`calibrate`] computes the
//! probability that the two mixtures stop, and raises both shares by a common factor until `eps` is used up.
//!
//! The narrow side (at a threshold of 0.98, the side above) gets up to twice the share of the wide side, whose evidence
//! jumps further.
//!
//! **The computation.** Let `P` be the distribution of the trials at the threshold, and `Q` their distribution if the
//! rate is first drawn uniformly from (0, 1). Under `Q`, after `s` successes in `n` trials, the next trial is a success
//! with probability `(s + 1)/(n + 2)` (Laplace), and `P = Q e^r` with Robbins' level `r`. So the probability of
//! stopping at a state is the `Q`-probability of the state, which dynamic programming computes, times `e^r`. Relative
//! to `eps`, this neither underflows nor overflows. After the last computed trial, Ville's inequality bounds the
//! probability of stopping from each remaining state by `eps` times the evidence there.
//!
//! **Rounding.** The `Q`-probability of a state is a sum of products of positive numbers, with at most three roundings
//! per trial. So its relative error is below `3 MAX_TRIALS 2^-53`, which is less than `1e-11`. [`ROUNDING`] covers this
//! error and that of the final sums. All other quantities are bounds on the safe side.

use super::tail_mixture::TailMixture;
use super::{EProcess, Threshold};
use crate::Direction;
use crate::number::Ball;
use crate::number::exp::exp;
use crate::number::ln::ln;

/// The expected number of rarer outcomes in the computed trials. It determines the number of computed trials, within
/// [`MIN_TRIALS`] and [`MAX_TRIALS`].
const RARE_OUTCOMES: f64 = 100.0;
const MIN_TRIALS: u64 = 2048;
const MAX_TRIALS: u64 = 16_384;

const ROUNDING: f64 = 1.0 + 1e-9;

/// The part of the error at which an attempt aims.
const CLOSE: f64 = 0.999;
/// The maximum number of attempts.
const MAX_ATTEMPTS: u32 = 5;

/// Later attempts aim lower by this factor, because the probability changes in steps.
const STEP: f64 = 0.99;

/// The division of a test's error.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shares {
    /// The logarithms of the two directions' shares, that of "above" first.
    pub(super) ln_shares: [f64; 2],
    /// For each direction, a bound on the probability of stopping at the threshold, relative to `eps`. The two add up
    /// to at most one.
    pub(super) stops: [f64; 2],
}

/// Shares, nearly as large as possible, with which the mixtures above and below together keep the error.
pub(super) fn calibrate(threshold: Threshold, mixtures: &[TailMixture; 2], log_eps: f64) -> Shares {
    let p = threshold.value();
    let rare = p.min(1.0 - p);
    let favour = 2.0 - 4.0 * rare * rare;
    let shares = [Direction::Above, Direction::Below].map(|direction| {
        let is_rare_side = (direction == Direction::Above) == (p >= 0.5);
        (if is_rare_side { favour } else { 1.0 }) / (1.0 + favour)
    });
    let by_ville = Shares::of(threshold, mixtures, log_eps, shares);
    // The probability of stopping grows somewhat faster than the shares, and in steps. So a factor may turn out to be too
    // large, and is then lowered.
    let mut factor = CLOSE / by_ville.used();
    for _ in 0..MAX_ATTEMPTS {
        if factor <= 1.0 {
            break;
        }
        let raised = Shares::of(threshold, mixtures, log_eps, shares.map(|share| (share * factor).min(1.0)));
        if raised.used() <= 1.0 {
            return raised;
        }
        factor *= CLOSE * STEP / raised.used();
    }
    // No attempt was successful. By Ville's inequality, the original shares keep the error.
    Shares { stops: [0, 1].map(|side| by_ville.stops[side].min(shares[side])), ..by_ville }
}

impl Shares {
    fn of(threshold: Threshold, mixtures: &[TailMixture; 2], log_eps: f64, shares: [f64; 2]) -> Self {
        let ln_shares = shares.map(|share| ln(share.next_down().into()).lower());
        Shares { ln_shares, stops: stops(threshold, mixtures, log_eps, ln_shares) }
    }

    /// The error that the two mixtures use, relative to `eps`.
    fn used(&self) -> f64 {
        self.stops.iter().sum()
    }
}

/// For each direction, a bound on the probability that it ever stops at the threshold, relative to `eps`.
fn stops(threshold: Threshold, mixtures: &[TailMixture; 2], log_eps: f64, ln_shares: [f64; 2]) -> [f64; 2] {
    // The code uses a lower bound on a mixture's level instead of the level. The computed probability of stopping is
    // somewhat too high, which is safe.
    let limits = ln_shares.map(|ln_share| log_eps + ln_share + 1e-6 * (1.0 + log_eps.abs()));
    let proves = |side: usize, trials, successes| mixtures[side].level_at_least(trials, successes) < limits[side];
    let rare = threshold.value().min(1.0 - threshold.value());
    let horizon = ((RARE_OUTCOMES / rare) as u64).clamp(MIN_TRIALS, MAX_TRIALS);

    let mut stops = [0.0; 2];
    // The Q-probabilities of `first`, `first + 1`, ... successes without a stop.
    let (mut first, mut alive) = (0, vec![1.0]);
    // The smallest number of successes that proves "above", and the smallest number that does not prove "below".
    let (mut above, mut below) = (1, 0);
    for trials in 1..=horizon {
        alive = one_more_trial(&alive, first, trials);
        while above <= trials && !proves(0, trials, above) {
            above += 1;
        }
        while below <= trials && proves(1, trials, below) {
            below += 1;
        }
        let relative = |successes: u64| {
            let level = mixtures[0].whole(successes as f64, (trials - successes) as f64);
            exp_up(level + -log_eps)
        };
        let end = first + alive.len() as u64;
        let start = below.clamp(first, end);
        let kept = start..above.clamp(start, end);
        for (successes, q) in (first..).zip(&alive) {
            if successes < kept.start {
                stops[1] += q * relative(successes);
            } else if successes >= kept.end {
                stops[0] += q * relative(successes);
            }
        }
        alive.truncate((kept.end - first) as usize);
        alive.drain(..(kept.start - first) as usize);
        first = kept.start;
    }
    for (successes, q) in (first..).zip(&alive) {
        let (s, f) = (successes as f64, (horizon - successes) as f64);
        for (side, stop) in stops.iter_mut().enumerate() {
            let still =
                mixtures[side].levels(s, f).map(|level| exp_up(mixtures[side].whole(s, f) - level + ln_shares[side]));
            *stop += q * still.iter().sum::<f64>();
        }
    }
    stops.map(|stop| stop * ROUNDING)
}

/// The `Q`-probabilities after a further trial.
fn one_more_trial(alive: &[f64], first: u64, trials: u64) -> Vec<f64> {
    let mut next = vec![0.0; alive.len() + 1];
    for (place, q) in alive.iter().enumerate() {
        let successes = first + place as u64;
        next[place + 1] += q * ((successes + 1) as f64 / (trials + 1) as f64);
        next[place] += q * ((trials - successes) as f64 / (trials + 1) as f64);
    }
    next
}

/// An upper bound on `e^x`.
fn exp_up(x: Ball) -> f64 {
    if x.upper() > 700.0 { f64::INFINITY } else { exp(x).upper() }
}

#[cfg(test)]
mod tests {
    use super::super::{Method, Test};
    use super::*;

    #[test]
    fn the_two_directions_use_up_the_error_and_no_more() {
        for (value, eps) in [(0.95, 0.05f64), (0.98, 1e-3), (0.99, 1e-6), (0.5, 1e-3), (0.3, 0.2), (0.02, 1e-4)] {
            let threshold = Threshold::new(value).expect("a threshold");
            let mixtures = [Direction::Above, Direction::Below].map(|direction| TailMixture::new(threshold, direction));
            let shares = calibrate(threshold, &mixtures, eps.ln());
            let used = shares.used();
            assert!((0.9..=1.0).contains(&used), "{value}, {eps}: {shares:?}");
            // This number of trials is far above that of the computed trials.
            let test = Test::new(value, eps.ln(), Method::Mixture).expect("a test");
            let power = test.power(value, 20_000).expect("a valid question");
            for (side, stopped) in [power.holds, power.fails].into_iter().enumerate() {
                let (stopped, bound) = (stopped / eps, shares.stops[side]);
                assert!(stopped <= bound && bound <= 1.6 * stopped, "{value}, {eps}, {side}: {stopped} and {shares:?}");
            }
        }
    }

    #[test]
    fn at_one_half_both_directions_have_the_same_share() {
        let threshold = Threshold::new(0.5).expect("a threshold");
        let mixtures = [Direction::Above, Direction::Below].map(|direction| TailMixture::new(threshold, direction));
        let [above, below] = calibrate(threshold, &mixtures, -6.9).ln_shares;
        assert!(above == below && above > 0.5f64.ln(), "{above} {below}");
    }
}
