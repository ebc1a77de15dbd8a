//! An interval for a quantile of any distribution, between two of the observed values.
//!
//! Whatever the distribution, the share of values that are at most the `q`-quantile is at least `q`, and the share of
//! values below the quantile is at most `q`. Both shares are success rates. So a confidence sequence for a quantile
//! depends on ranks alone (S. Howard and A. Ramdas, "Sequential estimation of quantiles with applications to A/B
//! testing and best-arm identification", 2022). The quantile is at least the `low`-th smallest value, unless improbably
//! few values are at most the quantile. It is at most the `high`-th smallest value, unless improbably many values are
//! below it. Both conditions are one-sided tests of the rate `q`, as in [`Method::OneSided`], each with half of the
//! error.
//!
//! ```
//! use millstream_csm::quantile;
//!
//! let mut latencies_ms: Vec<f64> = (0..1000).map(|i| f64::from(i * 7919 % 1000)).collect();
//! latencies_ms.sort_by(f64::total_cmp);
//! let median = quantile::interval(&latencies_ms, 0.5, 0.05)?;
//! assert!(median.contains(500.0) && median.high - median.low < 150.0);
//! # Ok::<(), millstream_csm::Error>(())
//! ```

use crate::driver::log_part;
use crate::process::check_counts;
use crate::{Direction, Error, Interval, Method, Test};

/// The ranks of two sorted values that enclose a quantile. Ranks count from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ranks {
    /// The quantile is at least the value of this rank; zero if no value is known to be below it.
    pub low: u64,
    /// The quantile is at most the value of this rank; the number of values plus one if none is known to be above it.
    pub high: u64,
}

/// The ranks that enclose the `q`-quantile after `n` values. The ranks are valid for all `n` simultaneously with a
/// probability of at least `1 - error`.
///
/// # Errors
/// `q` or the error is not between 0 and 1, or there are too many values.
///
/// # Cost
/// About 100 evaluations of the test, which take less than a millisecond.
pub fn ranks(n: u64, q: f64, error: f64) -> Result<Ranks, Error> {
    check_counts(n, 0)?;
    let test = test(q, error)?;
    let stops = |direction, count| test.proves(direction, n, count);
    // It is improbable that fewer than `too_few` values are at most the quantile, and that `too_many` or more values
    // are below the quantile.
    let too_few = first(n + 1, |count| !stops(Direction::Below, count));
    let too_many = first(n + 1, |count| stops(Direction::Above, count));
    Ok(Ranks { low: too_few, high: too_many.max(1) })
}

/// The interval between two values that contains the `q`-quantile of their distribution. An end without a bound is
/// infinite. The interval is valid for all numbers of values simultaneously with a probability of at least `1 - error`,
/// if the values are independent and identically distributed.
///
/// # Errors
/// The errors of [`ranks`]; a value that is not a number; values that are not sorted.
pub fn interval(sorted: &[f64], q: f64, error: f64) -> Result<Interval, Error> {
    if let Some(&found) = sorted.iter().find(|value| value.is_nan()) {
        return Err(Error::NotFinite { what: "each value", found });
    }
    if let Some(before) = sorted.windows(2).position(|pair| pair[0] > pair[1]) {
        return Err(Error::NotSorted { what: "the values", index: before + 1 });
    }
    let ranks = ranks(sorted.len() as u64, q, error)?;
    let value = |rank: u64| sorted.get((rank as usize).wrapping_sub(1)).copied();
    Ok(Interval {
        low: value(ranks.low).unwrap_or(f64::NEG_INFINITY),
        high: value(ranks.high).unwrap_or(f64::INFINITY),
    })
}

/// The test behind [`ranks`]: half of the error for each direction.
pub(crate) fn test(q: f64, error: f64) -> Result<Test, Error> {
    Test::new(q, log_part(error, 2.0)?, Method::OneSided)
}

/// The smallest number below `end` for which the condition is true; `end` if there is none. If the condition is true
/// for a number, it is true for all larger ones.
fn first(end: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, end);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}
