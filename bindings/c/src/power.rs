//! The cost of a decision, before any trial.

use bytemuck::{Pod, Zeroable};
use millstream_csm::Power;

use crate::driver::millstream_csm_setup;
use crate::extensible::{self, Extensible};

/// The expected behaviour of a setup at a known rate of success.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct millstream_csm_power_result {
    /// sizeof(millstream_csm_power_result), set by the caller.
    pub struct_bytes: u64,
    /// The probability of the verdict "holds" within the limit.
    pub holds: f64,
    /// The probability of the verdict "fails" within the limit.
    pub fails: f64,
    /// The probability that the claim is undecided at the limit.
    pub undecided: f64,
    /// The mean number of trials. Undecided runs count with the limit.
    pub mean_trials: f64,
}

// SAFETY: `Pod` rules out padding, and the first member is the size.
unsafe impl Extensible for millstream_csm_power_result {
    const NAME: &'static str = "millstream_csm_power_result";
    const FIRST_BYTES: u64 = 40;
}

/// Computes the probabilities of the verdicts within `limit` trials if the rate of success is `rate`, by exact dynamic
/// programming.
///
/// # Safety
/// `setup` points to a setup whose `struct_bytes` is its size and whose `method` is NULL or a C string; `out` points to
/// a `millstream_csm_power_result` whose `struct_bytes` is its size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_power(
    setup: *const millstream_csm_setup,
    rate: f64,
    limit: u64,
    out: *mut millstream_csm_power_result,
) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that `setup` is NULL or a setup as large as its first member says, whose
        // `method` is NULL or a C string.
        let setup = unsafe { millstream_csm_setup::read(setup) }?;
        let Power { holds, fails, undecided, mean_trials, .. } = setup.power(rate, limit)?;
        let struct_bytes = millstream_csm_power_result::BYTES;
        Ok(millstream_csm_power_result { struct_bytes, holds, fails, undecided, mean_trials })
    };
    // SAFETY: the caller guarantees that `out` is NULL or as large as its first member says.
    unsafe { extensible::answer(out, compute) }
}
