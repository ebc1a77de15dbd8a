//! The bare functions: logarithms of binomial coefficients, Robbins' criterion and its rivals, Beta quantiles.

use std::ffi::c_char;

use millstream_csm::process::{Decision, Method, Test, Threshold};
use millstream_csm::{BetaBound, Bounds, Direction, Side};

use crate::status::{Failure, answer, text};

/// The bound lies below the quantile.
pub const MILLSTREAM_CSM_LOW: i32 = 0;
/// The bound lies above the quantile.
pub const MILLSTREAM_CSM_HIGH: i32 = 1;

/// A number between two others.
#[repr(C)]
pub struct millstream_csm_bounds {
    /// No more than the exact value.
    pub lower: f64,
    /// No less than the exact value.
    pub upper: f64,
}

/// The natural logarithm of the number of ways to choose `k` of `n`.
///
/// # Safety
/// `out` points to a `millstream_csm_bounds`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_log_choose(n: u64, k: u64, out: *mut millstream_csm_bounds) -> i32 {
    let compute = || {
        let Bounds { lower, upper } = millstream_csm::log_choose(n, k)?;
        Ok(millstream_csm_bounds { lower, upper })
    };
    // SAFETY: the caller's promise.
    unsafe { answer(out, compute) }
}

/// Whether to stop observing.
#[repr(C)]
pub struct millstream_csm_stop_result {
    /// The true rate differs from the threshold.
    pub stop: bool,
    /// 1: it is above; -1: it is below; 0: undecided.
    pub direction: i32,
    /// The logarithm of the evidence's weight, at least the exact one; stops when less than `log_eps`.
    pub level: f64,
}

/// Does the rate of success differ from `threshold`, after `successes` in `trials`? May be asked after every trial: the
/// probability that it is ever answered wrongly is at most exp(log_eps).
///
/// `method` is "mixture", "balanced", "robbins", "centred" or "one-sided"; NULL is "robbins". With "one-sided" each direction
/// has an error of exp(log_eps): a rate on either side of the threshold is placed on the other one with that probability at
/// most, but at the threshold itself, where both directions are wrong, the two add up to as much as 2 exp(log_eps).
///
/// # Safety
/// `method` is NULL or a C string; `out` points to a `millstream_csm_stop_result`.
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
        // SAFETY: the caller's promise.
        let method = match unsafe { text("method", method) }? {
            Some(name) => name.parse()?,
            None => Method::Robbins,
        };
        let Decision { stop, level } =
            Test::shared(Threshold::new(threshold)?, log_eps, method)?.stop(trials, successes)?;
        let direction = match stop {
            Some(Direction::Above) => 1,
            Some(Direction::Below) => -1,
            None => 0,
        };
        Ok(millstream_csm_stop_result { stop: stop.is_some(), direction, level })
    };
    // SAFETY: the caller's promise.
    unsafe { answer(out, compute) }
}

/// A bound on a quantile of a Beta distribution.
#[repr(C)]
pub struct millstream_csm_beta_result {
    /// The bound.
    pub bound: f64,
    /// One minus the bound, with all its digits.
    pub complement: f64,
}

/// A bound on a quantile of Beta(a, b), on the safe side: with MILLSTREAM_CSM_LOW at most `eps` of the probability lies
/// below the bound, with MILLSTREAM_CSM_HIGH at most `eps` lies above it.
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
    // SAFETY: the caller's promise.
    unsafe { answer(out, compute) }
}
