//! Exact fractions, for comparison with floats.

use num_rational::BigRational;
use num_traits::One;

/// The exact value of the float.
pub(crate) fn of(x: f64) -> BigRational {
    BigRational::from_float(x).unwrap_or_else(|| panic!("{x} is no number"))
}

/// `base^exponent`, exactly.
pub(crate) fn power(base: i64, exponent: i32) -> BigRational {
    let base = BigRational::from_integer(base.into());
    let magnitude = num_traits::pow(base, exponent.unsigned_abs() as usize);
    if exponent < 0 { BigRational::one() / magnitude } else { magnitude }
}
