//! The natural logarithm.
//!
//! A number is `2^e m` with `m` between about `sqrt(1/2)` and `sqrt(2)`. A table has a number `r` near `1/m` and its
//! logarithm. So `z = r m - 1` is small, `|z| < 1/361`, and
//!
//! ```text
//! ln(2^e m) = e ln 2 - ln r + ln(1 + z),   ln(1 + z) = z - z^2/2 + z^3/3 - z^4/4 + ... + z^9/9 - z^10/10 + ...
//! ```
//!
//! (in the manner of P. T. P. Tang's table-driven logarithm). The first two terms of the series are computed in
//! double-double, the others in plain floats. The compiler computes the table.
//!
//! **Error**, with `u = 2^-53`. `z` is exact if `r = 1`. Otherwise its error is at most `2^-104`: `r m_hi` is exact as
//! two floats, subtracting one from the first is exact, and the two smaller parts are below `2^-52`. The error of the
//! terms from the third to the tenth, in floats, is at most `6 u |z|^3 / 3 < 2^-68.9 |z|`. The truncation is less than
//! `|z|^11 / 10 < 2^-87 |z|`, and the error of the double-double parts is less than `2^-98 |z|`. The sum of these
//! errors is less than [`SERIES_ERROR`] times `|z|`. It is a **relative** error, because near one nothing else is added
//! to the series. The error of the table, of `e ln 2` and of their sums is less than `2^-93.6 |e| + 2^-98 |ln r|`. If
//! `r` is not one, `|ln r| > 2^-8.1`, so [`TABLE_ERROR`] covers the error of `z` as well.

use super::exact::{fast_two_sum, power_of_two, split_exponent, two_prod, two_sum};
use super::{Ball, Dd};

/// `2^-68`.
const SERIES_ERROR: f64 = 3.388_131_789_017_201_4e-21;

/// `2^-93`.
const TABLE_ERROR: f64 = 1.009_741_958_682_895_2e-28;

/// `362.5 / 256`. Larger significands are halved.
const MAX_SIGNIFICAND: f64 = 1.416_015_625;

/// `ln 2` to 41 bits, so that its product with an exponent is exact.
pub(super) const LN_2_HIGH: f64 = 0.693147180559663;

/// `ln 2 - LN_2_HIGH`, to a further 53 bits.
pub(super) const LN_2_LOW: f64 = 2.8235290563031577e-13;

/// The first row of the table belongs to the numbers nearest to `FIRST / 256`.
const FIRST: usize = 181;

/// The number of rows.
const ROWS: usize = 182;

/// For each `i` from [`FIRST`] on: `r`, the float nearest to `256 / i`, and `-ln r`.
static TABLE: [(f64, Dd); ROWS] = {
    let mut table = [(1.0, Dd::ZERO); ROWS];
    let mut row = 0;
    while row < ROWS {
        table[row] = reciprocal((FIRST + row) as f64);
        row += 1;
    }
    table
};

/// The float `r` nearest to `256 / i`, and `-ln r = ln(i / 256) - ln(r i / 256)`.
///
/// With `t = (i - 256) / (i + 256)`, `ln(i / 256) = 2 (t + t^3/3 + t^5/5 + ...)`. Because `t^2 < 2^-5`, the terms
/// beyond `t^45` are below `2^-119` of the sum. The error of the double-double arithmetic is less than `2^-98` of the
/// sum. `r i / 256` differs from 1 by a rounding error only, so its logarithm needs two terms.
const fn reciprocal(i: f64) -> (f64, Dd) {
    let r = 256.0 / i;
    let (product, low) = two_prod(r, i);
    let off = ((product - 256.0) + low) / 256.0;
    let t = quotient(i - 256.0, i + 256.0);
    let (square, mut sum, mut k) = (t.times(t), Dd::ZERO, 47);
    while k > 1 {
        k -= 2;
        sum = sum.times(square).plus(quotient(1.0, k as f64));
    }
    (r, sum.times(t).scale(2.0).plus(Dd::sum(0.5 * off * off - off, 0.0)))
}

/// `p / q` of two whole numbers.
const fn quotient(p: f64, q: f64) -> Dd {
    let quotient = p / q;
    let (product, error) = two_prod(quotient, q);
    Dd::sum(quotient, ((p - product) - error) / q)
}

/// `ln x`, for a ball of positive numbers whose radius is at most half its centre.
#[inline]
pub(crate) fn ln(x: Ball) -> Ball {
    let reduced = reduce(x.mid);
    let whole = f64::from(reduced.exponent);
    let (hi, lo) = fast_two_sum(LN_2_HIGH * whole, LN_2_LOW * whole);
    let mid = (Dd { hi, lo } + reduced.table) + series(reduced.z);
    let error = reduced.z.hi.abs() * SERIES_ERROR + (whole.abs() + reduced.table.hi.abs()) * TABLE_ERROR;
    let ln = Ball { mid, radius: error + Dd::UNDERFLOW };
    if x.radius == 0.0 {
        return ln;
    }
    // The slope of the logarithm is 1/x, which is steepest at the lower end of the ball.
    debug_assert!(x.radius <= 0.5 * x.mid.hi, "the logarithm of a ball that reaches zero: {x:?}");
    ln.widen(x.radius / (x.mid.hi - x.radius) * 1.001)
}

/// `ln(1 + x)` for `x > -1`, with a small relative error near zero as well.
pub(crate) fn ln_1p(x: Ball) -> Ball {
    if x.mid.hi.abs() > 1.0 / 512.0 {
        return ln(x + 1.0);
    }
    let rounding = x.mid.hi.abs() * SERIES_ERROR + Dd::UNDERFLOW;
    // The slope 1/(1 + x) is steepest at the lower end of the ball, where 1 + x is at least 0.998 minus the radius.
    debug_assert!(x.radius < 0.25);
    Ball::from(series(x.mid)).widen(rounding + x.radius / (0.998 - x.radius))
}

/// `2^exponent / r (1 + z)`, with `-ln r`.
struct Reduced {
    exponent: i32,
    table: Dd,
    z: Dd,
}

#[inline(always)]
fn reduce(x: Dd) -> Reduced {
    let (m, exponent) = split_exponent(x.hi);
    let (m, exponent) = if m > MAX_SIGNIFICAND { (0.5 * m, exponent + 1) } else { (m, exponent) };
    // Adding 1.5 * 2^52 rounds to an integer, which then occupies the lowest bits.
    let index = (m * 256.0 + 6_755_399_441_055_744.0).to_bits() as u32 as usize;
    let (reciprocal, table) = TABLE[index - FIRST];
    let (high, low) = two_prod(m, reciprocal);
    let (hi, lo) = two_sum(high - 1.0, low + scale_down(x.lo, exponent) * reciprocal);
    Reduced { exponent, table, z: Dd { hi, lo } }
}

/// `x / 2^e`, for a result below 1. The loss by underflow is below `2^-1074`.
#[inline(always)]
fn scale_down(x: f64, e: i32) -> f64 {
    if (-1000..=1000).contains(&e) {
        return x * power_of_two(-e);
    }
    let half = e / 2;
    x * power_of_two(-half) * power_of_two(half - e)
}

/// `ln(1 + z)` for `|z| < 1/361`.
#[inline(always)]
fn series(z: Dd) -> Dd {
    let square = z * z;
    let (hi, lo) = fast_two_sum(z.hi, z.lo + from_third(z.hi, square.hi));
    Dd { hi, lo } - square.scale(0.5)
}

/// The terms from the third to the tenth, `x^3 (1/3 - x/4 + x^2/5 - ... - x^7/10)`, where `y` is `x^2`.
#[inline(always)]
fn from_third(x: f64, y: f64) -> f64 {
    let low = (1.0 / 3.0 - x * 0.25) + y * (0.2 - x * (1.0 / 6.0));
    let high = (1.0 / 7.0 - x * 0.125) + y * (1.0 / 9.0 - x * 0.1);
    x * y * (low + y * y * high)
}

#[cfg(test)]
mod tests {
    use millstream_verify_random::cases;
    use num_bigint::BigInt;
    use num_rational::BigRational;
    use num_traits::One;
    use proptest::prelude::*;

    use super::*;
    use crate::exactly::ln as exactly;
    use crate::exactly::rational::{of, power};

    /// Asserts that the ball covers the logarithm of the rational and has at most the given radius.
    fn check(ball: Ball, truth: &BigRational, radius: f64) {
        let (least, greatest) = exactly::ln(truth.numer(), truth.denom());
        let mid = of(ball.mid.hi) + of(ball.mid.lo);
        let reach = of(ball.radius);
        assert!(&mid - &reach <= greatest && least <= &mid + &reach, "{ball:?} misses {truth}");
        assert!(ball.radius <= radius, "{ball:?} is wide, for {truth}");
    }

    #[test]
    fn every_row_of_the_table_is_correct() {
        for (i, (reciprocal, table)) in (FIRST..).zip(TABLE) {
            assert_eq!(reciprocal, 256.0 / i as f64);
            let r = of(reciprocal);
            let (least, greatest) = exactly::ln(r.denom(), r.numer());
            let found = of(table.hi) + of(table.lo);
            let tolerance = of(table.hi.abs()) * power(2, -98);
            assert!(found <= &greatest + &tolerance && found >= &least - &tolerance, "row {i}");
        }
        let (least, greatest) = exactly::ln(&BigInt::from(2), &BigInt::one());
        let found = of(LN_2_HIGH) + of(LN_2_LOW);
        assert!(found <= greatest + power(2, -96) && found >= least - power(2, -96));
        assert!(LN_2_HIGH.to_bits().trailing_zeros() >= 11, "a product with 11 bits is exact");
    }

    #[test]
    fn neighbours_of_one_have_small_relative_errors() {
        for exponent in 1..=52 {
            let step = power_of_two(-exponent);
            for x in [1.0 + step, 1.0 - step, 1.0 + 3.0 * step, 1.0 - step / 2.0] {
                if x <= 0.0 || x > 1.5 {
                    continue;
                }
                check(ln(x.into()), &of(x), 4.0 * SERIES_ERROR * (x - 1.0).abs() + 1e-27 * f64::from(exponent < 10));
                let third = step / 3.0f64.powi(20);
                check(ln_1p(third.into()), &(of(1.0) + of(third)), 2.0 * SERIES_ERROR * third);
            }
        }
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn the_logarithm_of_any_float_is_covered(bits in 1u64..0x7ff0_0000_0000_0000) {
            let x = f64::from_bits(bits);
            check(ln(x.into()), &of(x), 1e-22);
        }

        #[test]
        fn the_logarithm_of_a_double_double_is_covered(m in 0.5f64..4.0, low in -1.0..1.0, e in -50..50) {
            let scale = power_of_two(e);
            let x = Dd::sum(m * scale, m * scale * low * power_of_two(-54));
            check(ln(x.into()), &(of(x.hi) + of(x.lo)), 1e-22);
        }
    }
}
