//! Robbins' criterion: do the data suffice to distinguish a success rate from a threshold?
//!
//! After `n` trials with `s` successes, stop when
//!
//! ```text
//! (n + 1) C(n, s) alpha^s (1 - alpha)^(n - s) < eps
//! ```
//!
//! If the success rate is exactly `alpha`, the probability that the criterion is **ever** met, in an endless sequence
//! of evaluations, is at most `eps`. The reason is that the inverse of the left side is the likelihood ratio of a
//! uniform mixture of success rates to `alpha`. At the rate `alpha`, this ratio is a martingale that starts at 1 (H.
//! Robbins, "Statistical methods related to the law of the iterated logarithm", 1970). If the rate is not `alpha`, the
//! criterion is met eventually with probability 1. The observed rate is then on the same side of `alpha` as the true
//! rate, with a probability of at least `1 - eps` (Ding, Gandy and Hahn, "A simple method for implementing Monte Carlo
//! tests", 2020).
//!
//! All values are logarithms: the test stops when the *level*, which is `ln` of the left side, falls below `ln eps`.
//!
//! # Why the level is never below the true one
//! `n!`, `s!` and `(n-s)!` come from Stirling's series, which is enveloping: wherever it is truncated, its error is
//! less than the first omitted term. Their large terms cancel against `s ln alpha` and `(n-s) ln(1 - alpha)` in the
//! formula itself, which leaves
//!
//! ```text
//! s ln(alpha n / s) + (n-s) ln((1-alpha) n / (n-s)) + 1/2 ln(n (n+1)^2 / (2 pi s (n-s))) + d(n) - d(s) - d(n-s)
//! ```
//!
//! Each of these terms is evaluated as a ball: a centre, and a radius that every operation and every truncation widens
//! by its maximum error. The centre has 106 bits wherever 53 would not suffice. The level is the upper end of the sum,
//! rounded up.
//!
//! # Published figures
//! Paul Khuong's article on the method prints levels at a threshold of 98 %. Those levels are rounded to the safe side,
//! too. They come from Robbins' inequality for factorials, which is Stirling's series after one term, so they exceed
//! the truth by up to the next term. They also depend on the logarithm of the system's library. The printed levels and
//! those of this crate:
//!
//! | successes of trials | printed | here |
//! | --- | --- | --- |
//! | 10 of 10 | 2.1958681996231784 | 2.195868199623176 |
//! | 100 of 100 | 2.5948497850893184 | 2.594849785089313 |
//! | 995 of 1000 | -3.0115331544604658 | -3.0117844100508 |
//! | 1984 of 2000 | -4.190687115879456 | -4.1907134264331 |
//! | 3972 of 4000 | -17.238559826956475 (stop) | -17.2385685324129 (stop) |
//!
//! The article also prints the 99.9 % interval from those 4000 trials: 0.98821198 to 0.99638327. It is wider than the
//! exact interval by `7e-6` below and `2e-9` above, because its series for the Beta distribution stops early. The
//! result of [`beta_bound`](crate::beta_bound) is 0.98821935 to 0.99638327.

use crate::choose::split;
use crate::number::exact::two_prod;
use crate::number::kernel::{self, Rate};
use crate::{Decision, Direction, Error};

/// Whether `s` successes in `n` trials distinguish the success rate from `alpha`, with an error of at most `e^log_eps`.
///
/// `alpha` and `log_eps` are the exact values of the floats, not the decimal numbers from which they may have been
/// read. The comparison is strict. The returned direction is the side of `alpha` on which the observed rate is. The
/// direction is wrong if the true rate is `alpha` or on the *other* side, and the probability that this ever happens is
/// at most `e^log_eps`. To see this for [`Direction::Above`], note that above `alpha` one more success lowers the
/// level. So the probability of the direction grows with the true rate, and at `alpha` it has Robbins' bound.
///
/// # Rounding
/// The returned level is never below the true one, so rounding can only make the criterion wait longer, and the
/// promised error holds in floating point. The excess is less than `1e-12 max(1, |level|)` up to `10^6` trials, and
/// less than `1e-9 max(1, |level|)` up to [`MAX_TRIALS`](crate::MAX_TRIALS).
///
/// # Errors
/// `s > n`, `n` above [`MAX_TRIALS`](crate::MAX_TRIALS), `alpha` outside `[0, 1]`, or a `log_eps` that is not a number
/// or is positive. A `log_eps` of minus infinity means an `eps` of 0: the test never stops.
///
/// # Cost
/// About 100 ns, whatever the counts.
///
/// # Example
/// ```
/// use millstream_csm::{Direction, robbins};
/// // 3972 of 4000: does that tell the rate from 98 %, being wrong once in a thousand?
/// let look = robbins::stop(4000, 0.98, 3972, 0.001f64.ln())?;
/// assert_eq!(look.stop, Some(Direction::Above));
/// assert!((look.level + 17.23856).abs() < 1e-5);
/// # Ok::<(), millstream_csm::Error>(())
/// ```
pub fn stop(n: u64, alpha: f64, s: u64, log_eps: f64) -> Result<Decision, Error> {
    if log_eps.is_nan() {
        return Err(Error::NotFinite { what: "the logarithm of the error", found: log_eps });
    }
    if log_eps > 0.0 {
        return Err(Error::OutOfRange {
            what: "the logarithm of the error",
            expected: "at most 0, as an error is at most 1",
            found: log_eps,
        });
    }
    let level = level(n, alpha, s)?;
    // `side` is not `None` here: if the observed rate equals `alpha`, the level is at least zero.
    let stop = if level < log_eps { side(alpha, s as f64, n as f64) } else { None };
    Ok(Decision { stop, level })
}

/// The side of `alpha` on which the observed rate `part / whole` is; `None` if the rate equals `alpha`, or without
/// data. `part` is zero or at least `2^-3`.
pub(crate) fn side(alpha: f64, part: f64, whole: f64) -> Option<Direction> {
    // Rounding a product to the nearest float never moves it past another float, though it may make the two equal; then
    // the rounding error decides.
    let (expected, rest) = two_prod(alpha, whole);
    let missing = if expected == part { rest } else { expected - part };
    if missing < 0.0 {
        Some(Direction::Above)
    } else if missing > 0.0 {
        Some(Direction::Below)
    } else {
        None
    }
}

/// An upper bound on the level.
fn level(n: u64, alpha: f64, s: u64) -> Result<f64, Error> {
    let (successes, failures) = split(n, s, "successes", "trials")?;
    check_rate("the threshold", alpha)?;
    // A single counterexample refutes a threshold of 0 or 1.
    if alpha == 0.0 || alpha == 1.0 {
        let refuted = if alpha == 0.0 { s > 0 } else { s < n };
        return Ok(if refuted { f64::NEG_INFINITY } else { crate::number::ln::ln((n as f64 + 1.0).into()).upper() });
    }
    Ok(kernel::level(successes, failures, &Rate::new(alpha)).upper())
}

/// Rejects numbers that are not probabilities.
pub(crate) fn check_rate(what: &'static str, rate: f64) -> Result<(), Error> {
    if !rate.is_finite() {
        return Err(Error::NotFinite { what, found: rate });
    }
    if !(0.0..=1.0).contains(&rate) {
        return Err(Error::OutOfRange { what, expected: "between 0 and 1", found: rate });
    }
    Ok(())
}
