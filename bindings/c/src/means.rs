//! Deciding a claim about a mean of bounded numbers as they come in.

use millstream_csm::means::{MeanDriver, MeanSetup};

use crate::driver::{claim, code};
use crate::interval::millstream_csm_interval_result;
use crate::status::{answer, borrow, borrow_mut, release};

/// What is claimed about a mean, and how sure the answer has to be.
#[repr(C)]
pub struct millstream_csm_mean_setup {
    /// MILLSTREAM_CSM_AT_LEAST, MILLSTREAM_CSM_AT_MOST, MILLSTREAM_CSM_WITHIN or MILLSTREAM_CSM_BETWEEN.
    pub claim: i32,
    /// The lower threshold, if the claim has one.
    pub low: f64,
    /// The upper threshold, if the claim has one.
    pub high: f64,
    /// The least that a single value can be.
    pub least: f64,
    /// The most that a single value can be.
    pub most: f64,
    /// The most that the probability of a wrong answer, verdict or interval, may be.
    pub error: f64,
    /// The most values; 0 for no limit.
    pub limit: u64,
}

impl millstream_csm_mean_setup {
    fn read(&self) -> Result<MeanSetup, crate::status::Failure> {
        let setup = MeanSetup::new(claim(self.claim, self.low, self.high)?, self.error, self.least, self.most);
        Ok(if self.limit == 0 { setup } else { setup.limit(self.limit) })
    }
}

/// Watches bounded numbers and says when they decide a claim about their mean.
pub struct millstream_csm_mean_driver {
    driver: MeanDriver,
}

/// How far a driver of means has come.
#[repr(C)]
pub struct millstream_csm_mean_status {
    /// Values observed.
    pub trials: u64,
    /// Their mean; not a number without values.
    pub mean: f64,
    /// Where the mean lies; right at all times at once.
    pub interval: millstream_csm_interval_result,
    /// MILLSTREAM_CSM_RUNNING, MILLSTREAM_CSM_HOLDS, MILLSTREAM_CSM_FAILS or MILLSTREAM_CSM_AT_LIMIT.
    pub progress: i32,
}

/// A driver that has seen nothing.
///
/// # Safety
/// `setup` points to a setup; `out` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_mean_driver_new(
    setup: *const millstream_csm_mean_setup,
    out: *mut *mut millstream_csm_mean_driver,
) -> i32 {
    let compute = || {
        // SAFETY: the caller's promise.
        let setup = unsafe { borrow("setup", setup) }?.read()?;
        let driver = MeanDriver::new(&setup)?;
        Ok(Box::into_raw(Box::new(millstream_csm_mean_driver { driver })))
    };
    // SAFETY: the caller's promise.
    unsafe { answer(out, compute) }
}

/// Gives a driver back.
///
/// # Safety
/// `driver` is NULL or was made by millstream_csm_mean_driver_new, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_mean_driver_free(driver: *mut millstream_csm_mean_driver) {
    // SAFETY: the caller's promise.
    unsafe { release(driver) }
}

/// Notes one value and says what is known now. A value that is not between the bounds is refused and left out; values
/// after a decision, or beyond the limit, are not counted.
///
/// # Safety
/// `driver` was made by millstream_csm_mean_driver_new; `progress` points to an int32_t.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_mean_driver_observe(
    driver: *mut millstream_csm_mean_driver,
    value: f64,
    progress: *mut i32,
) -> i32 {
    let compute = || {
        // SAFETY: the caller's promise.
        let driver = &mut unsafe { borrow_mut("driver", driver) }?.driver;
        driver.observe(value)?;
        Ok(code(driver.progress()))
    };
    // SAFETY: the caller's promise.
    unsafe { answer(progress, compute) }
}

/// How far the driver has come.
///
/// # Safety
/// `driver` was made by millstream_csm_mean_driver_new; `out` points to a `millstream_csm_mean_status`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_mean_driver_status(
    driver: *const millstream_csm_mean_driver,
    out: *mut millstream_csm_mean_status,
) -> i32 {
    let compute = || {
        // SAFETY: the caller's promise.
        let status = unsafe { borrow("driver", driver) }?.driver.status();
        Ok(millstream_csm_mean_status {
            trials: status.trials,
            mean: status.mean.unwrap_or(f64::NAN),
            interval: status.interval.into(),
            progress: code(status.progress),
        })
    };
    // SAFETY: the caller's promise.
    unsafe { answer(out, compute) }
}
