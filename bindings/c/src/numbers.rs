//! The low-level functions: logarithms of binomial coefficients, Robbins' criterion and the other methods, Beta
//! quantiles.

use std::ffi::c_char;

use bytemuck::{Pod, Zeroable};
use millstream_csm::{BetaBound, Decision, Direction, Interval, Method, Side, Test};

use crate::extensible::{self, Extensible};
use crate::status::{Failure, answer, text};

/// The bound is below the quantile.
pub const MILLSTREAM_CSM_LOW: i32 = 0;
/// The bound is above the quantile.
pub const MILLSTREAM_CSM_HIGH: i32 = 1;

/// Two bounds around an exact value.
#[repr(C)]
pub struct millstream_csm_bounds {
    /// A number no larger than the exact value.
    pub lower: f64,
    /// A number no smaller than the exact value.
    pub upper: f64,
}

/// Bounds the natural logarithm of the number of ways to choose `k` of `n`.
///
/// # Safety
/// `out` points to a `millstream_csm_bounds`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_log_choose(n: u64, k: u64, out: *mut millstream_csm_bounds) -> i32 {
    let compute = || {
        let Interval { low, high } = millstream_csm::log_choose(n, k)?;
        Ok(millstream_csm_bounds { lower: low, upper: high })
    };
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write.
    unsafe { answer(out, compute) }
}

/// The result of millstream_csm_stop.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct millstream_csm_stop_result {
    /// sizeof(millstream_csm_stop_result), set by the caller.
    pub struct_bytes: u64,
    /// 1 if the true rate differs from the threshold, 0 if that is undecided.
    pub stop: i32,
    /// 1 if the rate is above the threshold, -1 if below, 0 if undecided.
    pub direction: i32,
    /// Minus the logarithm of the evidence, rounded up. The test stops when it is less than `log_eps`.
    pub level: f64,
}

// SAFETY: `Pod` rules out padding, and the first member is the size.
unsafe impl Extensible for millstream_csm_stop_result {
    const NAME: &'static str = "millstream_csm_stop_result";
    const FIRST_BYTES: u64 = 24;
}

/// Decides whether the rate of success differs from `threshold`, after `successes` in `trials`. Programs may call this
/// function after every trial: the probability that any of the answers is wrong is at most exp(log_eps).
///
/// `method` is "mixture", "balanced", "robbins", "centred" or "one-sided"; NULL is "robbins". With "one-sided", each
/// direction has an error of exp(log_eps): for a rate above or below the threshold, the probability of the wrong
/// direction is at most exp(log_eps). At the threshold itself both directions are wrong, and the two errors add up to
/// at most 2 exp(log_eps).
///
/// # Safety
/// `method` is NULL or a C string; `out` points to a `millstream_csm_stop_result` whose `struct_bytes` is its
/// size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_stop(
    trials: u64,
    successes: u64,
    threshold: f64,
    log_eps: f64,
    method: *const c_char,
    out: *mut millstream_csm_stop_result,
) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that `method` is NULL or a C string.
        let method = match unsafe { text("method", method) }? {
            Some(name) => name.parse()?,
            None => Method::Robbins,
        };
        let Decision { stop, level, .. } = Test::new(threshold, log_eps, method)?.stop(trials, successes)?;
        let direction = match stop {
            Some(Direction::Above) => 1,
            Some(Direction::Below) => -1,
            None => 0,
        };
        let struct_bytes = millstream_csm_stop_result::BYTES;
        Ok(millstream_csm_stop_result { struct_bytes, stop: i32::from(stop.is_some()), direction, level })
    };
    // SAFETY: the caller guarantees that `out` is NULL or as large as its first member says.
    unsafe { extensible::answer(out, compute) }
}

/// A bound on a quantile of a Beta distribution.
#[repr(C)]
pub struct millstream_csm_beta_result {
    /// The bound.
    pub bound: f64,
    /// One minus the bound, to full precision.
    pub complement: f64,
}

/// Computes a bound on a quantile of Beta(a, b), on the safe side: with MILLSTREAM_CSM_LOW at most `eps` of the
/// probability is below the bound; with MILLSTREAM_CSM_HIGH at most `eps` is above it.
///
/// # Safety
/// `out` points to a `millstream_csm_beta_result`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_beta_bound(
    a: f64,
    b: f64,
    eps: f64,
    side: i32,
    out: *mut millstream_csm_beta_result,
) -> i32 {
    let compute = || {
        let side = match side {
            MILLSTREAM_CSM_LOW => Side::Low,
            MILLSTREAM_CSM_HIGH => Side::High,
            found => return Err(Failure::Code { what: "side", found }),
        };
        let BetaBound { bound, complement } = millstream_csm::beta_bound(a, b, eps, side)?;
        Ok(millstream_csm_beta_result { bound, complement })
    };
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write.
    unsafe { answer(out, compute) }
}
