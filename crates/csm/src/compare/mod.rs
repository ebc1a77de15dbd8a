//! Comparisons: which of two samples is smaller, and by what ratio?
//!
//! | the data | use |
//! | --- | --- |
//! | two commands run alternately; two files whose lines belong together | [`Paired`] |
//! | two independent files of numbers, whose sizes were fixed beforehand | [`fixed_samples`] |
//! | two independent files that may still grow and be compared again | [`samples`] |
//!
//! The comparisons assume only that the distributions do not change; the ratio of [`fixed_samples`] also assumes
//! distributions of the same shape. Pairs cancel disturbances that affect both members (a busy machine, a warm cache),
//! so measure in pairs if you can.

mod fixed;
mod paired;
mod unpaired;

pub use self::{fixed::fixed_samples, paired::Paired, unpaired::samples};

use crate::{Error, Interval};

/// The smaller of the two samples or members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Smaller {
    /// The first is smaller.
    First,
    /// The second is smaller.
    Second,
}

/// The state of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Comparison {
    /// The number of pairs; for unpaired samples, the size of the smaller one.
    pub pairs: u64,
    /// The smaller one, if the interval proves it: if all its ratios are on one side of 1, or of the ratio [with which
    /// pairs are compared](Paired::new).
    pub smaller: Option<Smaller>,
    /// The estimated ratio of the second to the first; `None` without data.
    pub ratio: Option<f64>,
    /// The interval of the true ratio: a confidence sequence, except for samples of fixed sizes.
    pub interval: Interval,
    /// The maximum probability that the true ratio is ever outside the interval.
    pub error: f64,
}

impl Comparison {
    fn new(pairs: u64, ratio: Option<f64>, interval: Interval, error: f64) -> Self {
        let smaller = if interval.low > 1.0 {
            Some(Smaller::First)
        } else if interval.high < 1.0 {
            Some(Smaller::Second)
        } else {
            None
        };
        Comparison { pairs, smaller, ratio, interval, error }
    }
}

/// Rejects values that are not positive and finite, and so have no ratio.
fn check_positive(what: &'static str, value: f64) -> Result<(), Error> {
    if !value.is_finite() {
        return Err(Error::NotFinite { what, found: value });
    }
    if value <= 0.0 {
        return Err(Error::OutOfRange { what, expected: "above zero, as ratios are compared", found: value });
    }
    Ok(())
}

/// The middle value of sorted values, or the geometric mean of the middle two.
fn median(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = sorted[sorted.len() / 2 - 1];
    Some(lower.sqrt() * upper.sqrt())
}
