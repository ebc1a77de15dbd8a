//! E-processes: betting martingales against a hypothesis, which may be watched without end.
//!
//! Bet one coin that a success rate is *not* `p`, at fair odds, and let the stake grow or shrink with every outcome. If
//! the rate is `p` after all, no player turns one coin into `1/eps` with a probability above `eps`, however long the
//! game and whatever the stopping time: that is Ville's inequality. The money in hand is called an **e-process**. A
//! test stops when it exceeds `1/eps`; here that reads `level < ln eps`, where the **level** is minus the logarithm of
//! the money.
//!
//! All bets on yes-or-no outcomes are averages of likelihood ratios `(p'/p)^s ((1-p')/(1-p))^f` over some prior
//! distribution of alternatives `p'`. Which prior decides how soon a test stops, never whether it is right:
//!
//! | e-process | prior | strong when |
//! | --- | --- | --- |
//! | [`BetaMixture::robbins`] | uniform on (0, 1): Robbins' criterion | the rate is far from a threshold near 1/2 |
//! | [`BetaMixture::centred`] | a Beta distribution around the threshold | the rate is near the threshold |
//! | [`UniformTail`] | uniform on one side of the threshold | one direction is enough |
//! | [`TailMixture`] | on one side of the threshold, with more weight near it | the rate's distance is not known beforehand |
//! | [`LikelihoodRatio`] | a single point: Wald's sequential probability ratio test | there are two thresholds |
//! | [`Blend`] | half of one, half of another | the choice is unclear; costs at most `ln 2` |
//!
//! **Direction.** Every process here [proves one direction](EProcess::direction). Once a process could stop, a success
//! never harms it if it proves "above", and a failure never harms it if it proves "below". So its verdict is right
//! about the *side*, too. Run trials of a rate on the wrong side and trials of the threshold itself with the same
//! uniform random numbers: the outcomes at the wrong rate are never more favourable, so the process stops there only if
//! it stops at the threshold as well, which has a probability of at most `eps` (Ding, Gandy and Hahn show it for
//! Robbins' criterion).
//!
//! **Rounding.** A level is only ever rounded up, so rounding can delay a test but never stop it early.
//!
//! Sources: J. Ville (1939); A. Wald (1945); H. Robbins, "Statistical methods related to the law of the iterated
//! logarithm" (1970); D. Ding, A. Gandy and G. Hahn, "A simple method for implementing Monte Carlo tests" (2020);
//! A. Ramdas and others, "Game-theoretic statistics and safe anytime-valid inference" (2023).

mod balance;
mod blend;
mod boundary;
mod calibrate;
mod method;
mod mixture;
mod ratio;
mod shared;
mod tail;
mod tail_mixture;
mod test;
mod threshold;
mod watch;

use std::fmt::Debug;

use blend::Blend;
pub(crate) use boundary::Boundary;
use mixture::BetaMixture;
use ratio::LikelihoodRatio;
use tail::UniformTail;
use tail_mixture::TailMixture;
pub(crate) use threshold::{Threshold, check_counts, check_log_eps};
pub(crate) use watch::{Looks, Watch, count};

pub use self::{
    method::Method,
    test::{Decision, Direction, Test},
};

/// Evidence that a success rate lies to one side of a threshold, as a function of the counts so far.
///
/// An implementation promises:
/// 1. `exp(-level)` is at most the value of a non-negative martingale that starts at one, when the trials are
///    independent with the threshold as their success rate;
/// 2. wherever the level is below zero, one more favourable outcome (a success if the direction is above, a failure if
///    it is below) does not raise it, and an unfavourable one does not lower it, by more than its rounding. [`Watch`]
///    relies on that to skip evaluations, and [`Test::power`] to walk along boundaries;
/// 3. rounding moves the level up only, and by no more than a millionth of `1 + |level|`.
pub(crate) trait EProcess: Debug + Send + Sync {
    /// The direction that a low level proves.
    fn direction(&self) -> Direction;

    /// Minus the logarithm of the evidence, rounded up, after at most [`MAX_TRIALS`](crate::MAX_TRIALS) trials. It is
    /// infinite if the counts are no evidence for the direction at all.
    fn level(&self, trials: u64, successes: u64) -> f64;

    /// A cheaper lower bound of the level, up to its rounding, if there is one. If this bound is above `ln eps`, the
    /// level need not be computed.
    fn level_at_least(&self, trials: u64, successes: u64) -> f64 {
        self.level(trials, successes)
    }
}
