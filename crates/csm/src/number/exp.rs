//! The exponential.
//!
//! `x = k ln 2 + r` with an integer `k` and `|r| < 0.347`. Taylor's polynomial computes `e^r`, and the factor `2^k`
//! changes only the exponent. Plain floats suffice, because an error of a few units in the last place is small enough
//! for the callers.
//!
//! **Error**, with `u = 2^-53`. The polynomial ends with the term `r^15/15!`; the omitted terms are less than `u/1000`.
//! In Horner's form, `1 + r/k (1 + ...)`, each step multiplies the error of the previous step by less than `|r|/k` and
//! adds less than `4u`. So the relative error of `e^r` is less than `6u`. In the reduction, `k LN_2_HIGH` is exact, and
//! so is its difference from `x`, by Sterbenz's lemma. The remaining part of `r` is rounded twice, with an error of
//! less than `u |r| + u 2^-31`.

use super::Ball;
use super::exact::power_of_two;
use super::ln::{LN_2_HIGH, LN_2_LOW};

/// `2^-50 = 8u`.
const ROUNDING: f64 = 8.881_784_197_001_252e-16;

/// The smallest exponent that is computed. Below it, the exponential is less than `e^-700 < 1e-304`.
const MIN_EXPONENT: f64 = -700.0;

/// `e^x`, for `x` up to 700 and a radius of at most 1. Below -700 the result is the ball of all numbers from 0 to
/// `1e-304`.
#[inline(always)]
pub(crate) fn exp(x: Ball) -> Ball {
    debug_assert!(x.upper() <= 700.0);
    if x.upper() < MIN_EXPONENT {
        return Ball::between(0.0, 1e-304);
    }
    // Adding 1.5 * 2^52 rounds to an integer.
    const MAGIC: f64 = 6_755_399_441_055_744.0;
    let whole = (x.mid.hi * std::f64::consts::LOG2_E + MAGIC) - MAGIC;
    let r = (x.mid.hi - whole * LN_2_HIGH) + (x.mid.lo - whole * LN_2_LOW);
    let significand = (1..=15).rev().fold(1.0, |sum, k| 1.0 + r / f64::from(k) * sum);
    // `spread` is at least e^radius - 1, because the radius is at most 1.
    debug_assert!(x.radius <= 1.0);
    let spread = x.radius * (1.0 + x.radius);
    Ball::from(significand).widen(significand * (ROUNDING + spread * 1.001)).scale(power_of_two(whole as i32))
}

#[cfg(test)]
mod tests {
    use super::super::ln::ln;
    use super::*;

    #[test]
    fn exponential_and_logarithm_undo_each_other() {
        for step in -550..550 {
            let x = Ball::from(f64::from(step) * 1.07);
            let back = ln(exp(x)) - x;
            assert!(back.lower() <= 0.0 && back.upper() >= 0.0, "{step}: {back:?}");
            assert!(back.radius < 1.1 * ROUNDING, "{step}: {back:?}");
        }
    }

    #[test]
    fn a_radius_is_propagated() {
        for (x, radius) in [(-3.0, 1e-3), (0.1, 0.2), (0.3, 1e-9), (5.0, 0.9)] {
            let ball = Ball::from(x).widen(radius);
            for end in [x - radius, x + radius] {
                let inside = exp(end.into());
                assert!(exp(ball).lower() <= inside.lower() && inside.upper() <= exp(ball).upper(), "{x}, {radius}");
            }
        }
    }

    #[test]
    fn below_the_least_exponent_the_exponential_is_no_more_than_tiny() {
        let tiny = exp(Ball::from(-701.0));
        assert!(tiny.lower() <= 0.0 && tiny.upper() >= 1.1e-305 && tiny.upper() < 1e-303, "{tiny:?}");
    }
}
