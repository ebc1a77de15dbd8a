//! The interval that may be examined at any time: a confidence sequence.

use super::Interval;
use crate::driver::{Region, log_part};
use crate::number::Ball;
use crate::number::kernel::{Rate, ln_beta};
use crate::number::ln::ln;
use crate::process::check_counts;
use crate::{Error, MAX_TRIALS};

/// Both shapes of the Beta prior.
const PRIOR: f64 = 0.5;

/// A confidence sequence for the rate. Over an endless sequence of examinations, the probability that the true rate is
/// ever outside the interval is at most `error`.
///
/// **Why.** For each rate `p`, the likelihood ratio averaged over a Beta(1/2, 1/2) prior is an e-process, that is, a
/// bet against `p` at fair odds. The interval consists of the rates whose e-process is below `1/error`. It misses the
/// true rate only if the e-process of that rate ever exceeds `1/error`, which has a probability of at most `error`. As
/// a function of `p`, the evidence falls up to the observed rate and rises after it, so the set is an interval. Each
/// end is the last float that is ruled out.
///
/// The prior is that of Jeffreys, whose evidence is within a constant factor of the optimum for every rate (Clarke and
/// Barron 1994). After 1000 trials with an error of 0.05, and compared with Robbins' uniform prior, the interval is 8 %
/// narrower at a rate of 0.99, equally wide at 0.9, and 4 % wider at 0.5.
///
/// # Errors
/// More successes than trials, too many trials, or an error not between 0 and 1.
///
/// # Cost
/// About 20 microseconds.
///
/// ```
/// let interval = millstream_csm::interval::watched(1000, 990, 0.05)?;
/// assert!(interval.contains(0.99) && !interval.contains(0.97));
/// # Ok::<(), millstream_csm::Error>(())
/// ```
pub fn watched(trials: u64, successes: u64, error: f64) -> Result<Interval, Error> {
    check_counts(trials, successes)?;
    Ok(invert(trials, successes, log_part(error, 1.0)?))
}

/// The interval of all rates that are not ruled out with the error of their region.
pub(crate) fn invert_by_regions(trials: u64, successes: u64, regions: &[Region]) -> Interval {
    let mut from = 0.0;
    let mut all: Option<Interval> = None;
    for region in regions {
        let found = invert(trials, successes, region.log_eps);
        let (low, high) = (found.low.max(from), found.high.min(region.to));
        if low <= high {
            all = Some(all.map_or(Interval { low, high }, |all| Interval { low: all.low, high }));
        }
        from = region.to;
    }
    all.expect("the observed rate is never ruled out")
}

/// The rates whose evidence is below `e^-log_eps`.
fn invert(trials: u64, successes: u64, log_eps: f64) -> Interval {
    // One half plus a count of up to 2^52 is exact. For larger counts, no rate is ruled out.
    if trials == 0 || trials >= MAX_TRIALS / 2 {
        return Interval { low: 0.0, high: 1.0 };
    }
    let (s, f) = (successes as f64, (trials - successes) as f64);
    let evidence = Evidence::new(s, f);
    let below = |p: f64| evidence.level(s, f, p) < log_eps;
    let above = |q: f64| evidence.level(f, s, q) < log_eps;
    let observed = s / trials as f64;
    let low = if s == 0.0 { 0.0 } else { last(observed, below) };
    let high = if f == 0.0 { 1.0 } else { 1.0 - last(1.0 - observed, above) };
    // 1 - q is rounded, so the next float is at or beyond the exact difference.
    Interval { low, high: high.next_up().min(1.0) }
}

/// The largest float above 0 and at most `end` for which the condition is true; 0 if there is none. If the condition is
/// true for a float, it must be true for all smaller floats.
fn last(end: f64, holds: impl Fn(f64) -> bool) -> f64 {
    // Positive floats have the same order as their bits, so the bits are searched by bisection.
    let (mut low, mut high) = (0, end.to_bits());
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(f64::from_bits(middle)) {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::from_bits(low)
}

/// The evidence against a rate, as a function of the rate.
struct Evidence {
    /// The part that does not depend on the rate: `ln B(1/2, 1/2) - ln B(s + 1/2, f + 1/2)`.
    constant: Ball,
}

impl Evidence {
    fn new(s: f64, f: f64) -> Self {
        Evidence { constant: ln_beta(PRIOR, PRIOR) - ln_beta(s + PRIOR, f + PRIOR) }
    }

    /// Minus the logarithm of the evidence, rounded up: `s ln p + f ln(1 - p)` plus the constant. The two cancel
    /// partly; with 106 bits, nothing that matters is lost.
    fn level(&self, s: f64, f: f64, p: f64) -> f64 {
        let rate = Rate::new(p);
        (ln(rate.x.into()) * s + ln(rate.y.into()) * f + self.constant).upper()
    }
}
