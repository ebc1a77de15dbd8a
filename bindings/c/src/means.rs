//! Deciding a claim about the mean of bounded numbers while they come in.

use bytemuck::{Pod, Zeroable};
use millstream_csm::Progress;
use millstream_csm::means::{MeanDriver, MeanSetup};

use crate::driver::{claim, code, unused};
use crate::extensible::{self, Extensible};
use crate::interval::millstream_csm_interval_result;
use crate::status::{answer, borrow, borrow_mut, place, release, slice};

/// A claim about a mean, and the required certainty of its verdict.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct millstream_csm_mean_setup {
    /// sizeof(millstream_csm_mean_setup): it shows the library with which members the program was compiled.
    pub struct_bytes: u64,
    /// MILLSTREAM_CSM_AT_LEAST, MILLSTREAM_CSM_AT_MOST, MILLSTREAM_CSM_WITHIN or MILLSTREAM_CSM_BETWEEN.
    pub claim: i32,
    /// Must be 0.
    pub reserved: u32,
    /// The lower threshold, if the claim has one.
    pub low: f64,
    /// The upper threshold, if the claim has one.
    pub high: f64,
    /// The smallest possible value.
    pub least: f64,
    /// The largest possible value.
    pub most: f64,
    /// The largest acceptable probability that the verdict or the interval is wrong.
    pub error: f64,
    /// The largest number of values; 0 means no limit.
    pub limit: u64,
}

// SAFETY: `Pod` rules out padding, and the first member is the size.
unsafe impl Extensible for millstream_csm_mean_setup {
    const NAME: &'static str = "millstream_csm_mean_setup";
    const FIRST_BYTES: u64 = 64;
}

impl millstream_csm_mean_setup {
    fn build(&self) -> Result<MeanSetup, crate::status::Failure> {
        unused("reserved, a member of millstream_csm_mean_setup,", self.reserved)?;
        let setup = MeanSetup::new(claim(self.claim, self.low, self.high)?, self.error, self.least, self.most);
        Ok(if self.limit == 0 { setup } else { setup.limit(self.limit) })
    }
}

/// Watches bounded numbers and reports when they decide a claim about their mean.
pub struct millstream_csm_mean_driver {
    driver: MeanDriver,
}

/// The progress of a mean driver.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct millstream_csm_mean_status {
    /// sizeof(millstream_csm_mean_status), set by the caller.
    pub struct_bytes: u64,
    /// Number of values observed.
    pub trials: u64,
    /// Mean of the values; NaN without values.
    pub mean: f64,
    /// An interval for the true mean, valid simultaneously at all times.
    pub interval: millstream_csm_interval_result,
    /// MILLSTREAM_CSM_RUNNING, MILLSTREAM_CSM_HOLDS, MILLSTREAM_CSM_FAILS or MILLSTREAM_CSM_AT_LIMIT.
    pub progress: i32,
    /// Always 0.
    pub reserved: u32,
}

// SAFETY: `Pod` rules out padding, and the first member is the size.
unsafe impl Extensible for millstream_csm_mean_status {
    const NAME: &'static str = "millstream_csm_mean_status";
    const FIRST_BYTES: u64 = 48;
}

/// Makes a driver without observations.
///
/// # Safety
/// `setup` points to a setup whose `struct_bytes` is its size; `out` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_mean_driver_new(
    setup: *const millstream_csm_mean_setup,
    out: *mut *mut millstream_csm_mean_driver,
) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that `setup` is NULL or as large as its first member says.
        let setup = unsafe { extensible::read("setup", setup) }?.build()?;
        let driver = MeanDriver::new(&setup)?;
        Ok(Box::into_raw(Box::new(millstream_csm_mean_driver { driver })))
    };
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write.
    unsafe { answer(out, compute) }
}

/// Frees a driver.
///
/// # Safety
/// `driver` is NULL or was made by millstream_csm_mean_driver_new, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_mean_driver_free(driver: *mut millstream_csm_mean_driver) {
    // SAFETY: the caller guarantees that `driver` is NULL or came from a function that makes one, and is not used
    // afterwards.
    unsafe { release(driver) }
}

/// Records one value and stores the state of the decision in `*progress`. A value outside the bounds is an error, and
/// is left out. Values after a decision, or beyond the limit, are not counted.
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
        // SAFETY: the caller guarantees that `driver` is NULL or a live driver that no other thread uses.
        let driver = &mut unsafe { borrow_mut("driver", driver) }?.driver;
        driver.observe(value)?;
        Ok(code(driver.progress()))
    };
    // SAFETY: the caller guarantees that `progress` is NULL or valid for a write.
    unsafe { answer(progress, compute) }
}

/// Records values in order until the claim is decided. Stores the number of recorded values in `*used`, and the state
/// of the decision in `*progress`, unless `progress` is NULL. The decision comes after the same value as with
/// millstream_csm_mean_driver_observe. If a value before the decision is outside the bounds, the call fails, and none
/// of the values is recorded.
///
/// # Safety
/// `driver` was made by millstream_csm_mean_driver_new; `values` points to `count` numbers, and may be NULL if `count` is
/// 0; `used` points to a size_t; `progress` is NULL or points to an int32_t.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_mean_driver_observe_many(
    driver: *mut millstream_csm_mean_driver,
    values: *const f64,
    count: usize,
    used: *mut usize,
    progress: *mut i32,
) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that `driver` is NULL or a live driver that no other thread uses.
        let driver = &mut unsafe { borrow_mut("driver", driver) }?.driver;
        // SAFETY: the caller guarantees that `values` points to `count` numbers, and `used` is NULL or valid for a write.
        let (values, used) = unsafe { (slice("values", values, count)?, place("used", used)?) };
        let mut later = driver.clone();
        let mut seen = values.iter();
        while later.progress() == Progress::Running
            && let Some(&value) = seen.next()
        {
            later.observe(value)?;
        }
        used.write(count - seen.len());
        *driver = later;
        Ok(code(driver.progress()))
    };
    let mut unasked = 0;
    let progress = if progress.is_null() { &raw mut unasked } else { progress };
    // SAFETY: `progress` points to `unasked` above, or the caller guarantees that it is valid for a write.
    unsafe { answer(progress, compute) }
}

/// Reports the progress of a driver.
///
/// # Safety
/// `driver` was made by millstream_csm_mean_driver_new; `out` points to a `millstream_csm_mean_status` whose
/// `struct_bytes` is its size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_mean_driver_status(
    driver: *const millstream_csm_mean_driver,
    out: *mut millstream_csm_mean_status,
) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that `driver` is NULL or a live driver.
        let status = unsafe { borrow("driver", driver) }?.driver.status();
        Ok(millstream_csm_mean_status {
            struct_bytes: millstream_csm_mean_status::BYTES,
            trials: status.trials,
            mean: status.mean.unwrap_or(f64::NAN),
            interval: status.interval.into(),
            progress: code(status.progress),
            reserved: 0,
        })
    };
    // SAFETY: the caller guarantees that `out` is NULL or as large as its first member says.
    unsafe { extensible::answer(out, compute) }
}
