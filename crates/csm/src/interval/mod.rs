//! Intervals for a success rate. Choose by the way in which the number of trials is determined:
//!
//! | situation | use |
//! | --- | --- |
//! | the interval is examined while data come in, or the data decide when to stop (a stopping time) | [`watched`] |
//! | the number of trials was fixed beforehand, and the interval is examined only at the end | [`fixed`] |
//! | a Bayesian posterior under a uniform prior is needed for a picture or a comparison | [`credible`] |
//!
//! In at most 5 % of all runs, a `watched` interval of 95 % *ever* misses the true rate, at any number of trials. A
//! `fixed` interval makes a far weaker promise, for a single number of trials. For a rate of 0.9, a `fixed` interval of
//! 95 % that is examined after each of the first 3000 trials misses the true rate at some time in 42 % of all runs.

mod fixed;
mod watched;

pub(crate) use watched::invert_by_regions;

pub use self::{
    fixed::{credible, fixed},
    watched::watched,
};

/// The numbers from `low` to `high`, including both ends.
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
