//! Thresholds, and the limits on counts.

use crate::choose::split;
use crate::number::Ball;
use crate::number::kernel::Rate;
use crate::number::ln::ln;
use crate::robbins::side;
use crate::{Direction, Error};

/// A success rate strictly between 0 and 1: the exact value of a float.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Threshold {
    value: f64,
    pub(super) rate: Rate,
}

impl Threshold {
    /// # Errors
    /// [`Error::NotFinite`] and [`Error::OutOfRange`], unless `0 < value < 1`.
    pub(crate) fn new(value: f64) -> Result<Self, Error> {
        let what = "a threshold";
        if !value.is_finite() {
            return Err(Error::NotFinite { what, found: value });
        }
        if value <= 0.0 || value >= 1.0 {
            return Err(Error::OutOfRange { what, expected: "between 0 and 1, both excluded", found: value });
        }
        Ok(Threshold { value, rate: Rate::new(value) })
    }

    /// The success rate.
    pub(crate) fn value(self) -> f64 {
        self.value
    }

    /// `ln p`.
    pub(super) fn ln(self) -> Ball {
        ln(self.rate.x.into())
    }

    /// `ln (1 - p)`.
    pub(super) fn ln_complement(self) -> Ball {
        ln(self.rate.y.into())
    }

    /// Whether `a / (a + b)` is on this side of the threshold or equal to it. The answer is exact if `a + b` is. If the
    /// rate equals the threshold, the counts are evidence for both directions, so that success and failure are
    /// symmetric.
    pub(super) fn speaks_for(self, direction: Direction, a: f64, b: f64) -> bool {
        side(self.value, a, a + b) != Some(direction.opposite())
    }
}

/// Rejects more successes than trials, and more trials than [`MAX_TRIALS`](crate::MAX_TRIALS).
pub(crate) fn check_counts(trials: u64, successes: u64) -> Result<(), Error> {
    split(trials, successes, "successes", "trials").map(drop)
}

/// Rejects everything except the logarithm of an error above 0 and at most 1.
pub(crate) fn check_log_eps(log_eps: f64) -> Result<(), Error> {
    let what = "the logarithm of the error";
    if !log_eps.is_finite() {
        return Err(Error::NotFinite { what, found: log_eps });
    }
    if log_eps > 0.0 {
        return Err(Error::OutOfRange { what, expected: "at most zero", found: log_eps });
    }
    Ok(())
}
