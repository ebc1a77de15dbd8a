//! Bounds on the quantiles of the Beta distribution.
//!
//! The lower bound is a number `x` with a proof of `I_x(a, b) <= eps`. It is as near to the quantile as the proof
//! permits.
//!
//! # The method, and why the bound is on the safe side
//! As a function of `t = ln(x / (1-x))`, the density of the Beta distribution, `e^(a t) (1 + e^t)^-(a+b)`, is
//! log-concave for all shapes. Therefore its distribution function is log-concave, too (Prékopa). A tangent to a
//! concave function is above the function:
//!
//! ```text
//! ln I(t) <= ln I(t0) + (t - t0) f(t0) / I(t0)
//! ```
//!
//! So a single proven evaluation at any `t0` proves an inequality for all `t`, and the bound is the `t` at which the
//! right side equals `ln eps`: Newton's step *is* the proof. The [search](guess) for `t0` needs no proof, but the
//! nearer `t0` is to the quantile, the tighter the bound. For a step `d`, the tangent loses `d^2 (f/I - L) / 2`, where
//! `L` is the density's logarithmic slope. The last step keeps this loss below `2^-46`. Because `e^d >= 1 + d`, the
//! odds after the step are on the safe side, too.
//!
//! The upper bound is the complement of the lower bound for the shapes exchanged.

mod guess;
mod odds;
mod step;

use self::guess::guess;
use self::step::Step;
use crate::Error;
use crate::number::exp::exp;
use crate::number::ln::ln;
use crate::number::tails::tails;

/// An end of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The low end: a lower bound, with little probability below it.
    Low,
    /// The high end: an upper bound, with little probability above it.
    High,
}

/// A bound on a quantile of a Beta distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BetaBound {
    /// The bound: never above the quantile for [`Side::Low`], never below it for [`Side::High`].
    pub bound: f64,
    /// One minus the bound, to full relative precision even if the bound is close to 1. It errs on the same side as the
    /// bound: it is never below one minus the quantile for [`Side::Low`], and never above it for [`Side::High`].
    pub complement: f64,
}

/// The smallest shape above zero: `2^-30`.
const MIN_SHAPE: f64 = 9.313_225_746_154_785e-10;

/// The largest shape: `2^53`.
const MAX_SHAPE: f64 = 9_007_199_254_740_992.0;

/// A bound for a Beta(`a`, `b`) variable: the variable is beyond the bound with a probability of at most `eps`.
///
/// For [`Side::Low`] the result is the largest `x` for which `P(X < x) <= eps` is proven. For [`Side::High`] it is the
/// smallest `x` for which `P(X > x) <= eps` is proven. Compared with the quantile and its complement, the relative
/// errors of the bound and its complement are below `1e-12`, if both are normal floats and no shape is below 1. If a
/// shape is below 1, the errors are about `1e-12` divided by that shape.
///
/// Extreme arguments: with a shape of 0, all probability is at one end, so both bounds are at this end. With an `eps`
/// of 0, the bound is 0 for [`Side::Low`] and 1 for [`Side::High`]; with an `eps` of 1, it is 1 for [`Side::Low`] and 0
/// for [`Side::High`].
///
/// `eps` is taken at its exact value. The result is the same, bit for bit, on every machine.
///
/// # Errors
/// A shape that is not 0 nor between `2^-30` and `2^53`, both shapes 0, or `eps` outside `[0, 1]`.
///
/// # Cost
/// A few microseconds, whatever the shapes and `eps`.
///
/// # Example
/// ```
/// use millstream_csm::{Side, beta_bound};
/// // 3972 successes and 28 failures: what is the smallest plausible rate?
/// let low = beta_bound(3972.0, 28.0, 0.001, Side::Low)?;
/// assert!((low.bound - 0.988_219_351_468_656).abs() < 1e-14);
/// # Ok::<(), millstream_csm::Error>(())
/// ```
pub fn beta_bound(a: f64, b: f64, eps: f64, side: Side) -> Result<BetaBound, Error> {
    check_shape("the first shape", a)?;
    check_shape("the second shape", b)?;
    crate::robbins::check_rate("the error", eps)?;
    if a == 0.0 && b == 0.0 {
        return Err(Error::OutOfRange { what: "a shape", expected: "above 0 if the other one is 0", found: 0.0 });
    }
    Ok(match side {
        Side::Low => low(a, b, eps),
        Side::High => {
            let mirrored = low(b, a, eps);
            BetaBound { bound: mirrored.complement, complement: mirrored.bound }
        }
    })
}

fn check_shape(what: &'static str, shape: f64) -> Result<(), Error> {
    if !shape.is_finite() {
        return Err(Error::NotFinite { what, found: shape });
    }
    if shape != 0.0 && !(MIN_SHAPE..=MAX_SHAPE).contains(&shape) {
        return Err(Error::OutOfRange { what, expected: "0 or between 2^-30 and 2^53", found: shape });
    }
    Ok(())
}

const ZERO: BetaBound = BetaBound { bound: 0.0, complement: 1.0 };
const ONE: BetaBound = BetaBound { bound: 1.0, complement: 0.0 };

/// The maximum number of steps, which no quantile within the range of floats reaches.
const MAX_STEPS: u32 = 100;

/// The largest provable `x` with `I_x(a, b) <= eps`.
fn low(a: f64, b: f64, eps: f64) -> BetaBound {
    if a == 0.0 || (eps == 0.0 && b != 0.0) {
        return ZERO;
    }
    if b == 0.0 || eps == 1.0 {
        return ONE;
    }
    let target = ln(eps.into());
    let mut odds = guess(a, b, eps);
    for steps_left in (0..MAX_STEPS).rev() {
        let tails = tails(a, b, &odds.rate());
        let slope = exp((tails.density - tails.lower).min(700.0));
        let missing = (target - tails.lower).lower();
        let safe = if missing > 0.0 {
            missing / slope.upper() * (1.0 - 4.0 * f64::EPSILON)
        } else {
            missing / slope.lower() * (1.0 + 4.0 * f64::EPSILON)
        };
        let step = Step::new(missing, slope, tails.lead);
        // The step is computed from the logarithm of the smaller tail.
        let way = if eps <= 0.5 {
            step.curved()
        } else {
            let slope = exp((tails.density - tails.upper).min(700.0));
            -Step::new((ln((1.0 - eps).into()) - tails.upper).mid.hi, slope, -tails.lead).curved()
        };
        let Some(moved) = odds.moved(way) else {
            return odds.at_the_end();
        };
        // The loop ends when no float is nearer, or when the distance is within the uncertainty of the proof, as with
        // the smallest shapes. A long last step is as safe as a short one, but the bound is less tight.
        let nearest = moved == odds || missing.abs() <= 4.0 * tails.lower.radius || steps_left == 0;
        if step.is_short() || (nearest && safe > -0.5) {
            return odds.safely_moved(safe);
        }
        odds = moved;
    }
    ZERO
}
