//! Deciding a claim about a rate while the data come in.

use std::ffi::c_char;

use bytemuck::{Pod, Zeroable, checked};
use millstream_csm::{Claim, Driver, Progress, Setup, Status, Verdict};

use crate::extensible::{self, Extensible};
use crate::interval::millstream_csm_interval_result;
use crate::status::{Failure, answer, borrow, borrow_mut, place, release, slice, text};

/// The rate of success is more than `low`.
pub const MILLSTREAM_CSM_AT_LEAST: i32 = 0;
/// The rate of success is less than `high`.
pub const MILLSTREAM_CSM_AT_MOST: i32 = 1;
/// The rate of success is between `low` and `high`.
pub const MILLSTREAM_CSM_WITHIN: i32 = 2;
/// Two thresholds: "holds" is right if the rate is above `low`, and "fails" is right if it is below `high`. In between,
/// both are right, so this claim is always decided.
pub const MILLSTREAM_CSM_BETWEEN: i32 = 3;

/// The data do not decide the claim yet.
pub const MILLSTREAM_CSM_RUNNING: i32 = 0;
/// The claim holds.
pub const MILLSTREAM_CSM_HOLDS: i32 = 1;
/// The claim fails.
pub const MILLSTREAM_CSM_FAILS: i32 = 2;
/// The limit was reached without a decision.
pub const MILLSTREAM_CSM_AT_LIMIT: i32 = 3;

/// A claim, and the required certainty of its verdict: `millstream_csm_setup setup = {.struct_bytes = sizeof setup,
/// .claim = MILLSTREAM_CSM_AT_LEAST, .low = 0.9, .error = 1e-6};`
#[derive(Clone, Copy, Zeroable)]
#[repr(C)]
pub struct millstream_csm_setup {
    /// sizeof(millstream_csm_setup): it shows the library with which members the program was compiled.
    pub struct_bytes: u64,
    /// MILLSTREAM_CSM_AT_LEAST, MILLSTREAM_CSM_AT_MOST, MILLSTREAM_CSM_WITHIN or MILLSTREAM_CSM_BETWEEN.
    pub claim: i32,
    /// Must be 0.
    pub reserved: u32,
    /// The lower threshold, if the claim has one.
    pub low: f64,
    /// The upper threshold, if the claim has one.
    pub high: f64,
    /// The largest acceptable probability that the verdict or the interval is wrong.
    pub error: f64,
    /// The method: "mixture", "balanced", "robbins", "centred" or "one-sided"; with two thresholds, also "blend" or
    /// "sprt". NULL selects the best method.
    pub method: *const c_char,
    /// The largest number of trials; 0 means no limit.
    pub limit: u64,
}

// SAFETY: the first member is the size, all bit patterns of integers, floats and raw pointers are values, and the
// members add up to the first size, so there is no padding.
unsafe impl Extensible for millstream_csm_setup {
    const NAME: &'static str = "millstream_csm_setup";
    const FIRST_BYTES: u64 = 56;
}

const _: () = assert!(millstream_csm_setup::BYTES == 7 * 8);

impl millstream_csm_setup {
    /// # Safety
    /// `setup` is NULL, or points to as many bytes as its first member says, and its `method` is NULL or a C string.
    pub(crate) unsafe fn read(setup: *const Self) -> Result<Setup, Failure> {
        // SAFETY: the caller guarantees that `setup` is NULL or as large as its first member says.
        let given = unsafe { extensible::read("setup", setup) }?;
        unused("reserved, a member of millstream_csm_setup,", given.reserved)?;
        let mut setup = Setup::new(claim(given.claim, given.low, given.high)?, given.error);
        // SAFETY: the caller guarantees that `method` is NULL or a C string.
        if let Some(name) = unsafe { text("method", given.method) }? {
            setup = setup.method(name.parse()?);
        }
        Ok(if given.limit == 0 { setup } else { setup.limit(given.limit) })
    }
}

/// Rejects a reserved member that is not 0, because a later version may define a meaning for it.
pub(crate) fn unused(what: &'static str, found: u32) -> Result<(), Failure> {
    if found == 0 { Ok(()) } else { Err(Failure::Code { what, found: i32::from_ne_bytes(found.to_ne_bytes()) }) }
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
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct millstream_csm_status {
    /// sizeof(millstream_csm_status), set by the caller.
    pub struct_bytes: u64,
    /// Number of trials observed.
    pub trials: u64,
    /// Number of successes among them.
    pub successes: u64,
    /// An interval for the rate of success, valid simultaneously at all times.
    pub interval: millstream_csm_interval_result,
    /// The level of the test that is closest to a decision.
    pub level: f64,
    /// The claim is decided when the level is below this bound.
    pub log_eps: f64,
    /// MILLSTREAM_CSM_RUNNING, MILLSTREAM_CSM_HOLDS, MILLSTREAM_CSM_FAILS or MILLSTREAM_CSM_AT_LIMIT.
    pub progress: i32,
    /// Always 0.
    pub reserved: u32,
}

// SAFETY: `Pod` rules out padding, and the first member is the size.
unsafe impl Extensible for millstream_csm_status {
    const NAME: &'static str = "millstream_csm_status";
    const FIRST_BYTES: u64 = 64;
}

/// Makes a driver that starts after `trials` trials with `successes` successes; pass 0 and 0 for a new driver. To
/// resume later, save the setup and the two counts: they are the driver's whole state.
///
/// # Safety
/// `setup` points to a setup whose `struct_bytes` is its size and whose `method` is NULL or a C string; `out` points to
/// a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_driver_new(
    setup: *const millstream_csm_setup,
    trials: u64,
    successes: u64,
    out: *mut *mut millstream_csm_driver,
) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that `setup` is NULL or a setup as large as its first member says, whose
        // `method` is NULL or a C string.
        let setup = unsafe { millstream_csm_setup::read(setup) }?;
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

/// Records trials in order until the claim is decided. Stores the number of recorded trials in `*used`, and the state
/// of the decision in `*progress`, unless `progress` is NULL. The decision comes after the same trial as with
/// millstream_csm_driver_observe. `*used` is less than `count` only after a decision or at the limit.
///
/// # Safety
/// `driver` was made by millstream_csm_driver_new; `successes` points to `count` outcomes, and may be NULL if `count` is
/// 0; `used` points to a size_t; `progress` is NULL or points to an int32_t.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_driver_observe_many(
    driver: *mut millstream_csm_driver,
    successes: *const bool,
    count: usize,
    used: *mut usize,
    progress: *mut i32,
) -> i32 {
    // SAFETY: the caller guarantees that `driver`, `used` and `progress` are as `change` and `answer` require.
    unsafe {
        change(driver, progress, |driver| {
            // The outcomes are read as bytes, because a `bool` is certain to be 0 or 1 only in a correct C program.
            let bytes = slice("successes", successes.cast::<u8>(), count)?;
            let outcomes = checked::try_cast_slice(bytes)
                .map_err(|_| Failure::Outcome { found: bytes.iter().copied().max().unwrap_or_default() })?;
            let used = place("used", used)?;
            used.write(driver.observe_slice(outcomes).0);
            Ok(())
        })
    }
}

/// Records a set of trials that belong together, such as a batch that ran in parallel or a resampled set. Evaluates the
/// evidence only once, at the end of the set.
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
/// `driver` was made by millstream_csm_driver_new; `out` points to a `millstream_csm_status` whose `struct_bytes` is its
/// size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_driver_status(
    driver: *const millstream_csm_driver,
    out: *mut millstream_csm_status,
) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that `driver` is NULL or a live driver.
        Ok(status_of(&unsafe { borrow("driver", driver) }?.driver.status()))
    };
    // SAFETY: the caller guarantees that `out` is NULL or as large as its first member says.
    unsafe { extensible::answer(out, compute) }
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
        struct_bytes: millstream_csm_status::BYTES,
        trials: status.trials,
        successes: status.successes,
        interval: status.interval.into(),
        level: status.level,
        log_eps: status.log_eps,
        progress: code(status.progress),
        reserved: 0,
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
