//! Bounds on the quantiles of the Beta distribution.
//!
//! The lower bound is a number `x` with `I_x(a, b) <= eps` for certain, as near to the quantile as the proof allows.
//!
//! # How, and why it is on the right side
//! In `t = ln(x / (1-x))` the density of the Beta distribution, `e^(a t) (1 + e^t)^-(a+b)`, is log-concave
//! for all shapes, and so then is its distribution function (Prékopa). A tangent to a concave function lies
//! above it:
//!
//! ```text
//! ln I(t) <= ln I(t0) + (t - t0) f(t0) / I(t0)
//! ```
//!
//! So one proven evaluation at any `t0` proves a bound for all `t`, and where the right side equals `ln eps`
//! is the answer: Newton's step *is* the proof. How `t0` was found needs none; the nearer it is to the
//! quantile, the less the tangent gives away (the square of the distance, which the last step keeps below
//! `2^-24`). With `d = t - t0`, `e^d >= 1 + d` turns the step into odds on the safe side as well.
//!
//! The upper bound is the complement of the lower bound for the shapes exchanged.

use crate::Error;
use crate::number::exp::exp;
use crate::number::kernel::Rate;
use crate::number::ln::ln;
use crate::number::tails::{rough_lower_tail, tails};

/// Which end of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// The low end: little probability below.
    Low,
    /// The high end: little probability above.
    High,
}

/// A bound on a quantile of a Beta distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BetaBound {
    /// The bound: for [`Side::Low`] not above, for [`Side::High`] not below the quantile.
    pub bound: f64,
    /// One minus the bound, to full relative precision where the bound is close to 1; it errs on the same side: for
    /// [`Side::Low`] not below, for [`Side::High`] not above one minus the quantile.
    pub complement: f64,
}

/// The least shape above zero: `2^-30`.
const LEAST_SHAPE: f64 = 9.313_225_746_154_785e-10;

/// The greatest shape: `2^53`.
const GREATEST_SHAPE: f64 = 9_007_199_254_740_992.0;

/// A bound that a variable with a Beta(`a`, `b`) distribution is beyond with a probability of at most `eps`.
///
/// [`Side::Low`] gives the greatest provable `x` with `P(X < x) <= eps`, [`Side::High`] the least with `P(X >
/// x) <= eps`. The bound and its complement differ from the quantile and its complement by less than `1e-12`
/// of themselves, unless they are below the least normal float or a shape is below 1: then by about so much over
/// that shape.
///
/// The ends are what they should be: a shape of 0 is all probability at one end, so that both bounds are
/// there; an `eps` of 0 gives 0 or 1, one of 1 the opposite end.
///
/// `eps` is the float given; the result is the same, bit for bit, on every machine.
///
/// # Errors
/// A shape that is not 0 nor between `2^-30` and `2^53`, both shapes 0, or `eps` outside `[0, 1]`.
///
/// # Cost
/// 2 to 9 µs for `eps` up to 0.025 on a core at 2.6 GHz. Nearer the middle of a distribution with large shapes more: some
/// 23 µs at shapes of 10^6 and `eps` 0.1, half a millisecond at 0.5.
///
/// # Example
/// ```
/// use millstream_csm::{Side, beta_bound};
/// // 3972 successes and 28 failures: with which rate at the least?
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
    if shape != 0.0 && !(LEAST_SHAPE..=GREATEST_SHAPE).contains(&shape) {
        return Err(Error::OutOfRange { what, expected: "0 or between 2^-30 and 2^53", found: shape });
    }
    Ok(())
}

const ZERO: BetaBound = BetaBound { bound: 0.0, complement: 1.0 };
const ONE: BetaBound = BetaBound { bound: 1.0, complement: 0.0 };

/// The last step is at most this long; its square, and the proof's loss, is `2^-48`.
const SHORT: f64 = 5.960_464_477_539_063e-8;

/// More steps than a search ever takes before the proof; it would only cost time to begin from there.
const MOST_ROUGH_STEPS: u32 = 40;

/// More steps than the proof takes where there are floats near the quantile.
const MOST_STEPS: u32 = 200;

/// The greatest provable `x` with `I_x(a, b) <= eps`.
fn low(a: f64, b: f64, eps: f64) -> BetaBound {
    if a == 0.0 || (eps == 0.0 && b != 0.0) {
        return ZERO;
    }
    if b == 0.0 || eps == 1.0 {
        return ONE;
    }
    let target = ln(eps.into());
    let mut odds = search(a, b, eps);
    for steps_left in (0..MOST_STEPS).rev() {
        let tails = tails(a, b, &odds.rate());
        let slope = exp((tails.density - tails.lower).min(700.0));
        let missing = (target - tails.lower).lower();
        let step = if missing > 0.0 {
            missing / slope.upper() * (1.0 - 4.0 * f64::EPSILON)
        } else {
            missing / slope.lower() * (1.0 + 4.0 * f64::EPSILON)
        };
        // A long last step is as safe as a short one, only less near. It occurs where no float is near.
        if step.abs() <= SHORT || (steps_left == 0 && step > -0.5) {
            return odds.safely_moved(step);
        }
        let Some(moved) = odds.moved(step) else {
            return odds.at_the_end();
        };
        odds = moved;
    }
    ZERO
}

/// `x / (1-x)`, by the smaller of the two, so that neither loses precision.
#[derive(Debug, Clone, Copy)]
enum Odds {
    /// `x`, at most 1/2.
    Of(f64),
    /// `1 - x`, less than 1/2.
    Against(f64),
}

impl Odds {
    fn new(odds: f64) -> Self {
        if odds <= 1.0 {
            Odds::Of((odds / (1.0 + odds)).max(LEAST))
        } else {
            Odds::Against((1.0 / (1.0 + odds)).max(LEAST))
        }
    }

    /// The odds of the other outcome.
    fn swap(self) -> Self {
        match self {
            Odds::Of(x) => Odds::Against(x),
            Odds::Against(y) => Odds::Of(y),
        }
    }

    fn rate(self) -> Rate {
        match self {
            Odds::Of(x) => Rate::new(x),
            Odds::Against(y) => Rate::complement_of(y),
        }
    }

    /// The odds times `e^step`, about; `None` if these are at the end of the floats, and the step leads beyond it.
    fn moved(self, step: f64) -> Option<Self> {
        match self {
            Odds::Of(x) if x <= LEAST && step < 0.0 => None,
            Odds::Of(x) => Some(Odds::new(x / (1.0 - x) * rough_exp(step))),
            Odds::Against(y) => Odds::Of(y).moved(-step).map(Odds::swap),
        }
    }

    /// The bound when the quantile is nearer to the end than any float.
    fn at_the_end(self) -> BetaBound {
        match self {
            Odds::Of(_) => ZERO,
            Odds::Against(y) => BetaBound { bound: 1.0f64.next_down(), complement: y },
        }
    }

    /// The odds times at most `e^step`, for a short step.
    fn safely_moved(self, step: f64) -> BetaBound {
        // x e^d / (1 + x (e^d - 1)) grows with e^d >= 1 + d. Four roundings are less than the factor at the end.
        match self {
            Odds::Of(x) => {
                let bound = (x * (1.0 + step) / (1.0 + x * step) * (1.0 - 4.0 * f64::EPSILON)).next_down().max(0.0);
                BetaBound { bound, complement: (1.0 - bound).next_up().min(1.0) }
            }
            Odds::Against(y) => {
                let complement = (y / (1.0 + (1.0 - y) * step) * (1.0 + 4.0 * f64::EPSILON)).next_up();
                BetaBound { bound: (1.0 - complement).next_down(), complement }
            }
        }
    }
}

/// The least positive float.
const LEAST: f64 = 5e-324;

/// Odds near those of the quantile. Nothing depends on their being right but time.
fn search(a: f64, b: f64, eps: f64) -> Odds {
    // The smaller of the two tails is the one whose logarithm tells the point.
    if eps > 0.5 {
        return search(b, a, 1.0 - eps).swap();
    }
    let rough_ln = |x: f64| ln(x.into()).mid.hi;
    let target = rough_ln(eps);
    // A normal distribution's quantile, and the variance of the logarithm of the odds.
    let deviations = (-2.0 * target - rough_ln(1.0 - 2.0 * target)).max(0.0).sqrt();
    let mut odds = Odds::new(a / b * rough_exp(-deviations * (1.0 / a + 1.0 / b).sqrt()));
    for _ in 0..MOST_ROUGH_STEPS {
        let (value, slope) = rough_lower_tail(a, b, &odds.rate());
        let step = (target - value) / slope;
        let Some(moved) = odds.moved(step) else { break };
        odds = moved;
        if step.abs() < 1e-3 {
            break;
        }
    }
    odds
}

/// About `e^x`, within the floats.
fn rough_exp(x: f64) -> f64 {
    let part = x.clamp(-600.0, 600.0) / 1024.0;
    let mut power = 1.0 + part * (1.0 + part * (0.5 + part / 6.0));
    for _ in 0..10 {
        power *= power;
    }
    power
}
