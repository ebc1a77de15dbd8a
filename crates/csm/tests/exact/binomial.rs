//! Integers for binomial probabilities.

use num_bigint::BigInt;
use num_traits::One;

use super::rational::of;

/// The float as an integer divided by a power of two, given by its exponent.
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
