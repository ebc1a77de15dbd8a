//! Comparison of pairs, one at a time.

use super::{Comparison, Smaller, check_positive, median};
use crate::process::Watch;
use crate::{Direction, Error, Interval, quantile};

/// Compares pairs by the median of their ratios, `second / first`.
///
/// After every pair, the comparison knows whether the median's [confidence sequence](quantile) excludes the reference
/// ratio (1, or another). It does so exactly when too few of the pairs' ratios are at most the reference, or too many
/// are below it. Ratios equal to the reference are evidence for neither side.
///
/// ```
/// use millstream_csm::compare::{Paired, Smaller};
///
/// let mut times = Paired::new(1e-3, 1.0)?;
/// let mut verdict = None;
/// for i in 0..100 {
///     let noise = f64::from(i * 37 % 10);
///     verdict = times.observe(20.0 + noise, 30.0 + noise)?;
///     if verdict.is_some() {
///         break;
///     }
/// }
/// assert_eq!(verdict, Some(Smaller::First));
/// assert!(times.status()?.interval.low > 1.0);
/// # Ok::<(), millstream_csm::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Paired {
    error: f64,
    /// The reference ratio.
    against: f64,
    ratios: Vec<f64>,
    at_most: Watch,
    below: Watch,
}

impl Paired {
    /// A comparison that has no pairs yet. It asks whether the median of the ratios is above `ratio`
    /// ([`Smaller::First`]) or below it ([`Smaller::Second`]). The verdict is wrong with a probability of at most
    /// `error`. A `ratio` of 1 asks which member is smaller, and is never decided if both are equally large. A `ratio`
    /// of 1.05 asks whether the second is at most 5 % larger, which is decided soon even then.
    ///
    /// # Errors
    /// The error is not between 0 and 1; the ratio is not a finite number above zero.
    ///
    /// ```
    /// use millstream_csm::compare::{Paired, Smaller};
    ///
    /// let mut times = Paired::new(1e-3, 1.05)?;
    /// let mut verdict = None;
    /// while verdict.is_none() {
    ///     verdict = times.observe(20.0, 20.0)?;
    /// }
    /// assert_eq!(verdict, Some(Smaller::Second)); // less than 1.05 times the first
    /// # Ok::<(), millstream_csm::Error>(())
    /// ```
    pub fn new(error: f64, ratio: f64) -> Result<Self, Error> {
        check_positive("the ratio to compare with", ratio)?;
        let test = quantile::test(0.5, error)?;
        Ok(Paired {
            error,
            against: ratio,
            ratios: Vec::new(),
            at_most: Watch::new(test.clone().towards(Direction::Below)),
            below: Watch::new(test.towards(Direction::Above)),
        })
    }

    /// Adds a pair. Returns which member is smaller, once that is certain. The verdict is final; further pairs still
    /// narrow the interval.
    ///
    /// # Errors
    /// A member of the pair is not a finite number above zero. The pair is left out.
    pub fn observe(&mut self, first: f64, second: f64) -> Result<Option<Smaller>, Error> {
        check_positive("the first of a pair", first)?;
        check_positive("the second of a pair", second)?;
        self.ratios.push(second / first);
        // The members are compared directly, because their ratio may round to 1.
        let first = first * self.against;
        self.at_most.observe(second <= first);
        self.below.observe(second < first);
        Ok(self.verdict())
    }

    fn verdict(&self) -> Option<Smaller> {
        if self.at_most.stopped().is_some() {
            Some(Smaller::First)
        } else if self.below.stopped().is_some() {
            Some(Smaller::Second)
        } else {
            None
        }
    }

    /// The state of the comparison. Sorts the ratios.
    ///
    /// # Errors
    /// There are more pairs than [`MAX_TRIALS`](crate::MAX_TRIALS).
    pub fn status(&self) -> Result<Comparison, Error> {
        let mut sorted = self.ratios.clone();
        sorted.sort_by(f64::total_cmp);
        let rounded = quantile::interval(&sorted, 0.5, self.error)?;
        // Rounding preserves the order of the ratios, and a step to the next float covers the rounding error of a
        // ratio.
        let low = if rounded.low > 0.0 { rounded.low.next_down() } else { rounded.low };
        let interval = Interval { low, high: rounded.high.next_up() };
        let comparison = Comparison::new(sorted.len() as u64, median(&sorted), interval, self.error);
        Ok(Comparison { smaller: self.verdict(), ..comparison })
    }
}
