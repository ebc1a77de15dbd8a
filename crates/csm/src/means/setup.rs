//! The set-up of a decision about a mean.

use crate::driver::log_part;
use crate::{Claim, Error};

/// A question about a mean.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct MeanSetup {
    /// The claim; its thresholds are in the unit of the values.
    pub claim: Claim,
    /// The maximum probability that the verdict or any interval is wrong; between 0 and 1.
    pub error: f64,
    /// The smallest possible value.
    pub low: f64,
    /// The largest possible value.
    pub high: f64,
    /// The maximum number of values: without a verdict by then, the claim remains undecided.
    pub limit: Option<u64>,
}

impl MeanSetup {
    /// A claim about values from `low` to `high`, without a limit on the number of values.
    #[must_use]
    pub fn new(claim: Claim, error: f64, low: f64, high: f64) -> Self {
        MeanSetup { claim, error, low, high, limit: None }
    }

    /// The same question with a maximum number of values.
    #[must_use]
    pub fn limit(self, values: u64) -> Self {
        MeanSetup { limit: Some(values), ..self }
    }

    /// Checks that the question makes sense.
    pub(super) fn check(&self) -> Result<(), Error> {
        let in_order = |what, low: f64, high: f64| -> Result<(), Error> {
            if let Some(found) = [low, high].into_iter().find(|x| !x.is_finite()) {
                return Err(Error::NotFinite { what, found });
            }
            if low >= high {
                return Err(Error::NotInOrder { what, low, high });
            }
            let width = high - low;
            if width.is_finite() && (1.0 / width).is_finite() {
                return Ok(());
            }
            Err(Error::OutOfRange { what, expected: "between 1e-308 and 1e308 apart", found: width })
        };
        in_order("the bounds of the values", self.low, self.high)?;
        let (first, last) = match self.claim {
            Claim::AtLeast(mean) | Claim::AtMost(mean) => (mean, mean),
            Claim::Within { low, high } | Claim::Between { low, high } => {
                in_order("two thresholds", low, high)?;
                (low, high)
            }
        };
        in_order("the least value and the threshold", self.low, first)?;
        in_order("the threshold and the largest value", last, self.high)?;
        if self.limit == Some(0) {
            return Err(Error::OutOfRange { what: "the limit", expected: "at least one value", found: 0.0 });
        }
        log_part(self.error, 1.0).map(drop)
    }

    /// Scales a threshold between the bounds to a number from 0 to 1, with an error of at most `2 * 2^-53`.
    pub(super) fn scale(&self, value: f64) -> f64 {
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }
}
