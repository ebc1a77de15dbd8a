//! Decide with evidence: confidence sequences, exact tests and stopping rules whose errors are on the safe side.
//!
//! "At least 99 % of requests are fast enough." How many requests does it take to say so, and to be wrong at most once
//! in a million times? With this crate, check after each request and stop when it decides; the promise holds, however
//! long you go on.
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
//! # Which one do I want?
//!
//! | question | take |
//! | --- | --- |
//! | Is a success rate above, below, within or between these? Tell me as soon as it can be known. | [`Driver`] with a [`Claim`] |
//! | How many trials will that take, and how surely? | [`Setup::power`] |
//! | What is the rate, as far as known now? | [`interval::watched`]; [`interval::fixed`] for a fixed number of trials |
//! | Is a mean of bounded numbers (a latency, a ratio) above or below this? | [`means`] |
//! | What is a quantile, with the numbers still coming in? | [`quantile`] |
//! | Which of two samples is smaller, and by what ratio? | [`compare`] |
//! | Do two samples come from one distribution, by a statistic of my own? | [`permutation`] |
//! | My data are not independent draws from one distribution. | [`Driver::run_sets`] |
//! | One look, one number: is the evidence enough? | [`robbins::stop`], or a [`Test`] with another [`Method`] |
//! | A bound on a quantile of a Beta distribution, or on a binomial coefficient | [`beta_bound`], [`log_choose`] |
//! | How full are the bins when the first one is full? | [`bins`] |
//!
//! # What "on the safe side" means
//!
//! A promise such as "wrong once in a million" is a theorem about real numbers. A program rounds. Here every rounding
//! and every truncation errs in the direction that makes the promise more certain to hold: evidence is reported no
//! stronger than it is, and an interval no narrower. Where a test here stops, the exact test stops too.
//!
//! For this the crate uses numbers with proven errors, built from IEEE 754 arithmetic alone, without any function of
//! the system's mathematical library. So the results are the same, bit for bit, on every machine, and remain the same.
//! They are also close to the truth: [`robbins::stop`] and [`beta_bound`] say how close.
//!
//! A float argument means its exact value: `0.98` is the binary number nearest to 98 %.

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
