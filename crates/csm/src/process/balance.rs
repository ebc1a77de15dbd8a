//! The division of the error between the two directions of a test.
//!
//! At the threshold itself, two [one-sided processes](UniformTail) together may stop with a probability of at most
//! `eps`. Robbins' criterion amounts to a share of `eps` for each side in proportion to its width: at a threshold of
//! 0.98, "below" has 98 % and "above" has 2 %. This is why the criterion is slow to confirm that a good service is
//! good.
//!
//! But the wide side does not use up its share. If successes are common, a single failure multiplies the evidence for
//! "below" by a large factor: fifty, at a threshold of 0.98. So the process does not reach `1/eps` exactly but jumps
//! past it, and it stops with a probability well below its share. [`ln_shares`] computes this probability, and assigns
//! the unused part to the narrow side: about 70 % of `eps` instead of 2 %, at no cost. The wide side keeps Robbins'
//! share, so no test is slower than Robbins' criterion. (The only exception is a fraction of a per cent, which the
//! alternatives on the wrong side contribute to Robbins' evidence.)
//!
//! **The computation.** Let `P` be the distribution of the trials at the threshold, and `Q` their distribution if the
//! rate is first drawn uniformly from (0, 1). Under `Q`, after `h` of `n` trials in the wide direction, the next trial
//! is in that direction with probability `(h + 1)/(n + 2)` (Laplace), and `P = Q e^r` with Robbins' level `r`. So the
//! probability of stopping at a state is the `Q`-probability of the state, which dynamic programming computes, times
//! `e^r`. Relative to `eps`, this neither underflows nor overflows. After [`HORIZON`] trials, Ville's inequality bounds
//! the probability of stopping from each remaining state by `eps` times the evidence there. Multiplied by the
//! `P`-probability of the state and divided by `eps`, this bound is the `Q`-probability of the state times the share
//! `t` of [`UniformTail`].
//!
//! **Rounding.** The `Q`-probability of a state is a sum of products of positive numbers, with at most three roundings
//! per trial. So its relative error is below `3 HORIZON 2^-53`, which is less than `1e-12`. [`ROUNDING`] covers this
//! error and that of the final sums. `e^r` and `t` are upper bounds.

use super::{EProcess, Threshold, UniformTail};
use crate::Direction;
use crate::number::Ball;
use crate::number::exp::exp;

/// The number of trials that are computed. For later trials, the probability is only bounded.
const HORIZON: u64 = 2048;

const ROUNDING: f64 = 1.0 + 1e-10;

/// The logarithms of the two directions' shares of the error, that of "above" first. Each is at most zero.
pub(super) fn ln_shares(threshold: Threshold, log_eps: f64) -> [f64; 2] {
    let wide = if threshold.value() >= 0.5 { Direction::Below } else { Direction::Above };
    let wide_process = UniformTail::new(threshold, wide);
    let narrow_process = UniformTail::new(threshold, wide.opposite());
    let wide_share = wide_process.ln_width().lower();
    let used = used(&wide_process, wide_share, log_eps);
    // Two shares are safe for the narrow side: the part of the error that the wide side does not use, and the narrow
    // side's width. The larger of the two is used, but at most the wide side's share.
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
    // The code uses a lower bound on the level instead of the level, which saves the computation of tails. The computed
    // probability of stopping is somewhat too high, which is safe.
    let limit = log_eps + ln_share + 1e-6 * (1.0 + log_eps.abs());
    let stops = |trials: u64, hits: u64| process.level_at_least(trials, counts(trials, hits).0) < limit;

    // alive[h]: the Q-probability of h trials in the wide direction without a stop.
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
        // For a state of negligible probability, the share `t` is not computed but counts as 1, which is safe.
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

/// An upper bound on `e^x`, which must be at most one except for rounding.
fn exp_up(x: Ball) -> f64 {
    exp(x).upper()
}

#[cfg(test)]
mod tests {
    use super::super::{Method, Test};
    use super::*;

    /// At this threshold, most of the stopping probability belongs to trials long after the horizon.
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
