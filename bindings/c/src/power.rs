//! The cost of a decision, before any trial.

use millstream_csm::Power;

use crate::driver::millstream_csm_setup;
use crate::status::{answer, borrow};

/// The outcomes of a setup at a known rate of success.
#[repr(C)]
pub struct millstream_csm_power_result {
    /// The probability of the verdict "holds" within the limit.
    pub holds: f64,
    /// The probability of the verdict "fails" within the limit.
    pub fails: f64,
    /// The probability that the claim is undecided at the limit.
    pub undecided: f64,
    /// The mean number of trials; undecided runs count as the limit.
    pub mean_trials: f64,
}

/// Computes how likely a setup decides within `limit` trials when the rate of success is `rate`, by exact dynamic
/// programming.
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
        // SAFETY: the caller guarantees that `setup` is NULL or a setup whose `method` is NULL or a C string.
        let setup = unsafe { borrow("setup", setup)?.read() }?;
        let Power { holds, fails, undecided, mean_trials, .. } = setup.power(rate, limit)?;
        Ok(millstream_csm_power_result { holds, fails, undecided, mean_trials })
    };
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write.
    unsafe { answer(out, compute) }
}
