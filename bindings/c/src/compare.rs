//! Which of two samples is smaller, and are they alike at all?

use std::ffi::c_char;

use millstream_csm::Driver;
use millstream_csm::compare::{Comparison, Paired, Smaller, samples};
use millstream_csm::permutation::{Null, Permutation, Tail, mean_difference, median_difference};
use millstream_csm::random::Random;

use crate::driver::{millstream_csm_setup, millstream_csm_status, status_of};
use crate::interval::millstream_csm_interval_result;
use crate::status::{Failure, answer, borrow, slice};

/// It is not certain which is smaller.
pub const MILLSTREAM_CSM_NEITHER: i32 = 0;
/// The first is smaller.
pub const MILLSTREAM_CSM_FIRST: i32 = 1;
/// The second is smaller.
pub const MILLSTREAM_CSM_SECOND: i32 = 2;

/// As extreme is a statistic whose absolute value is at least as large: the default of the other languages.
pub const MILLSTREAM_CSM_BOTH: i32 = 0;
/// As extreme is a statistic that is at least as large: the first sample has the larger values, as in scipy.
pub const MILLSTREAM_CSM_GREATER: i32 = 1;
/// As extreme is a statistic that is at most as large.
pub const MILLSTREAM_CSM_LESS: i32 = 2;

/// What a comparison knows.
#[repr(C)]
pub struct millstream_csm_comparison {
    /// How many pairs there are; of unpaired samples, the size of the smaller one.
    pub pairs: u64,
    /// MILLSTREAM_CSM_FIRST or MILLSTREAM_CSM_SECOND if that is certain, and MILLSTREAM_CSM_NEITHER otherwise.
    pub smaller: i32,
    /// The second's size over the first's, as estimated; not a number without data.
    pub ratio: f64,
    /// Where that ratio lies; right at all times at once.
    pub interval: millstream_csm_interval_result,
}

impl From<Comparison> for millstream_csm_comparison {
    fn from(comparison: Comparison) -> Self {
        Self {
            pairs: comparison.pairs,
            smaller: match comparison.smaller {
                None => MILLSTREAM_CSM_NEITHER,
                Some(Smaller::First) => MILLSTREAM_CSM_FIRST,
                Some(Smaller::Second) => MILLSTREAM_CSM_SECOND,
            },
            ratio: comparison.ratio.unwrap_or(f64::NAN),
            interval: comparison.interval.into(),
        }
    }
}

/// Compares the medians of two samples of numbers above zero by their ratio, second over first.
///
/// # Safety
/// `first` points to `first_size` numbers and `second` to `second_size`; `out` points to a `millstream_csm_comparison`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_compare(
    first: *const f64,
    first_size: usize,
    second: *const f64,
    second_size: usize,
    error: f64,
    out: *mut millstream_csm_comparison,
) -> i32 {
    let compute = || {
        // SAFETY: the caller's promise.
        let (first, second) = unsafe { (slice("first", first, first_size)?, slice("second", second, second_size)?) };
        Ok(samples(first, second, error)?.into())
    };
    // SAFETY: the caller's promise.
    unsafe { answer(out, compute) }
}

/// Compares pairs of numbers above zero by the median of their ratios, second over first, in the order given; it stops at
/// the first pair at which it is certain which is smaller.
///
/// # Safety
/// `first` and `second` point to `pairs` numbers each; `out` points to a `millstream_csm_comparison`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_compare_pairs(
    first: *const f64,
    second: *const f64,
    pairs: usize,
    error: f64,
    out: *mut millstream_csm_comparison,
) -> i32 {
    let compute = || {
        // SAFETY: the caller's promise.
        let (first, second) = unsafe { (slice("first", first, pairs)?, slice("second", second, pairs)?) };
        let mut paired = Paired::new(error)?;
        for (&first, &second) in first.iter().zip(second) {
            if paired.observe(first, second)?.is_some() {
                break;
            }
        }
        Ok(paired.status()?.into())
    };
    // SAFETY: the caller's promise.
    unsafe { answer(out, compute) }
}

/// Is a difference between two samples larger than chance makes it?
///
/// Divides the values of both at random, again and again, and decides the setup's claim about the p-value, which is the
/// rate of divisions whose statistic is as extreme as that of the samples. `statistic` is "mean" or "median": the
/// first's less the second's. `tail` is MILLSTREAM_CSM_BOTH, MILLSTREAM_CSM_GREATER or MILLSTREAM_CSM_LESS. The null
/// hypothesis is that the second sample is distributed like `shift + scale * first`; 0 and 1 if both are alike. The same
/// seed gives the same answer. Give the setup a limit: a p-value at the threshold takes for ever.
///
/// # Safety
/// `first` points to `first_size` numbers and `second` to `second_size`; `statistic` is a C string; `setup` points to a
/// setup whose `method` is NULL or a C string; `out` points to a `millstream_csm_status`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_permutation(
    first: *const f64,
    first_size: usize,
    second: *const f64,
    second_size: usize,
    statistic: *const c_char,
    tail: i32,
    shift: f64,
    scale: f64,
    setup: *const millstream_csm_setup,
    seed: u64,
    out: *mut millstream_csm_status,
) -> i32 {
    let compute = || {
        // SAFETY: the caller's promise.
        let (first, second) = unsafe { (slice("first", first, first_size)?, slice("second", second, second_size)?) };
        // SAFETY: the caller's promise.
        let (name, setup) = unsafe { (crate::status::text("statistic", statistic)?, borrow("setup", setup)?.read()?) };
        let statistic: fn(&[f64], &[f64]) -> f64 = match name {
            Some("mean") => mean_difference,
            Some("median") => median_difference,
            Some(found) => return Err(Failure::Name { what: "statistic", found: found.to_owned() }),
            None => return Err(Failure::Null { what: "statistic" }),
        };
        let tail = match tail {
            MILLSTREAM_CSM_GREATER => Tail::Greater,
            MILLSTREAM_CSM_LESS => Tail::Less,
            MILLSTREAM_CSM_BOTH => Tail::Both,
            found => return Err(Failure::Code { what: "tail", found }),
        };
        let mut test = Permutation::new(first, second, statistic, tail, Null { shift, scale })?;
        let mut random = Random::seeded(seed);
        let mut driver = Driver::new(&setup)?;
        Ok(status_of(&driver.run(|| test.draw(&mut random), |_| ())))
    };
    // SAFETY: the caller's promise.
    unsafe { answer(out, compute) }
}
