//! Balls and bins.

use millstream_csm::bins::{Bins, Poissonised};
use millstream_csm::random::Random;

use crate::status::{answer, borrow_mut, release};

/// Draws how full all bins are when the first one is full.
pub struct millstream_csm_bins {
    bins: Bins,
    sampler: Poissonised,
    random: Random,
}

/// A sampler for `bins` bins that hold `capacity` balls each; the same `seed` gives the same numbers everywhere.
///
/// # Safety
/// `out` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_bins_new(
    bins: u32,
    capacity: u32,
    seed: u64,
    out: *mut *mut millstream_csm_bins,
) -> i32 {
    let compute = || {
        let bins = Bins::new(bins, capacity)?;
        let sampler = millstream_csm_bins { bins, sampler: Poissonised::new(bins), random: Random::seeded(seed) };
        Ok(Box::into_raw(Box::new(sampler)))
    };
    // SAFETY: the caller's promise.
    unsafe { answer(out, compute) }
}

/// Gives a sampler back.
///
/// # Safety
/// `sampler` is NULL or was made by millstream_csm_bins_new, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_bins_free(sampler: *mut millstream_csm_bins) {
    // SAFETY: the caller's promise.
    unsafe { release(sampler) }
}

/// One trial: the share of all places in use when the first bin is full.
///
/// # Safety
/// `sampler` was made by millstream_csm_bins_new; `fill` points to a double.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_bins_fill(sampler: *mut millstream_csm_bins, fill: *mut f64) -> i32 {
    let compute = || {
        // SAFETY: the caller's promise.
        let millstream_csm_bins { bins, sampler, random } = unsafe { borrow_mut("sampler", sampler) }?;
        Ok(bins.fill(sampler.balls(random)))
    };
    // SAFETY: the caller's promise.
    unsafe { answer(fill, compute) }
}
