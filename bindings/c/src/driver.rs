//! Deciding a claim about a rate as the data come in.

use std::ffi::c_char;

use millstream_csm::{Claim, Driver, Progress, Setup, Status, Verdict};

use crate::interval::millstream_csm_interval_result;
use crate::status::{Failure, answer, borrow, borrow_mut, release, text};

/// The rate of success is more than `low`.
pub const MILLSTREAM_CSM_AT_LEAST: i32 = 0;
/// The rate of success is less than `high`.
pub const MILLSTREAM_CSM_AT_MOST: i32 = 1;
/// The rate of success lies between `low` and `high`.
pub const MILLSTREAM_CSM_WITHIN: i32 = 2;
/// There are two thresholds: above `low` "holds" is a right answer, below `high` "fails" is, and in between both are.
/// This claim is always decided.
pub const MILLSTREAM_CSM_BETWEEN: i32 = 3;

/// The data do not decide the claim yet.
pub const MILLSTREAM_CSM_RUNNING: i32 = 0;
/// The claim holds.
pub const MILLSTREAM_CSM_HOLDS: i32 = 1;
/// The claim fails.
pub const MILLSTREAM_CSM_FAILS: i32 = 2;
/// The limit was reached without a decision.
pub const MILLSTREAM_CSM_AT_LIMIT: i32 = 3;

/// A claim, and the certainty that its answer must have.
#[repr(C)]
pub struct millstream_csm_setup {
    /// MILLSTREAM_CSM_AT_LEAST, MILLSTREAM_CSM_AT_MOST, MILLSTREAM_CSM_WITHIN or MILLSTREAM_CSM_BETWEEN.
    pub claim: i32,
    /// The lower threshold, if the claim has one.
    pub low: f64,
    /// The upper threshold, if the claim has one.
    pub high: f64,
    /// The largest acceptable probability that the verdict or the interval is wrong.
    pub error: f64,
    /// The way to weigh evidence: "mixture", "balanced", "robbins", "centred", "one-sided"; with two thresholds
    /// "blend" or "sprt". NULL selects the best.
    pub method: *const c_char,
    /// The largest number of trials; 0 means no limit.
    pub limit: u64,
}

impl millstream_csm_setup {
    /// # Safety
    /// `method` is NULL or a C string.
    pub(crate) unsafe fn read(&self) -> Result<Setup, Failure> {
        let mut setup = Setup::new(claim(self.claim, self.low, self.high)?, self.error);
        // SAFETY: the caller guarantees that `method` is NULL or a C string.
        if let Some(name) = unsafe { text("method", self.method) }? {
            setup = setup.method(name.parse()?);
        }
        Ok(if self.limit == 0 { setup } else { setup.limit(self.limit) })
    }
}

/// The claim with this code.
pub(crate) fn claim(code: i32, low: f64, high: f64) -> Result<Claim, Failure> {
    match code {
        MILLSTREAM_CSM_AT_LEAST => Ok(Claim::AtLeast(low)),
        MILLSTREAM_CSM_AT_MOST => Ok(Claim::AtMost(high)),
        MILLSTREAM_CSM_WITHIN => Ok(Claim::Within { low, high }),
        MILLSTREAM_CSM_BETWEEN => Ok(Claim::Between { low, high }),
        found => Err(Failure::Code { what: "claim", found }),
    }
}

/// Watches successes and failures and reports when they decide a claim.
pub struct millstream_csm_driver {
    driver: Driver,
}

/// The progress of a driver.
#[repr(C)]
pub struct millstream_csm_status {
    /// Number of trials observed.
    pub trials: u64,
    /// Number of successes among them.
    pub successes: u64,
    /// An interval for the rate of success, valid at all times at once.
    pub interval: millstream_csm_interval_result,
    /// The level of the test that is closest to a decision.
    pub level: f64,
    /// The bound below which the level decides.
    pub log_eps: f64,
    /// MILLSTREAM_CSM_RUNNING, MILLSTREAM_CSM_HOLDS, MILLSTREAM_CSM_FAILS or MILLSTREAM_CSM_AT_LIMIT.
    pub progress: i32,
}

/// Makes a driver that starts after `trials` trials with `successes` successes, 0 and 0 for a fresh one. To resume
/// later, save the setup and these two numbers: they are the driver's whole state.
///
/// # Safety
/// `setup` points to a setup whose `method` is NULL or a C string; `out` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_driver_new(
    setup: *const millstream_csm_setup,
    trials: u64,
    successes: u64,
    out: *mut *mut millstream_csm_driver,
) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that `setup` is NULL or a setup whose `method` is NULL or a C string.
        let setup = unsafe { borrow("setup", setup)?.read() }?;
        let driver = Driver::resume(&setup, trials, successes)?;
        Ok(Box::into_raw(Box::new(millstream_csm_driver { driver })))
    };
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write.
    unsafe { answer(out, compute) }
}

/// Frees a driver.
///
/// # Safety
/// `driver` is NULL or was made by millstream_csm_driver_new, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_driver_free(driver: *mut millstream_csm_driver) {
    // SAFETY: the caller guarantees that `driver` is NULL or came from a function that makes one, and is not used
    // afterwards.
    unsafe { release(driver) }
}

/// Records one trial and stores the state of the decision in `*progress`, unless `progress` is NULL. Trials after a
/// decision, or beyond the limit, are not counted.
///
/// # Safety
/// `driver` was made by millstream_csm_driver_new; `progress` is NULL or points to an int32_t.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_driver_observe(
    driver: *mut millstream_csm_driver,
    success: bool,
    progress: *mut i32,
) -> i32 {
    // SAFETY: the caller guarantees that `driver` and `progress` are as `change` requires.
    unsafe {
        change(driver, progress, |driver| {
            driver.observe(success);
            Ok(())
        })
    }
}

/// Records a set of trials that belong together, such as a batch that ran in parallel or a resampled set, and
/// evaluates the evidence once, at its end.
///
/// # Safety
/// `driver` was made by millstream_csm_driver_new; `progress` is NULL or points to an int32_t.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_driver_observe_set(
    driver: *mut millstream_csm_driver,
    trials: u64,
    successes: u64,
    progress: *mut i32,
) -> i32 {
    // SAFETY: the caller guarantees that `driver` and `progress` are as `change` requires.
    unsafe {
        change(driver, progress, |driver| {
            driver.observe_set(trials, successes)?;
            Ok(())
        })
    }
}

/// Reports the progress of a driver.
///
/// # Safety
/// `driver` was made by millstream_csm_driver_new; `out` points to a `millstream_csm_status`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_driver_status(
    driver: *const millstream_csm_driver,
    out: *mut millstream_csm_status,
) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that `driver` is NULL or a live driver.
        Ok(status_of(&unsafe { borrow("driver", driver) }?.driver.status()))
    };
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write.
    unsafe { answer(out, compute) }
}

/// # Safety
/// The conditions are those of the functions that call this one.
unsafe fn change(
    driver: *mut millstream_csm_driver,
    progress: *mut i32,
    change: impl FnOnce(&mut Driver) -> Result<(), Failure>,
) -> i32 {
    let mut unasked = 0;
    let progress = if progress.is_null() { &raw mut unasked } else { progress };
    let compute = || {
        // SAFETY: the caller guarantees that `driver` is NULL or a live driver that no other thread uses.
        let driver = &mut unsafe { borrow_mut("driver", driver) }?.driver;
        change(driver)?;
        Ok(code(driver.progress()))
    };
    // SAFETY: `progress` points to `unasked` above, or the caller guarantees that it is valid for a write.
    unsafe { answer(progress, compute) }
}

pub(crate) fn status_of(status: &Status) -> millstream_csm_status {
    millstream_csm_status {
        trials: status.trials,
        successes: status.successes,
        interval: status.interval.into(),
        level: status.level,
        log_eps: status.log_eps,
        progress: code(status.progress),
    }
}

pub(crate) fn code(progress: Progress) -> i32 {
    match progress {
        Progress::Running => MILLSTREAM_CSM_RUNNING,
        Progress::Decided(Verdict::Holds) => MILLSTREAM_CSM_HOLDS,
        Progress::Decided(Verdict::Fails) => MILLSTREAM_CSM_FAILS,
        Progress::AtLimit => MILLSTREAM_CSM_AT_LIMIT,
    }
}
