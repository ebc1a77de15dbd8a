//! The logarithm of a fraction, enclosed.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Zero};

/// The number of bits of a logarithm after the binary point.
const BITS: u32 = 240;

/// Encloses `ln(numerator / denominator)` of positive integers in an interval of at most `2^-220`.
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

/// `2 atanh(p / q) = ln((q + p) / (q - p))` for `|p / q| <= 1/3`, in units of `2^-BITS`, and its maximum error.
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
    // The error of each term is a few units, and the omitted terms are below one.
    (sum, BigInt::from(4 * k + 8))
}
