//! The natural logarithm.
//!
//! A number is `2^e m` with `m` between about `sqrt(1/2)` and `sqrt(2)`. A table gives an `r` near `1/m` whose
//! logarithm is known, so that `z = r m - 1` is small, `|z| < 1/361`, and
//!
//! ```text
//! ln(2^e m) = e ln 2 - ln r + ln(1 + z),   ln(1 + z) = z - z^2/2 + z^3/3 - z^4/4 + ... + z^9/9 - z^10/10 + ...
//! ```
//!
//! (the shape of P. T. P. Tang's table-driven logarithm). The first two terms are computed in double-double, the
//! others in plain floats.
//!
//! **Error.** `z` is exact where `r = 1`; elsewhere it is off by at most `2^-104`, as `r m_hi` is exact in two floats,
//! subtracting one from the first of them is exact, and the two smaller parts are below `2^-52`. With `u = 2^-53`: the
//! terms from the third to the tenth, in floats, are off by at most `6 u |z|^3 / 3`, less than `2^-68.9 |z|`; the
//! truncation is less than `|z|^11 / 10`, less than `2^-87 |z|`; the double-double parts are off by less than `2^-98
//! |z|`. Together that is less than [`SERIES_ERROR`] times `|z|`, a **relative** error, since near one nothing else is
//! added. The table, `e ln 2` and their sums are off by less than `2^-93.6 |e| + 2^-101 |ln r|`; where `r` is not one,
//! `|ln r| > 2^-8.1`, so that [`TABLE_ERROR`] covers `z` as well.

use super::exact::{fast_two_sum, power_of_two, split_exponent, two_prod, two_sum};
use super::ln_table::{FIRST, TABLE};
use super::{Ball, Dd, Rough};

/// `2^-68`.
const SERIES_ERROR: f64 = 3.388_131_789_017_201_4e-21;

/// `2^-93`.
const TABLE_ERROR: f64 = 1.009_741_958_682_895_2e-28;

/// Significands from here on are halved: `362.5 / 256`.
const MAX_SIGNIFICAND: f64 = 1.416_015_625;

/// `ln 2` to 41 bits, so that a product with an exponent is exact.
pub(super) const LN_2_HIGH: f64 = 0.693147180559663;

/// `ln 2 - LN_2_HIGH`, to 53 more bits.
pub(super) const LN_2_LOW: f64 = 2.8235290563031577e-13;

/// `ln(2^e x)`, for a ball of positive numbers whose radius is at most half its centre.
#[inline]
pub(crate) fn ln_scaled(x: Ball, e: i32) -> Ball {
    let ln = ln_parts(x.mid, 0.0, e);
    if x.radius == 0.0 {
        return ln;
    }
    // The logarithm's slope is 1/x, steepest at the ball's lower end.
    let least = x.mid.hi - x.radius;
    debug_assert!(x.radius <= 0.5 * x.mid.hi, "the logarithm of a ball that reaches zero: {x:?}");
    ln.widen(x.radius / least * 1.001)
}

/// `ln(2^e x n / a)`, for `x` from `2^-60` to 2, and `n` and `a` from `2^-40` to `2^54`.
///
/// The quotient `q` of the upper parts is a float, so the logarithm need not wait for the rest of it, which is a factor
/// `1 + t`, with `t = (x n - q a) / (q a)`. As `q a` is exact in two floats, and so are the upper parts' product and
/// the difference of the larger halves, `t` is off by less than `32 u^2`, and the truncation of `ln(1 + t)` is less.
#[inline(always)]
pub(crate) fn ln_quotient(x: Dd, n: Dd, a: f64, e: i32) -> Ball {
    let (product, product_low) = two_prod(x.hi, n.hi);
    let quotient = product / a;
    let (back, back_low) = two_prod(quotient, a);
    let rest = (product - back) + ((product_low - back_low) + (x.hi * n.lo + x.lo * n.hi));
    ln_parts(quotient.into(), rest / back, e).widen(4.0 * Dd::RELATIVE_ERROR)
}

/// `ln x`, for a ball of positive numbers whose radius is at most half its centre.
#[inline]
pub(crate) fn ln(x: Ball) -> Ball {
    ln_scaled(x, 0)
}

/// `ln(1 + x)` for `x > -1`, with a small relative error near zero as well.
pub(crate) fn ln_1p(x: Ball) -> Ball {
    if x.mid.hi.abs() > 1.0 / 512.0 {
        return ln(x + 1.0);
    }
    let series = series(x.mid);
    let rounding = x.mid.hi.abs() * SERIES_ERROR + Dd::UNDERFLOW;
    // The slope is 1/(1 + x), and the whole ball lies above -1/2.
    debug_assert!(x.radius < 0.25);
    Ball { mid: series, radius: 0.0 }.widen(rounding + x.radius / (0.998 - x.radius))
}

/// `ln(2^e (hi + lo) (1 + t))`, where `t` is at most `2^-50`, and the caller accounts for its error.
#[inline(always)]
fn ln_parts(x: Dd, t: f64, e: i32) -> Ball {
    let reduced = reduce(x);
    let whole = f64::from(reduced.exponent + e);
    let (hi, lo) = fast_two_sum(LN_2_HIGH * whole, LN_2_LOW * whole + (t - 0.5 * t * t));
    let ln = (Dd { hi, lo } + reduced.table) + series(reduced.z);
    let error = reduced.z.hi.abs() * SERIES_ERROR + (whole.abs() + reduced.table.hi.abs()) * TABLE_ERROR;
    Ball { mid: ln, radius: error + Dd::UNDERFLOW }
}

/// `ln x` as a float, in half the time. Each of the four sums of the result is rounded once, and each of their
/// terms before that by less than half a unit of the sum.
#[inline(always)]
pub(crate) fn ln_to_a_float(x: f64) -> Rough {
    let reduced = reduce(x.into());
    let (whole, z) = (f64::from(reduced.exponent), reduced.z.hi);
    let square = z * z;
    let rest = (reduced.table.lo + LN_2_LOW * whole) + (from_third(z, square) - 0.5 * square);
    let ln = LN_2_HIGH * whole + (reduced.table.hi + (z + rest));
    Rough { value: ln, error: (ln.abs() + reduced.table.hi.abs() + z.abs()) * 2.0 * f64::EPSILON }
}

/// `ln x`, for `x` above zero by more than its error.
#[inline]
pub(crate) fn rough_ln(x: Rough) -> Rough {
    let ln = ln_to_a_float(x.value);
    // The slope is steepest at the lower end.
    Rough { value: ln.value, error: ln.error + x.error / (x.value - x.error) * 1.001 }
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
    // Adding 1.5 * 2^52 rounds to an integer, which is then in the lowest bits.
    let index = (m * 256.0 + 6_755_399_441_055_744.0).to_bits() as u32 as usize;
    let (reciprocal, hi, lo) = TABLE[index - FIRST];
    let table = Dd { hi, lo };
    let (high, low) = two_prod(m, reciprocal);
    let (hi, lo) = two_sum(high - 1.0, low + scale_down(x.lo, exponent) * reciprocal);
    Reduced { exponent, table, z: Dd { hi, lo } }
}

/// `x / 2^e`, where that is below 1. The loss by underflow is below `2^-1074`.
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

    use super::super::exactly::ln as exactly;
    use super::super::exactly::rational::{of, power};
    use super::*;

    /// Fails unless the ball covers the logarithm of the rational and is at most `radius` wide.
    fn check(ball: Ball, truth: &BigRational, radius: f64) {
        let (least, greatest) = exactly::ln(truth.numer(), truth.denom());
        let mid = of(ball.mid.hi) + of(ball.mid.lo);
        let reach = of(ball.radius);
        assert!(&mid - &reach <= greatest && least <= &mid + &reach, "{ball:?} misses {truth}");
        assert!(ball.radius <= radius, "{ball:?} is wide, for {truth}");
    }

    fn rough_ln(x: f64) -> Ball {
        Ball::ZERO + ln_to_a_float(x)
    }

    #[test]
    fn every_row_of_the_table_is_correct() {
        for (i, (reciprocal, hi, lo)) in (FIRST..).zip(TABLE) {
            assert_eq!(reciprocal, 256.0 / i as f64);
            let r = of(reciprocal);
            let (least, greatest) = exactly::ln(r.denom(), r.numer());
            let found = of(hi) + of(lo);
            let tolerance = power(2, -106);
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
                check(rough_ln(x), &of(x), 5e-15 * (x - 1.0).abs());
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
            check(rough_ln(x), &of(x), 1e-12);
        }

        #[test]
        fn the_logarithm_of_a_double_double_is_covered(m in 0.5f64..4.0, low in -1.0..1.0, e in -50..50) {
            let x = Dd::sum(m, m * low * power_of_two(-54));
            let scale = power(2, e);
            check(ln_scaled(x.into(), e), &((of(x.hi) + of(x.lo)) * scale), 1e-22);
        }

        #[test]
        fn the_logarithm_of_a_quotient_is_covered(x in 0.5f64..2.0, n in 1u64..1 << 53, a in 1u64..1 << 53, low in -1.0..1.0) {
            let (n, a) = (Dd::sum(n as f64, low * 0.25), a as f64);
            let truth = of(x) * (of(n.hi) + of(n.lo)) / of(a);
            check(ln_quotient(x.into(), n, a, 0), &truth, 1e-22);
        }
    }
}
