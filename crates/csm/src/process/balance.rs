//! The division of the error between the two directions of a test.
//!
//! Two [one-sided processes](UniformTail) may together stop with a probability of at most `eps` at the threshold
//! itself. Robbins' criterion amounts to giving each side a share of `eps` as large as its width: at a threshold of
//! 0.98, "below" has 98 % and "above" has 2 %, which is why the criterion is slow to confirm that a good service is
//! good.
//!
//! But the wide side does not use up its share. If successes are common, a single failure multiplies the evidence for
//! "below" by a large factor, fifty at a threshold of 0.98, so the process does not reach `1/eps` exactly but jumps
//! past it, and the probability of stopping is well below the given share. [`ln_shares`] computes that probability, and
//! gives the narrow side the rest: some 70 % of `eps` instead of 2 %, at no cost. The wide side keeps Robbins' share,
//! so no test is slower than Robbins' criterion, except by the fraction of a per cent that alternatives on the wrong
//! side contribute to Robbins' evidence.
//!
//! **The computation.** `P` is the law of the trials at the threshold, `Q` their law when the rate is drawn uniformly
//! from (0, 1) first. Under `Q`, after `h` of `n` trials in the wide direction, the next one is in that direction with
//! probability `(h + 1)/(n + 2)` (Laplace), and `P = Q e^r` with Robbins' level `r`. So the probability of stopping at
//! a state is its `Q`-probability, by dynamic programming, times `e^r`; relative to `eps`, it neither underflows nor
//! overflows. After [`HORIZON`] trials, Ville's inequality bounds the rest: from each remaining state, `eps` times the
//! evidence there; times `P` and relative to `eps`, that is its `Q`-probability times the tail `t`.
//!
//! **Rounding.** A state's `Q`-probability is a sum of products of positive numbers, with at most three roundings
//! a trial: a relative error below `3 HORIZON 2^-53`, which is less than `1e-12`; [`ROUNDING`] covers that and the
//! final sums. `e^r` and `t` are upper bounds.

use super::{EProcess, Threshold, UniformTail};
use crate::Direction;
use crate::number::Ball;
use crate::number::exp::exp;

/// The number of trials computed; later ones are bounded.
const HORIZON: u64 = 2048;

const ROUNDING: f64 = 1.0 + 1e-10;

/// The logarithm of each direction's share of the error, at most zero: above, below.
pub(super) fn ln_shares(threshold: Threshold, log_eps: f64) -> [f64; 2] {
    let wide = if threshold.value() >= 0.5 { Direction::Below } else { Direction::Above };
    let wide_process = UniformTail::new(threshold, wide);
    let narrow_process = UniformTail::new(threshold, wide.opposite());
    let wide_share = wide_process.ln_width().lower();
    let used = used(&wide_process, wide_share, log_eps);
    // The part of the error that the wide side does not use is a safe share, and so is the narrow side's width. The
    // narrow side gets no more than the wide one, as that would reverse their order.
    let rest = (1.0 - used).next_down();
    let narrow_share = if rest > 0.0 { crate::number::ln::ln(rest.into()).lower() } else { f64::NEG_INFINITY };
    let narrow_share = narrow_share.max(narrow_process.ln_width().lower()).min(wide_share);
    match wide {
        Direction::Below => [narrow_share, wide_share],
        Direction::Above => [wide_share, narrow_share],
    }
}

/// A bound on the probability that the wide side ever stops at the threshold, relative to `eps`.
fn used(process: &UniformTail, ln_share: f64, log_eps: f64) -> f64 {
    let counts = |trials: u64, hits: u64| match process.direction() {
        Direction::Above => (hits, trials - hits),
        Direction::Below => (trials - hits, hits),
    };
    // A lower bound on the level replaces the level here. So the computed probability of stopping is somewhat too high,
    // which is on the safe side and saves the computation of tails.
    let limit = log_eps + ln_share + 1e-6 * (1.0 + log_eps.abs());
    let stops = |trials: u64, hits: u64| process.level_at_least(trials, counts(trials, hits).0) < limit;

    // alive[h]: the Q-probability of h trials in the wide direction without having stopped.
    let mut alive = vec![1.0];
    let mut least = 1;
    let mut used = 0.0;
    for trials in 1..=HORIZON {
        let mut next = vec![0.0; alive.len() + 1];
        for (hits, q) in alive.iter().enumerate() {
            let hit = (hits + 1) as f64 / (trials + 1) as f64;
            next[hits + 1] += q * hit;
            next[hits] += q * ((trials - hits as u64) as f64 / (trials + 1) as f64);
        }
        while least <= trials && !stops(trials, least) {
            least += 1;
        }
        for (hits, q) in next.iter().enumerate().skip(least as usize) {
            let (successes, failures) = counts(trials, hits as u64);
            let relative = process.whole(successes as f64, failures as f64) + -log_eps;
            used += q * exp_up(relative);
        }
        next.truncate(least as usize);
        alive = next;
    }
    for (hits, &q) in alive.iter().enumerate() {
        let (successes, failures) = counts(HORIZON, hits as u64);
        // States of negligible probability are not worth a tail.
        let still = if q < 1e-9 {
            1.0
        } else {
            let (s, f) = (successes as f64, failures as f64);
            exp_up(process.ln_share(s, f))
        };
        used += q * still;
    }
    used * ROUNDING
}

/// An upper bound on `e^x`, if that is at most one except for rounding.
fn exp_up(x: Ball) -> f64 {
    exp(x).upper()
}

#[cfg(test)]
mod tests {
    use super::super::{Method, Test};
    use super::*;

    /// Trials long after the horizon count, too: at such a threshold, most of the stopping probability arises there.
    #[test]
    fn the_used_share_is_at_least_the_stopping_probability() {
        for (value, log_eps) in [(0.999, -1.0), (0.9995, -3.0), (0.9, -4.0)] {
            let threshold = Threshold::new(value).expect("a threshold");
            let process = UniformTail::new(threshold, Direction::Below);
            let used = used(&process, 0.0, log_eps);
            let test = Test::new(value, log_eps, Method::OneSided).expect("a test").towards(Direction::Below);
            let stops = test.power(value, 20_000).expect("a valid question").fails / log_eps.exp();
            assert!(stops <= used && used <= 1.3 * stops, "{value}: {stops} and {used}");
        }
    }
}
