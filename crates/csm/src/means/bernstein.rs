//! The empirical Bernstein process, a betting martingale.
//!
//! Let `x_1, x_2, ...` be between 0 and 1, each with mean `m` given the earlier ones. Let `g_i` be a guess of `x_i`
//! made before `x_i` was observed. For a bet `0 <= l < 1`,
//!
//! ```text
//! exp(l (sum of x_i - n m) - c(l) sum of (x_i - g_i)^2),   c(l) = -ln(1 - l) - l
//! ```
//!
//! is on average at most 1. This can be shown for each factor alone. Fan, Grama and Liu (2015) prove `exp(l y - c(l)
//! y^2) <= 1 + l y` for `y >= -1`. With `y = x - g`, the factor is at most `exp(l (g - m)) (1 + l (x - g))`, whose mean
//! is `exp(l (g - m)) (1 + l (m - g)) <= 1`. If the true mean is below `m`, the factor's mean is smaller still. So the
//! process is evidence for a mean above `m`; with `1 - x` instead of `x`, it is evidence for a mean below `m`. The best
//! bet depends on the variance and on the mean. So the process of this module is the average over [`BETS`] bets, each
//! half as large as the previous one, which costs at most `ln 16`.

use super::Moments;
use crate::Direction;
use crate::number::Ball;
use crate::number::exp::exp;
use crate::number::ln::{ln, ln_1p};

/// The number of averaged bets. The smallest bet suits some `10^9` observations.
const BETS: usize = 16;

/// The largest bet.
const MAX_BET: f64 = 0.875;

/// Evidence about means of numbers between 0 and 1.
#[derive(Debug, Clone)]
pub(super) struct Bernstein {
    /// Each bet `l` with an upper bound on `c(l)`.
    bets: [(f64, f64); BETS],
    ln_bets: Ball,
}

impl Bernstein {
    pub(super) fn new() -> Self {
        let bets = std::array::from_fn(|k| {
            let bet = MAX_BET * 0.5f64.powi(k as i32);
            (bet, (-ln_1p(Ball::from(-bet)) + -bet).upper())
        });
        Bernstein { bets, ln_bets: ln((BETS as f64).into()) }
    }

    /// Minus the logarithm of the evidence that the mean is on this side of `mean`, rounded up.
    pub(super) fn level(&self, moments: &Moments, mean: f64, direction: Direction) -> f64 {
        let n = moments.trials as f64;
        let excess = Ball::from(moments.sum) + moments.sum_rest - Ball::from(mean) * n;
        let excess = match direction {
            Direction::Above => excess,
            Direction::Below => -excess,
        };
        let gain = Ball::from((excess.lower() - moments.sum_error()).next_down());
        let squares = Ball::from(moments.squares_up());
        let wins = self.bets.map(|(bet, cost)| (gain * bet - squares * cost).lower());
        let best = wins.into_iter().fold(f64::NEG_INFINITY, f64::max);
        // The wins are summed relative to that of the best bet, so that no exponential overflows. Wins that are far behind
        // are left out, which is safe.
        let sum = wins.into_iter().fold(Ball::ZERO, |sum, win| {
            let behind = Ball::from(win) + -best;
            if behind.upper() < -50.0 { sum } else { sum + exp(behind) }
        });
        (self.ln_bets - ln(sum) + -best).upper()
    }

    /// The level to some twelve digits, computed quickly with the system's logarithm. It only decides when an exact
    /// evaluation is needed.
    pub(super) fn level_roughly(&self, moments: &Moments, mean: f64, direction: Direction) -> f64 {
        let excess = moments.sum + moments.sum_rest - mean * moments.trials as f64;
        let gain = if direction == Direction::Above { excess } else { -excess };
        let wins = self.bets.map(|(bet, cost)| gain * bet - moments.squares * cost);
        let best = wins.into_iter().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = wins.into_iter().map(|win| (win - best).exp()).sum();
        (BETS as f64 / sum).ln() - best
    }

    /// A bound on the mean, to within `2^-40`. For [`Direction::Above`], it is the largest mean ruled out with an error
    /// of `e^log_eps`, and all smaller means are ruled out, too. For [`Direction::Below`], it is the smallest such
    /// mean, and all larger means are ruled out.
    pub(super) fn bound(&self, moments: &Moments, log_eps: f64, direction: Direction) -> f64 {
        let end = if direction == Direction::Above { 0.0 } else { 1.0 };
        let (mut out, mut within) = (end, moments.mean().unwrap_or(1.0 - end));
        if self.level(moments, out, direction) >= log_eps {
            return end;
        }
        for _ in 0..40 {
            let middle = out + (within - out) * 0.5;
            if self.level(moments, middle, direction) < log_eps {
                out = middle;
            } else {
                within = middle;
            }
        }
        out
    }
}
