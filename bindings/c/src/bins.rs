//! Balls and bins.

use millstream_csm::bins::{Bins, Poissonised};
use millstream_csm::random::Random;

use crate::status::{answer, borrow_mut, release};

/// Draws the fill of all bins at the moment when the first bin is full.
pub struct millstream_csm_bins {
    bins: Bins,
    sampler: Poissonised,
    random: Random,
}

/// Makes a sampler for `bins` bins of `capacity` balls each; the same `seed` gives the same numbers everywhere.
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
    // SAFETY: the caller guarantees that `out` is NULL or valid for a write.
    unsafe { answer(out, compute) }
}

/// Frees a sampler.
///
/// # Safety
/// `sampler` is NULL or was made by millstream_csm_bins_new, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_bins_free(sampler: *mut millstream_csm_bins) {
    // SAFETY: the caller guarantees that `sampler` is NULL or came from a function that makes one, and is not used
    // afterwards.
    unsafe { release(sampler) }
}

/// Runs one trial: the share of all places in use when the first bin is full.
///
/// # Safety
/// `sampler` was made by millstream_csm_bins_new; `fill` points to a double.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn millstream_csm_bins_fill(sampler: *mut millstream_csm_bins, fill: *mut f64) -> i32 {
    let compute = || {
        // SAFETY: the caller guarantees that `sampler` is NULL or a live sampler that no other thread uses.
        let millstream_csm_bins { bins, sampler, random } = unsafe { borrow_mut("sampler", sampler) }?;
        Ok(bins.fill(sampler.balls(random)))
    };
    // SAFETY: the caller guarantees that `fill` is NULL or valid for a write.
    unsafe { answer(fill, compute) }
}
