//! A double-double: a number of 106 bits as an unevaluated sum of two floats.
//!
//! The algorithms are those of Joldes, Muller and Popescu, "Tight and rigorous error bounds for basic building blocks
//! of double-word arithmetic" (ACM TOMS 44, 2017). Their bounds have since been verified by machine (Muller and Rideau
//! 2022). With `u = 2^-53`, the relative error of a sum (algorithm 6, AccurateDWPlusDW) is at most `3u^2 / (1 - 4u)`,
//! and that of a product (algorithm 10, DWTimesDW1) at most `7u^2`. [`Dd::RELATIVE_ERROR`] covers both. Its margin also
//! covers the difference between an error relative to the result and an error relative to the exact value. The bounds
//! are valid in the absence of underflow and overflow; underflow adds at most [`Dd::UNDERFLOW`] to a product.

use std::ops::{Add, Mul, Neg, Sub};

use super::exact::{fast_two_sum, two_prod, two_sum};

/// `hi + lo`, where `lo` is at most half a unit in the last place of `hi`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Dd {
    pub(crate) hi: f64,
    pub(crate) lo: f64,
}

impl Dd {
    pub(crate) const ZERO: Dd = Dd { hi: 0.0, lo: 0.0 };

    /// More than the relative error of any operation: `2^-102 = 16 u^2`.
    pub(crate) const RELATIVE_ERROR: f64 = 1.972_152_263_052_529_5e-31;

    /// More than the absolute error that underflow adds to a product: `2^-1060`.
    pub(crate) const UNDERFLOW: f64 = 8.095_5e-320;

    /// `a + b`, exactly.
    #[inline(always)]
    pub(crate) const fn sum(a: f64, b: f64) -> Self {
        let (hi, lo) = two_sum(a, b);
        Dd { hi, lo }
    }

    /// The number times a power of two. Exact, unless it underflows.
    #[inline(always)]
    pub(crate) const fn scale(self, power_of_two: f64) -> Self {
        Dd { hi: self.hi * power_of_two, lo: self.lo * power_of_two }
    }

    /// The sum as a `const fn`, for constants; other code uses `+`.
    #[inline(always)]
    pub(crate) const fn plus(self, y: Self) -> Self {
        let (high, high_error) = two_sum(self.hi, y.hi);
        let (low, low_error) = two_sum(self.lo, y.lo);
        let (high, rest) = fast_two_sum(high, high_error + low);
        let (hi, lo) = fast_two_sum(high, low_error + rest);
        Dd { hi, lo }
    }

    /// The product as a `const fn`, for constants; other code uses `*`.
    #[inline(always)]
    pub(crate) const fn times(self, y: Self) -> Self {
        let (high, error) = two_prod(self.hi, y.hi);
        let cross = self.hi * y.lo + self.lo * y.hi;
        let (hi, lo) = fast_two_sum(high, error + cross);
        Dd { hi, lo }
    }
}

impl From<f64> for Dd {
    #[inline(always)]
    fn from(x: f64) -> Self {
        Dd { hi: x, lo: 0.0 }
    }
}

impl Neg for Dd {
    type Output = Self;
    #[inline(always)]
    fn neg(self) -> Self {
        self.scale(-1.0)
    }
}

impl Add for Dd {
    type Output = Self;
    #[inline(always)]
    fn add(self, y: Self) -> Self {
        self.plus(y)
    }
}

impl Sub for Dd {
    type Output = Self;
    #[inline(always)]
    fn sub(self, y: Self) -> Self {
        self + -y
    }
}

impl Mul for Dd {
    type Output = Self;
    #[inline(always)]
    fn mul(self, y: Self) -> Self {
        self.times(y)
    }
}
