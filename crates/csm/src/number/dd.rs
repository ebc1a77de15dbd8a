//! A number as an unevaluated sum of two floats: 106 bits.
//!
//! The algorithms are those of Joldes, Muller and Popescu, "Tight and rigorous error bounds for basic building
//! blocks of double-word arithmetic" (ACM TOMS 44, 2017), whose bounds were since checked by machine (Muller and
//! Rideau 2022). With `u = 2^-53`, the relative errors are at most:
//!
//! | operation | their algorithm | bound |
//! | --- | --- | --- |
//! | `Dd + f64` | 4, DWPlusFP | `2u^2` |
//! | `Dd + Dd` | 6, AccurateDWPlusDW | `3u^2 / (1 - 4u)` |
//! | `Dd * f64` | 7, DWTimesFP1 | `2u^2` |
//! | `Dd * Dd` | 10, DWTimesDW1 | `7u^2` |
//! | `Dd / f64` | 15, DWDivFP3 | `3u^2` |
//! | `Dd / Dd` | 17, DWDivDW2 | `15u^2 + 56u^3` |
//!
//! so that one number, [`Dd::RELATIVE_ERROR`], covers them all, with a margin for using the relative error of the
//! result as that of the exact value. They hold without under- and overflow; underflow adds at most [`Dd::UNDERFLOW`]
//! to a product. A quotient's parts must stay above `2^-900`.

use std::ops::{Add, Div, Mul, Neg, Sub};

use super::exact::{fast_two_sum, two_prod, two_sum};

/// `hi + lo`, where `lo` is at most half a unit in the last place of `hi`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Dd {
    pub(crate) hi: f64,
    pub(crate) lo: f64,
}

impl Dd {
    /// More than the relative error of any operation: `2^-102 = 16 u^2`.
    pub(crate) const RELATIVE_ERROR: f64 = 1.972_152_263_052_529_5e-31;

    /// More than the absolute error that underflow adds to a product: `2^-1060`.
    pub(crate) const UNDERFLOW: f64 = 8.095_5e-320;

    /// `a + b`, exactly.
    #[inline(always)]
    pub(crate) fn sum(a: f64, b: f64) -> Self {
        let (hi, lo) = two_sum(a, b);
        Dd { hi, lo }
    }

    /// The number times a power of two, exactly unless it underflows.
    #[inline(always)]
    pub(crate) fn scale(self, power_of_two: f64) -> Self {
        Dd { hi: self.hi * power_of_two, lo: self.lo * power_of_two }
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
        Dd { hi: -self.hi, lo: -self.lo }
    }
}

impl Add<f64> for Dd {
    type Output = Self;
    #[inline(always)]
    fn add(self, y: f64) -> Self {
        let (sum, error) = two_sum(self.hi, y);
        let (hi, lo) = fast_two_sum(sum, self.lo + error);
        Dd { hi, lo }
    }
}

impl Add for Dd {
    type Output = Self;
    #[inline(always)]
    fn add(self, y: Self) -> Self {
        let (high, high_error) = two_sum(self.hi, y.hi);
        let (low, low_error) = two_sum(self.lo, y.lo);
        let (high, rest) = fast_two_sum(high, high_error + low);
        let (hi, lo) = fast_two_sum(high, low_error + rest);
        Dd { hi, lo }
    }
}

impl Sub for Dd {
    type Output = Self;
    #[inline(always)]
    fn sub(self, y: Self) -> Self {
        self.add(-y)
    }
}

impl Mul<f64> for Dd {
    type Output = Self;
    #[inline(always)]
    fn mul(self, y: f64) -> Self {
        let (high, error) = two_prod(self.hi, y);
        let (high, rest) = fast_two_sum(high, self.lo * y);
        let (hi, lo) = fast_two_sum(high, rest + error);
        Dd { hi, lo }
    }
}

impl Mul for Dd {
    type Output = Self;
    #[inline(always)]
    fn mul(self, y: Self) -> Self {
        let (high, error) = two_prod(self.hi, y.hi);
        let cross = self.hi * y.lo + self.lo * y.hi;
        let (hi, lo) = fast_two_sum(high, error + cross);
        Dd { hi, lo }
    }
}

impl Div<f64> for Dd {
    type Output = Self;
    #[inline(always)]
    fn div(self, y: f64) -> Self {
        let quotient = self.hi / y;
        let (product, error) = two_prod(quotient, y);
        let rest = (self.hi - product) - error + self.lo;
        let (hi, lo) = fast_two_sum(quotient, rest / y);
        Dd { hi, lo }
    }
}

impl Div for Dd {
    type Output = Self;
    #[inline(always)]
    fn div(self, y: Self) -> Self {
        let quotient = self.hi / y.hi;
        let product = y * quotient;
        let rest = (self.hi - product.hi) + (self.lo - product.lo);
        let (hi, lo) = fast_two_sum(quotient, rest / y.hi);
        Dd { hi, lo }
    }
}
