//! Intervals for a number of trials that was fixed beforehand.

use super::Interval;
use crate::choose::split;
use crate::driver::log_part;
use crate::{Error, Side, beta_bound};

/// The Clopper-Pearson interval. It contains the true rate with a probability of at least `1 - error`, **if the number
/// of trials was fixed** before the first trial. Each end has half of the error. Use [`watched`](super::watched) if the
/// stopping time may depend on the data.
///
/// The lower end is the rate at which at least `successes` successes have a probability of `error / 2`. The upper end
/// is the rate at which at most `successes` have that probability. Both are quantiles of a Beta distribution, rounded
/// outwards.
///
/// # Errors
/// More successes than trials, too many trials, or an error not between 0 and 1.
///
/// ```
/// let interval = millstream_csm::interval::fixed(10, 10, 0.05)?;
/// assert!((interval.low - 0.025f64.powf(0.1)).abs() < 1e-15 && interval.high == 1.0);
/// # Ok::<(), millstream_csm::Error>(())
/// ```
pub fn fixed(trials: u64, successes: u64, error: f64) -> Result<Interval, Error> {
    let (s, f) = counts(trials, successes, error)?;
    let low = if s == 0.0 { 0.0 } else { beta_bound(s, f + 1.0, error / 2.0, Side::Low)?.bound };
    let high = if f == 0.0 { 1.0 } else { beta_bound(s + 1.0, f, error / 2.0, Side::High)?.bound };
    Ok(Interval { low, high })
}

/// The middle `1 - error` of the posterior under a uniform prior: a Beta(s + 1, n - s + 1) distribution, with `error /
/// 2` left out at each end.
///
/// If the rate was drawn from a uniform distribution, the interval misses the rate with a probability of `error`. For
/// some fixed rates, however, this probability is above `error`, unlike with [`fixed`].
///
/// # Errors
/// Those of [`fixed`].
pub fn credible(trials: u64, successes: u64, error: f64) -> Result<Interval, Error> {
    let (s, f) = counts(trials, successes, error)?;
    let end = |side| beta_bound(s + 1.0, f + 1.0, error / 2.0, side).map(|bound| bound.bound);
    Ok(Interval { low: end(Side::Low)?, high: end(Side::High)? })
}

/// Checks the arguments, and returns the numbers of successes and failures.
fn counts(trials: u64, successes: u64, error: f64) -> Result<(f64, f64), Error> {
    log_part(error, 1.0)?;
    split(trials, successes, "successes", "trials")
}
