//! A ball: a double-double, and a radius that certainly covers the true value.
//!
//! Every operation widens the radius by its maximum error: the effect of its arguments' radii, its own rounding
//! ([`Dd::RELATIVE_ERROR`]) and underflow. The radius is a plain float, and the computation of the radius also rounds.
//! The factor [`ROUNDING`] covers this: the formulas below take at most ten operations on non-negative values, each
//! with a relative error of at most `2^-53`. Their loss by underflow is far below [`Dd::UNDERFLOW`].

use std::ops::{Add, Mul, Neg, Sub};

use super::Dd;

/// `1 + 2^-48`: covers the rounding of ten operations, and the use of `|hi|` instead of `|hi + lo|`.
const ROUNDING: f64 = 1.0 + 3.552_713_678_800_501e-15;

/// All numbers within `radius` of `mid`; the true value is one of them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ball {
    pub(crate) mid: Dd,
    pub(crate) radius: f64,
}

impl Ball {
    pub(crate) const ZERO: Ball = Ball::new(0.0, 0.0, 0.0);
    /// `ln 2`.
    pub(crate) const LN_2: Ball = Ball::new(LN2_HI, LN2_LO, 2e-33);

    /// The ball with this radius around `hi + lo`.
    pub(crate) const fn new(hi: f64, lo: f64, radius: f64) -> Self {
        Ball { mid: Dd { hi, lo }, radius }
    }

    /// The smallest ball that contains all numbers from `lower` to `upper`.
    #[inline]
    pub(crate) fn between(lower: f64, upper: f64) -> Self {
        let mid = lower + (upper - lower) * 0.5;
        Ball { mid: mid.into(), radius: (mid - lower).max(upper - mid) * ROUNDING }
    }

    /// The ball, or the number `most` alone if the ball's centre is above `most`.
    #[inline]
    pub(crate) fn min(self, most: f64) -> Self {
        if self.mid.hi > most { most.into() } else { self }
    }

    /// The ball with its radius increased by `error`.
    #[inline]
    pub(crate) fn widen(self, error: f64) -> Self {
        Ball { mid: self.mid, radius: (self.radius + error) * ROUNDING }
    }

    /// The ball times a power of two.
    #[inline]
    pub(crate) fn scale(self, power_of_two: f64) -> Self {
        Ball { mid: self.mid.scale(power_of_two), radius: (self.radius * power_of_two + Dd::UNDERFLOW) * ROUNDING }
    }

    /// A float that is not above any number of the ball.
    #[inline]
    pub(crate) fn lower(self) -> f64 {
        // Unlike `-x`, this form never results in a negative zero.
        0.0 - (-self).upper()
    }

    /// A float that is not below any number of the ball.
    #[inline]
    pub(crate) fn upper(self) -> f64 {
        // Both additions round by at most half a unit; a step up after each covers that.
        let rest = self.mid.lo + self.radius;
        let rest = if self.radius == 0.0 { rest } else { rest.next_up() };
        let (sum, error) = super::exact::two_sum(self.mid.hi, rest);
        if error > 0.0 { sum.next_up() } else { sum + 0.0 }
    }
}

const LN2_HI: f64 = std::f64::consts::LN_2;
const LN2_LO: f64 = 2.3190468138462996e-17;

impl From<f64> for Ball {
    #[inline(always)]
    fn from(x: f64) -> Self {
        Ball { mid: x.into(), radius: 0.0 }
    }
}

impl From<Dd> for Ball {
    #[inline(always)]
    fn from(mid: Dd) -> Self {
        Ball { mid, radius: 0.0 }
    }
}

impl Neg for Ball {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Ball { mid: -self.mid, radius: self.radius }
    }
}

impl<T: Into<Ball>> Add<T> for Ball {
    type Output = Self;
    #[inline(always)]
    fn add(self, y: T) -> Self {
        let y = y.into();
        let mid = self.mid + y.mid;
        Ball { mid, radius: (self.radius + y.radius + mid.hi.abs() * Dd::RELATIVE_ERROR) * ROUNDING }
    }
}

impl<T: Into<Ball>> Sub<T> for Ball {
    type Output = Self;
    #[inline(always)]
    fn sub(self, y: T) -> Self {
        self + -y.into()
    }
}

impl<T: Into<Ball>> Mul<T> for Ball {
    type Output = Self;
    #[inline(always)]
    fn mul(self, y: T) -> Self {
        let y = y.into();
        let mid = self.mid * y.mid;
        let spread = self.mid.hi.abs() * y.radius + (y.mid.hi.abs() + y.radius) * self.radius;
        Ball { mid, radius: (spread + mid.hi.abs() * Dd::RELATIVE_ERROR + Dd::UNDERFLOW) * ROUNDING }
    }
}

#[cfg(test)]
mod tests {
    use millstream_verify_random::cases;
    use num_rational::BigRational;
    use proptest::prelude::*;

    use super::*;
    use crate::exactly::rational::of;

    fn covers(found: Ball, truth: &BigRational) -> bool {
        let off = of(found.mid.hi) + of(found.mid.lo) - truth;
        off <= of(found.radius)
            && -off <= of(found.radius)
            && of(found.lower()) <= *truth
            && *truth <= of(found.upper())
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn every_operation_propagates_its_arguments_errors(
            x in -2.0f64..2.0, y in -2.0f64..2.0, (off_x, off_y) in (-1.0f64..1.0, -1.0f64..1.0), size in 0i32..60
        ) {
            let error = 2f64.powi(-size);
            let (one, other) = (Ball::new(x, 0.0, error * off_x.abs()), Ball::new(y, 0.0, error * off_y.abs()));
            let (truth_x, truth_y) = (of(x) + of(error * off_x), of(y) + of(error * off_y));
            prop_assert!(covers(one + other, &(&truth_x + &truth_y)));
            prop_assert!(covers(one - other, &(&truth_x - &truth_y)));
            prop_assert!(covers(one * other, &(&truth_x * &truth_y)));
            prop_assert!(covers(one * y, &(&truth_x * of(y))));
            prop_assert!(covers(Ball::from(x).widen(one.radius) + other, &(truth_x + truth_y)));
        }
    }
}
