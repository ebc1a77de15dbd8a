//! Intervals for a success rate, of two kinds that must not be confused:
//!
//! | question | take |
//! | --- | --- |
//! | the interval is looked at while data come in, or the data decide when to stop (a stopping time) | [`watched`] |
//! | the number of trials was fixed before the first of them, and the interval is looked at only then | [`fixed`] |
//! | a Bayesian's posterior under a uniform prior, to draw or to compare with | [`credible`] |
//!
//! At 95 %, a `watched` interval misses the truth at *some* number of trials, ever, in at most 5 % of all runs: its
//! coverage holds at all numbers at once. The coverage of `fixed` holds only at each single number of trials, which is
//! a far weaker promise: for a rate of 0.9, a `fixed` interval that is watched at each of the first 3000 trials misses
//! the truth somewhere in 42 % of all runs.

mod fixed;
mod watched;

pub(crate) use watched::invert_by_regions;

pub use self::{
    fixed::{credible, fixed},
    watched::watched,
};

/// The numbers from `low` to `high`, both included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Whether the interval contains the number.
    #[must_use]
    pub fn contains(&self, x: f64) -> bool {
        self.low <= x && x <= self.high
    }
}
