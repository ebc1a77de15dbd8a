//! E-processes: betting martingales against a hypothesis, whose value may be examined at any time.
//!
//! Bet one coin, at fair odds, that a success rate is *not* `p`, and reinvest the winnings at every outcome. If the
//! rate is `p` after all, the probability that one coin ever becomes `1/eps` coins is at most `eps`, however long the
//! game lasts: this is Ville's inequality. The current amount of money is called an **e-process**. A test stops when
//! the e-process exceeds `1/eps`. In this crate the condition is `level < ln eps`, where the **level** is minus the
//! logarithm of the e-process.
//!
//! All bets on yes-or-no outcomes are averages of likelihood ratios `(p'/p)^s ((1-p')/(1-p))^f` over some prior
//! distribution of alternatives `p'`. The prior determines how soon a test stops, but its error is the same with every
//! prior:
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
//! **Direction.** Every process in this module [proves one direction](EProcess::direction). When a process has
//! evidence, a success never reduces it if the direction is "above", and a failure never does if the direction is
//! "below". So the error also bounds the probability of the wrong *side*. To see this, simulate a rate on the wrong
//! side and the threshold itself with the same uniform random numbers. The outcomes at the wrong rate are never more
//! favourable than those at the threshold. So the process stops at the wrong rate only if it also stops at the
//! threshold, which has a probability of at most `eps`. (Ding, Gandy and Hahn show this for Robbins' criterion.)
//!
//! **Rounding.** Levels are always rounded up, so rounding can delay a stop but never cause one.
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

/// Evidence that a success rate is on one side of a threshold, as a function of the counts so far.
///
/// Every implementation must ensure that
/// 1. `exp(-level)` is at most the value of a non-negative martingale that starts at one, when the trials are
///    independent with the threshold as their success rate;
/// 2. if the level is below zero, a further favourable outcome (a success for "above", a failure for "below") does not
///    raise it by more than its rounding, and an unfavourable outcome does not lower it by more. [`Watch`] relies on
///    this to skip evaluations, and [`Test::power`] to walk along boundaries;
/// 3. the level is only rounded up, by at most a millionth of `1 + |level|`.
pub(crate) trait EProcess: Debug + Send + Sync {
    /// The direction that a low level proves.
    fn direction(&self) -> Direction;

    /// Minus the logarithm of the evidence, rounded up. Infinite if the counts are no evidence for the direction at
    /// all. There must be at most [`MAX_TRIALS`](crate::MAX_TRIALS) trials.
    fn level(&self, trials: u64, successes: u64) -> f64;

    /// A lower bound on the level, except for the level's rounding, that may be cheaper to compute. If this bound is
    /// above `ln eps`, the level need not be computed.
    fn level_at_least(&self, trials: u64, successes: u64) -> f64 {
        self.level(trials, successes)
    }
}
