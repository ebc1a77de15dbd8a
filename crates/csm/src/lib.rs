//! Decide with evidence: confidence sequences, exact tests and stopping rules whose errors are on the safe side.
//!
//! "At least 99 % of requests are fast enough." How many requests does it take to confirm this claim, with a
//! probability of at most one in a million of being wrong? With this crate, check after each request, and stop when
//! there is a verdict. The error does not grow with the number of checks.
//!
//! ```
//! use millstream_csm::{Claim, Driver, Setup, Verdict};
//!
//! let mut driver = Driver::new(&Setup::new(Claim::AtLeast(0.99), 1e-6))?;
//! let verdict = loop {
//!     let fast_enough = true; // One request, one outcome.
//!     if let Some(verdict) = driver.observe(fast_enough) {
//!         break verdict;
//!     }
//! };
//! assert_eq!(verdict, Verdict::Holds);
//! # Ok::<(), millstream_csm::Error>(())
//! ```
//!
//! # Which function do I want?
//!
//! | question | use |
//! | --- | --- |
//! | Is a success rate above, below, within or between thresholds? Decide as early as possible. | [`Driver`] with a [`Claim`] |
//! | How many trials does the decision take, and how probable is it? | [`Setup::power`] |
//! | What is the rate, as far as known now? | [`interval::watched`]; [`interval::fixed`] for a fixed number of trials |
//! | Is a mean of bounded numbers (a latency, a ratio) above or below a threshold? | [`means`] |
//! | What is a quantile, while more numbers arrive? | [`quantile`] |
//! | Which of two samples is smaller, and by what ratio? | [`compare`] |
//! | Do two samples come from one distribution, by a statistic of my own? | [`permutation`] |
//! | My data are not independent draws from one distribution. | [`Driver::run_sets`] |
//! | Is the evidence enough, given a single pair of counts? | [`robbins::stop`], or a [`Test`] with another [`Method`] |
//! | A bound on a quantile of a Beta distribution, or on a binomial coefficient | [`beta_bound`], [`log_choose`] |
//! | How full are the bins when the first one is full? | [`bins`] |
//!
//! # What "on the safe side" means
//!
//! A promise such as "wrong once in a million" is a theorem about real numbers, but a program rounds. In this crate,
//! every rounding and every truncation errs in the direction that keeps the promise: reported evidence is never
//! stronger than the true evidence, and an interval never narrower than the true interval. Where a test of this crate
//! stops, the exact test stops too.
//!
//! For this purpose the crate uses numbers with proven errors. They are built from IEEE 754 arithmetic alone, without
//! any function of the system's mathematical library, so the results are the same, bit for bit, on every machine. The
//! results are also close to the truth: [`robbins::stop`] and [`beta_bound`] say how close.
//!
//! A float argument is taken at its exact value: `0.98` is the binary number nearest to 98 %.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

pub mod bins;
pub mod compare;
pub mod interval;
pub mod means;
pub mod permutation;
pub mod quantile;
pub mod random;
pub mod robbins;

mod beta;
mod choose;
mod driver;
mod error;
#[cfg(test)]
#[path = "../tests/exact"]
mod exactly {
    pub(crate) mod binomial;
    pub(crate) mod ln;
    pub(crate) mod rational;
    pub(crate) mod size;
}
mod number;
mod power;
mod process;

pub use beta::{BetaBound, Side, beta_bound};
pub use choose::{MAX_TRIALS, log_choose};
pub use driver::{Claim, Driver, Progress, Setup, Status, Verdict, report_due};
pub use error::Error;
pub use interval::Interval;
pub use power::Power;
pub use process::{Decision, Direction, Method, Test};
