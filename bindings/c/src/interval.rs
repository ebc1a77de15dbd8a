//! Intervals for a rate and for a quantile.

use bytemuck::{Pod, Zeroable};
use millstream_csm::quantile::{self, Ranks};
use millstream_csm::{Interval, interval};

use crate::status::{Failure, answer, slice};

/// The interval is valid simultaneously at all times, so it may be shown while data come in.
pub const MILLSTREAM_CSM_WATCHED: i32 = 0;
/// The interval is valid only if the number of trials was fixed before the first trial (Clopper and Pearson).
pub const MILLSTREAM_CSM_FIXED: i32 = 1;
/// The interval contains the rate with probability 1 - `error`, if every rate was equally likely beforehand (Bayes).
pub const MILLSTREAM_CSM_CREDIBLE: i32 = 2;

/// An interval from `low` to `high`, both included.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct millstream_csm_interval_result {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl From<Interval> for millstream_csm_interval_result {
    fn from(Interval { low, high }: Interval) -> Self {
        Self { low, high }
    }
}

/// Computes an interval for the rate of success, after `successes` in `trials`, that is wrong with a probability of at
/// most `error`. `kind` is MILLSTREAM_CSM_WATCHED, MILLSTREAM_CSM_FIXED or MILLSTREAM_CSM_CREDIBLE.
///
/// # Safety
/// `out` points to a `millstream_csm_interval_result`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_interval(
    trials: u64,
    successes: u64,
    error: f64,
    kind: i32,
    out: *mut millstream_csm_interval_result,
) -> i32 {
    let compute = || {
        let interval = match kind {
            MILLSTREAM_CSM_WATCHED => interval::watched(trials, successes, error)?,
            MILLSTREAM_CSM_FIXED => interval::fixed(trials, successes, error)?,
            MILLSTREAM_CSM_CREDIBLE => interval::credible(trials, successes, error)?,
            found => return Err(Failure::Code { what: "kind of interval", found }),
        };
        Ok(interval.into())
    };
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write.
    unsafe { answer(out, compute) }
}

/// Ranks in sorted data, counted from 1.
#[repr(C)]
pub struct millstream_csm_ranks {
    /// The quantile is at least the value of this rank; 0 if there is no bound.
    pub low: u64,
    /// The quantile is at most the value of this rank; one more than the number of values if there is no bound.
    pub high: u64,
}

/// Computes the ranks among `n` sorted values that enclose the quantile `q` (0.5 is the median). They are right
/// simultaneously for all `n`, except with a probability of at most `error`.
///
/// # Safety
/// `out` points to a `millstream_csm_ranks`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_quantile_ranks(
    n: u64,
    q: f64,
    error: f64,
    out: *mut millstream_csm_ranks,
) -> i32 {
    let compute = || {
        let Ranks { low, high } = quantile::ranks(n, q, error)?;
        Ok(millstream_csm_ranks { low, high })
    };
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write.
    unsafe { answer(out, compute) }
}

/// Computes an interval for the quantile `q` (0.5 is the median) of the values' distribution. It is right
/// simultaneously for all numbers of values, except with a probability of at most `error`. An end without a bound is
/// infinite. The values need not be sorted: the function sorts a copy of them.
///
/// # Safety
/// `values` points to `count` numbers, and may be NULL if `count` is 0; `out` points to a
/// `millstream_csm_interval_result`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_quantile_interval(
    values: *const f64,
    count: usize,
    q: f64,
    error: f64,
    out: *mut millstream_csm_interval_result,
) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that `values` points to `count` numbers.
        let values = unsafe { slice("values", values, count) }?;
        let mut sorted = Vec::new();
        if sorted.try_reserve_exact(count).is_err() {
            return Err(Failure::Range {
                what: "count",
                expected: "a size of which memory holds a copy",
                found: count as u64,
            });
        }
        sorted.extend_from_slice(values);
        sorted.sort_unstable_by(f64::total_cmp);
        Ok(quantile::interval(&sorted, q, error)?.into())
    };
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write.
    unsafe { answer(out, compute) }
}
