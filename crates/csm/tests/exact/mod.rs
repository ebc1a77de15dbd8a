//! Exact numbers to compare floats with.
#![allow(dead_code, reason = "each test that shares this file needs a part of it")]

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed, Zero};

/// The float, exactly.
pub(crate) fn of(x: f64) -> BigRational {
    BigRational::from_float(x).unwrap_or_else(|| panic!("{x} is no number"))
}

/// A decimal such as `-1.5e-3`, exactly.
pub(crate) fn decimal(text: &str) -> BigRational {
    let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let number: BigInt = format!("{whole}{fraction}").parse().expect("a decimal");
    let exponent: i32 = exponent.parse().expect("an exponent");
    BigRational::from_integer(number) * power(10, exponent - i32::try_from(fraction.len()).expect("few digits"))
}

/// `base^exponent`, exactly.
pub(crate) fn power(base: i64, exponent: i32) -> BigRational {
    let base = BigRational::from_integer(base.into());
    let magnitude = num_traits::pow(base, exponent.unsigned_abs() as usize);
    if exponent < 0 { BigRational::one() / magnitude } else { magnitude }
}

/// `|x|`, or 1 if that is more.
pub(crate) fn at_least_one(x: &BigRational) -> BigRational {
    x.abs().max(BigRational::one())
}

/// The float as an integer and a power of two that it is divided by.
pub(crate) fn dyadic(x: f64) -> (BigInt, u32) {
    let x = of(x);
    let bits = u32::try_from(x.denom().bits() - 1).expect("a float");
    (x.numer().clone(), bits)
}

/// The binomial coefficients `C(n, 0)` to `C(n, n)`.
pub(crate) fn pascal(n: u32) -> Vec<BigInt> {
    let mut row = vec![BigInt::one()];
    for k in 0..n {
        row.push(&row[k as usize] * (n - k) / (k + 1));
    }
    row
}

/// Bits after the point of a logarithm.
const BITS: u32 = 240;

/// `ln(numerator / denominator)` of positive integers, enclosed: the ends are `2^-220` apart or less.
pub(crate) fn ln(numerator: &BigInt, denominator: &BigInt) -> (BigRational, BigRational) {
    // numerator / denominator = 2^shift (p / q) with p / q between 1/2 and 2.
    let shift = i64::try_from(numerator.bits()).expect("bits") - i64::try_from(denominator.bits()).expect("bits");
    let (p, q) = if shift >= 0 {
        (numerator.clone(), denominator << shift.unsigned_abs())
    } else {
        (numerator << shift.unsigned_abs(), denominator.clone())
    };
    let (part, part_error) = twice_atanh(&(&p - &q), &(&p + &q));
    let (two, two_error) = twice_atanh(&BigInt::one(), &BigInt::from(3));
    let value = two * shift + part;
    let error = two_error * shift.unsigned_abs() + part_error;
    let unit = BigInt::one() << BITS;
    (BigRational::new(&value - &error, unit.clone()), BigRational::new(value + error, unit))
}

/// `2 atanh(p / q) = ln((q + p) / (q - p))` for `|p / q| <= 1/3`, in units of `2^-BITS`, and how many it may be off.
fn twice_atanh(p: &BigInt, q: &BigInt) -> (BigInt, BigInt) {
    let mut term: BigInt = (p << (BITS + 1)) / q;
    let square: BigInt = ((p * p) << BITS) / (q * q);
    let mut sum = term.clone();
    let mut k = 1u32;
    while !term.is_zero() {
        term = (&term * &square) >> BITS;
        k += 2;
        sum += &term / k;
        if term == BigInt::from(-1) {
            break;
        }
    }
    // Each of the terms is off by a few units, and those left out are below one.
    (sum, BigInt::from(4 * k + 8))
}
