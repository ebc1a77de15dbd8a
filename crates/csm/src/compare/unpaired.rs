//! Comparison of two independent samples.

use super::{Comparison, check_positive, median};
use crate::{Error, Interval, quantile};

/// Compares the medians of two samples by their ratio, `second / first`.
///
/// Each median has a [confidence sequence](quantile) with half of the error, and the ratio is between the quotients of
/// their opposite ends. This is valid for all sample sizes simultaneously, so the caller may measure more and compare
/// again. If the sizes were fixed beforehand, [`fixed_samples`](super::fixed_samples) needs far fewer values.
///
/// # Errors
/// A value that is not a finite number above zero, an error that is not between 0 and 1, or an empty sample.
///
/// ```
/// use millstream_csm::compare::{Smaller, samples};
///
/// let old: Vec<f64> = (0..200).map(|i| 20.0 + f64::from(i % 9)).collect();
/// let new: Vec<f64> = (0..300).map(|i| 12.0 + f64::from(i % 9)).collect();
/// let comparison = samples(&old, &new, 1e-3)?;
/// assert_eq!(comparison.smaller, Some(Smaller::Second));
/// assert!(comparison.interval.high < 0.8);
/// # Ok::<(), millstream_csm::Error>(())
/// ```
pub fn samples(first: &[f64], second: &[f64], error: f64) -> Result<Comparison, Error> {
    let first = Median::new("the first sample", first, error / 2.0)?;
    let second = Median::new("the second sample", second, error / 2.0)?;
    let interval = Interval {
        // The error of a quotient is half a unit in the last place, which a step to the next float covers.
        low: if second.between.low > 0.0 {
            (second.between.low / first.between.high).next_down().max(0.0)
        } else {
            0.0
        },
        high: if first.between.low > 0.0 { (second.between.high / first.between.low).next_up() } else { f64::INFINITY },
    };
    Ok(Comparison::new(first.size.min(second.size), Some(second.value / first.value), interval, error))
}

/// The values in ascending order.
pub(super) fn sorted(sample: &[f64]) -> Vec<f64> {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// A sample's median and its interval.
struct Median {
    size: u64,
    value: f64,
    between: Interval,
}

impl Median {
    fn new(what: &'static str, sample: &[f64], error: f64) -> Result<Self, Error> {
        for &value in sample {
            check_positive(what, value)?;
        }
        let sorted = sorted(sample);
        let value = median(&sorted).ok_or(Error::TooFew { what, least: 1, found: 0 })?;
        let between = quantile::interval(&sorted, 0.5, error)?;
        Ok(Median { size: sorted.len() as u64, value, between })
    }
}
