//! Calibration: the evidence that the two directions of a test need for their common error.
//!
//! Two [mixtures](TailMixture), one for each side, may together stop with a probability of at most `eps` at the
//! threshold itself. By Ville's inequality that is so if each stops at `1/(share eps)` and the shares add up to one.
//! But evidence moves in jumps: the rarer outcome multiplies it by a large factor, so a mixture jumps past its limit
//! instead of reaching it exactly, and stops less often than it might. [`calibrate`] computes how often the two
//! mixtures stop, and raises both shares by the factor that uses up `eps`.
//!
//! The narrow side (at a threshold of 0.98, the side above) has up to twice the share of the wide one, as the evidence
//! of the wide side jumps farther.
//!
//! **The computation.** `P` is the law of the trials at the threshold, `Q` their law when the rate is drawn uniformly
//! from (0, 1) first. Under `Q`, after `s` of `n` trials the next one is a success with probability `(s + 1)/(n + 2)`
//! (Laplace), and `P = Q e^r` with Robbins' level `r`. So the probability of stopping at a state is its
//! `Q`-probability, by dynamic programming, times `e^r`; relative to `eps`, it neither underflows nor overflows. After
//! the last trial that is computed, Ville's inequality bounds the contribution of each remaining state: `eps` times the
//! evidence there.
//!
//! **Rounding.** A state's `Q`-probability is a sum of products of positive numbers, with at most three roundings a
//! trial: a relative error below `3 MAX_TRIALS 2^-53`, which is less than `1e-11`; [`ROUNDING`] covers that and the
//! final sums. Everything else is a bound on the safe side.

use super::tail_mixture::TailMixture;
use super::{EProcess, Threshold};
use crate::Direction;
use crate::number::Ball;
use crate::number::exp::exp;
use crate::number::ln::ln;

/// The expected number of rarer outcomes among the trials that are computed, within these limits.
const RARE_OUTCOMES: f64 = 100.0;
const MIN_TRIALS: u64 = 2048;
const MAX_TRIALS: u64 = 16_384;

const ROUNDING: f64 = 1.0 + 1e-9;

/// The part of the error that counts as used up, and the maximum number of attempts.
const CLOSE: f64 = 0.999;
const MAX_ATTEMPTS: u32 = 5;

/// Each attempt after the first aims lower by this factor, as the probability moves in steps.
const STEP: f64 = 0.99;

/// The division of a test's error.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shares {
    /// The logarithms of each direction's limit relative to `eps`: above, below.
    pub(super) ln_shares: [f64; 2],
    /// Bounds on the probability of stopping at the threshold in each direction, relative to `eps`; at most one
    /// together.
    pub(super) stops: [f64; 2],
}

/// The largest shares that keep the error, for the mixtures above and below.
pub(super) fn calibrate(threshold: Threshold, mixtures: &[TailMixture; 2], log_eps: f64) -> Shares {
    let p = threshold.value();
    let rare = p.min(1.0 - p);
    let favour = 2.0 - 4.0 * rare * rare;
    let shares = [Direction::Above, Direction::Below].map(|direction| {
        let is_rare_side = (direction == Direction::Above) == (p >= 0.5);
        (if is_rare_side { favour } else { 1.0 }) / (1.0 + favour)
    });
    let by_ville = Shares::of(threshold, mixtures, log_eps, shares);
    // The probability grows somewhat faster than the shares, in steps.
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
    // Ville's inequality grants this share without any computation.
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

/// Bounds on the probabilities that each direction ever stops at the threshold, relative to `eps`.
fn stops(threshold: Threshold, mixtures: &[TailMixture; 2], log_eps: f64, ln_shares: [f64; 2]) -> [f64; 2] {
    // A lower bound on a mixture's level replaces the level here. So the computed probability of stopping is somewhat
    // too high, which is on the safe side.
    let limits = ln_shares.map(|ln_share| log_eps + ln_share + 1e-6 * (1.0 + log_eps.abs()));
    let proves = |side: usize, trials, successes| mixtures[side].level_at_least(trials, successes) < limits[side];
    let rare = threshold.value().min(1.0 - threshold.value());
    let horizon = ((RARE_OUTCOMES / rare) as u64).clamp(MIN_TRIALS, MAX_TRIALS);

    let mut stops = [0.0; 2];
    // The Q-probability of `first` successes and more without having stopped.
    let (mut first, mut alive) = (0, vec![1.0]);
    // The smallest number of successes that proves "above", and the smallest that no longer proves "below".
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

/// The `Q`-probabilities after one more trial.
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
            // This is long after the trials that are computed.
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
