//! What to expect before anything is spent.

use millstream_csm::power::{self, Power};

use crate::driver::millstream_csm_setup;
use crate::status::{answer, borrow};

/// How a setup ends when the rate of success is known.
#[repr(C)]
pub struct millstream_csm_power_result {
    /// The probability that the claim is said to hold within the limit.
    pub holds: f64,
    /// The probability that it is said to fail.
    pub fails: f64,
    /// The probability that it is undecided at the limit.
    pub undecided: f64,
    /// Trials on average, those that end undecided counted as the limit.
    pub mean_trials: f64,
}

/// How likely a setup decides within `limit` trials when the rate of success is `rate`, by exact dynamic programming.
///
/// # Safety
/// `setup` points to a setup whose `method` is NULL or a C string; `out` points to a `millstream_csm_power_result`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_power(
    setup: *const millstream_csm_setup,
    rate: f64,
    limit: u64,
    out: *mut millstream_csm_power_result,
) -> i32 {
    let compute = || {
        // SAFETY: the caller's promise.
        let setup = unsafe { borrow("setup", setup)?.read() }?;
        let Power { holds, fails, undecided, mean_trials, .. } = power::power(&setup, rate, limit)?;
        Ok(millstream_csm_power_result { holds, fails, undecided, mean_trials })
    };
    // SAFETY: the caller's promise.
    unsafe { answer(out, compute) }
}
