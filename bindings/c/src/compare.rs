//! Which of two samples is smaller, and whether they differ at all.

use std::ffi::c_char;

use millstream_csm::Driver;
use millstream_csm::compare::{Comparison, Paired, Smaller, samples};
use millstream_csm::permutation::{Null, Permutation, Tail, mean_difference, median_difference};
use millstream_csm::random::Random;

use bytemuck::{Pod, Zeroable};

use crate::driver::{millstream_csm_setup, millstream_csm_status, status_of};
use crate::extensible::{self, Extensible};
use crate::interval::millstream_csm_interval_result;
use crate::status::{Failure, slice};

/// It is not certain which one is smaller.
pub const MILLSTREAM_CSM_NEITHER: i32 = 0;
/// The first is certainly smaller.
pub const MILLSTREAM_CSM_FIRST: i32 = 1;
/// The second is certainly smaller.
pub const MILLSTREAM_CSM_SECOND: i32 = 2;

/// A statistic is extreme if its absolute value is at least as large as the observed one. This is the default in the
/// other languages.
pub const MILLSTREAM_CSM_BOTH: i32 = 0;
/// A statistic is extreme if it is at least as large as the observed one: the first sample has the larger values, as in
/// scipy.
pub const MILLSTREAM_CSM_GREATER: i32 = 1;
/// A statistic is extreme if it is at most as large as the observed one.
pub const MILLSTREAM_CSM_LESS: i32 = 2;

/// The result of a comparison.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct millstream_csm_comparison {
    /// sizeof(millstream_csm_comparison), set by the caller.
    pub struct_bytes: u64,
    /// Number of pairs; for unpaired samples, the size of the smaller one.
    pub pairs: u64,
    /// MILLSTREAM_CSM_FIRST, MILLSTREAM_CSM_SECOND, or MILLSTREAM_CSM_NEITHER if it is not certain which one is
    /// smaller.
    pub smaller: i32,
    /// Always 0.
    pub reserved: u32,
    /// The estimated ratio, second over first; NaN without data.
    pub ratio: f64,
    /// An interval for the true ratio, valid simultaneously at all times.
    pub interval: millstream_csm_interval_result,
}

// SAFETY: `Pod` rules out padding, and the first member is the size.
unsafe impl Extensible for millstream_csm_comparison {
    const NAME: &'static str = "millstream_csm_comparison";
    const FIRST_BYTES: u64 = 48;
}

impl From<Comparison> for millstream_csm_comparison {
    fn from(comparison: Comparison) -> Self {
        Self {
            struct_bytes: Self::BYTES,
            reserved: 0,
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

/// Compares the medians of two samples of positive numbers by their ratio, second over first.
///
/// # Safety
/// `first` points to `first_size` numbers and `second` to `second_size`; `out` points to a
/// `millstream_csm_comparison` whose `struct_bytes` is its size.
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
        // SAFETY: the caller guarantees that `first` and `second` point to as many numbers as their sizes say.
        let (first, second) = unsafe { (slice("first", first, first_size)?, slice("second", second, second_size)?) };
        Ok(samples(first, second, error)?.into())
    };
    // SAFETY: the caller guarantees that `out` is NULL or as large as its first member says.
    unsafe { extensible::answer(out, compute) }
}

/// Compares pairs of positive numbers by the median of their ratios, second over first. Examines the pairs in the given
/// order, and stops as soon as it is certain which one is smaller.
///
/// # Safety
/// `first` and `second` point to `pairs` numbers each; `out` points to a
/// `millstream_csm_comparison` whose `struct_bytes` is its size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_compare_pairs(
    first: *const f64,
    second: *const f64,
    pairs: usize,
    error: f64,
    out: *mut millstream_csm_comparison,
) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that `first` and `second` point to `pairs` numbers each.
        let (first, second) = unsafe { (slice("first", first, pairs)?, slice("second", second, pairs)?) };
        let mut paired = Paired::new(error, 1.0)?;
        for (&first, &second) in first.iter().zip(second) {
            if paired.observe(first, second)?.is_some() {
                break;
            }
        }
        Ok(paired.status()?.into())
    };
    // SAFETY: the caller guarantees that `out` is NULL or as large as its first member says.
    unsafe { extensible::answer(out, compute) }
}

/// Tests whether the difference between two samples is larger than chance explains.
///
/// The function repeatedly divides the values of both samples at random into two new samples of the same sizes. It
/// decides the setup's claim about the p-value, which is the rate of divisions whose statistic is at least as extreme
/// as that of the given samples. `statistic` is "mean" or "median", of the first sample minus that of the second.
/// `tail` is MILLSTREAM_CSM_BOTH, MILLSTREAM_CSM_GREATER or MILLSTREAM_CSM_LESS. The null hypothesis is that the second
/// sample is distributed like `shift + scale * first`; with 0 and 1, it is that both have the same distribution. The
/// same seed leads to the same answer. Set a limit in the setup, because a p-value at the threshold may never be
/// decided.
///
/// # Safety
/// `first` points to `first_size` numbers and `second` to `second_size`; `statistic` is a C string; `setup` points to a
/// setup whose `struct_bytes` is its size and whose `method` is NULL or a C string; `out` points to a
/// `millstream_csm_status` whose `struct_bytes` is its size.
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
        // SAFETY: the caller guarantees that `first` and `second` point to as many numbers as their sizes say.
        let (first, second) = unsafe { (slice("first", first, first_size)?, slice("second", second, second_size)?) };
        // SAFETY: the caller guarantees that `statistic` is NULL or a C string, and that `setup` is NULL or a setup as
        // large as its first member says, whose `method` is NULL or a C string.
        let (name, setup) =
            unsafe { (crate::status::text("statistic", statistic)?, millstream_csm_setup::read(setup)?) };
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
    // SAFETY: the caller guarantees that `out` is NULL or as large as its first member says.
    unsafe { extensible::answer(out, compute) }
}
