//! What Stirling's formula leaves out of the logarithm of the Gamma function.
//!
//! ```text
//! ln Gamma(z) = (z - 1/2) ln z - z + ln(2 pi)/2 + d(z),   d(z) = 1/(12 z) - 1/(360 z^3) + 1/(1260 z^5) - ...
//! ```
//!
//! For `z > 0` that series is enveloping: the truth lies between any two successive partial sums (Whittaker and
//! Watson 12.33), which is Robbins' inequality with more terms. From 16 on, seven terms leave out less than `2.6e-20`.
//! Below, the recurrence `Gamma(z + 1) = z Gamma(z)` moves `z` up, and whole numbers are in a table.

use std::ops::{Add, Sub};

use super::ln::ln;
use super::{Ball, Dd};

/// From here on the series is used as it is.
const LARGE: f64 = 16.0;

/// `d(1)` to `d(15)`, each rounded to the nearest float.
#[rustfmt::skip]
const WHOLE: [f64; 15] = [
    0.08106146679532726,
    0.0413406959554093,
    0.02767792568499834,
    0.020790672103765093,
    0.016644691189821193,
    0.013876128823070748,
    0.01189670994589177,
    0.010411265261972096,
    0.009255462182712733,
    0.00833056343336287,
    0.007573675487951841,
    0.00694284010720953,
    0.006408994188004207,
    0.0059513701127588475,
    0.005554733551962801,
];

/// A correction and how much it may be off.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Correction {
    value: f64,
    error: f64,
}

/// `d(z)` for `z > 0`. `z` is above `2^-40`.
#[inline]
pub(crate) fn correction(z: Dd) -> Correction {
    if z.hi >= LARGE {
        return large(z.hi);
    }
    let whole = z.hi as usize;
    if whole as f64 == z.hi && z.lo == 0.0 {
        // Half a unit in the last place of numbers below 1/8.
        return Correction { value: WHOLE[whole - 1], error: 6.94e-18 };
    }
    small(z)
}

/// The series, in floats. Taking `z.hi` for `z` and rounding move the first term by less than `6u` of itself,
/// `u = 2^-53`, and the others, which are less than a 7000th of it, by less than `12u`.
#[inline]
fn large(z: f64) -> Correction {
    let reciprocal = 1.0 / z;
    let square = reciprocal * reciprocal;
    let fourth = square * square;
    let eighth = fourth * fourth;
    let low = (-1.0 / 360.0 + square * (1.0 / 1260.0)) + fourth * (-1.0 / 1680.0 + square * (1.0 / 1188.0));
    let tail = low + eighth * (-691.0 / 360_360.0 + square * (1.0 / 156.0));
    let value = reciprocal * (1.0 / 12.0 + square * tail);
    // 2^-50, and the first omitted term: 3617/122400 / z^15.
    Correction { value, error: value * 8.882e-16 + 0.0296 * eighth * eighth * z }
}

/// `d(z) = d(z + 16) + (z + 31/2) ln(z + 16) - (z - 1/2) ln z - 16 - ln(z (z + 1) ... (z + 15))`.
fn small(z: Dd) -> Correction {
    let z = Ball::from(z);
    let up = z + LARGE;
    let mut product = z;
    for k in 1..16 {
        product = product * (z + f64::from(k));
    }
    let moved = (up + -0.5) * ln(up) - (z + -0.5) * ln(z) - ln(product);
    let all = moved + (-LARGE) + Ball::from(large(up.mid.hi));
    Correction { value: all.mid.hi, error: all.radius + all.mid.hi * f64::EPSILON }
}

impl Sub for Correction {
    type Output = Self;
    #[inline]
    fn sub(self, y: Self) -> Self {
        let value = self.value - y.value;
        Correction { value, error: self.error + y.error + value.abs() * f64::EPSILON }
    }
}

impl Add for Correction {
    type Output = Self;
    #[inline]
    fn add(self, y: Self) -> Self {
        let value = self.value + y.value;
        Correction { value, error: self.error + y.error + value * f64::EPSILON }
    }
}

impl From<Correction> for Ball {
    #[inline]
    fn from(correction: Correction) -> Self {
        Ball::from(correction.value).widen(correction.error)
    }
}
