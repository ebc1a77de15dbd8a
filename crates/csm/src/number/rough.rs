//! A float and its maximum error: the counterpart of a [ball](super::Ball) where a float has digits enough.

use std::ops::{Add, Mul, Neg, Sub};

use super::ball::ROUNDING;
use super::{Ball, Dd};

/// `2^-53`: the relative error of a rounding.
const HALF_UNIT: f64 = 0.5 * f64::EPSILON;

/// The true value is within `error` of `value`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rough {
    pub(crate) value: f64,
    pub(crate) error: f64,
}

impl From<Ball> for Rough {
    #[inline(always)]
    fn from(x: Ball) -> Self {
        Rough { value: x.mid.hi, error: (x.radius + x.mid.lo.abs()) * ROUNDING }
    }
}

impl From<Rough> for Ball {
    #[inline(always)]
    fn from(x: Rough) -> Self {
        Ball { mid: x.value.into(), radius: x.error }
    }
}

impl Neg for Rough {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        Rough { value: -self.value, error: self.error }
    }
}

impl Add for Rough {
    type Output = Self;
    #[inline(always)]
    fn add(self, y: Self) -> Self {
        let value = self.value + y.value;
        Rough { value, error: (self.error + y.error + value.abs() * HALF_UNIT) * ROUNDING }
    }
}

impl Sub for Rough {
    type Output = Self;
    #[inline(always)]
    fn sub(self, y: Self) -> Self {
        self + -y
    }
}

impl Mul for Rough {
    type Output = Self;
    #[inline(always)]
    fn mul(self, y: Self) -> Self {
        let value = self.value * y.value;
        let spread = self.value.abs() * y.error + (y.value.abs() + y.error) * self.error;
        Rough { value, error: (spread + value.abs() * HALF_UNIT + Dd::UNDERFLOW) * ROUNDING }
    }
}

impl Add<Rough> for Ball {
    type Output = Ball;
    #[inline(always)]
    fn add(self, y: Rough) -> Ball {
        let mid = self.mid + y.value;
        Ball { mid, radius: (self.radius + y.error + mid.hi.abs() * Dd::RELATIVE_ERROR) * ROUNDING }
    }
}

impl Sub<Rough> for Ball {
    type Output = Ball;
    #[inline(always)]
    fn sub(self, y: Rough) -> Ball {
        self + -y
    }
}

#[cfg(test)]
mod tests {
    use millstream_verify_random::cases;
    use num_rational::BigRational;
    use proptest::prelude::*;

    use super::super::exactly::rational::of;
    use super::*;

    fn covers(found: Rough, truth: &BigRational) -> bool {
        let off = of(found.value) - truth;
        off <= of(found.error) && -off <= of(found.error)
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn every_operation_propagates_its_arguments_errors(
            x in -2.0f64..2.0, y in -2.0f64..2.0, (off_x, off_y) in (-1.0f64..1.0, -1.0f64..1.0), size in 0i32..60
        ) {
            let error = 2f64.powi(-size);
            let (one, other) = (Rough { value: x, error: error * off_x.abs() }, Rough { value: y, error: error * off_y.abs() });
            let (truth_x, truth_y) = (of(x) + of(error * off_x), of(y) + of(error * off_y));
            prop_assert!(covers(one + other, &(&truth_x + &truth_y)));
            prop_assert!(covers(one - other, &(&truth_x - &truth_y)));
            prop_assert!(covers(one * other, &(&truth_x * &truth_y)));
            let ball = Ball::from(x).widen(one.error) + other;
            prop_assert!(of(ball.lower()) <= &truth_x + &truth_y && of(ball.upper()) >= truth_x + truth_y);
        }
    }
}
