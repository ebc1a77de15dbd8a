//! The deviance of a count from its expected value: `D(a, m) = a ln(a / m) + m - a`, Loader's "deviance part".
//!
//! ```text
//! D(a, m) = -a g(z),   z = (m - a) / a,   g(z) = ln(1 + z) - z
//! ```
//!
//! If `z` is small, which is the most important case, the logarithm and `z` nearly cancel. But with `v = z / (2 + z)`,
//!
//! ```text
//! ln(1 + z) = 2 (v + v^3/3 + v^5/5 + ...),   z = 2 v + z v,   g(z) = -z v + 2 v^3 (1/3 + v^2/5 + v^4/7 + ...)
//! ```
//!
//! no terms cancel: the second term of `g(z)` is less than a sixth of the first (C. Loader, "Fast and accurate
//! computation of binomial probabilities", 2000). So plain floats suffice, and the error is relative to the deviance
//! itself, whatever `a` is.

use super::kernel::Rate;
use super::ln::ln;
use super::{Ball, Dd};

/// The largest `|v|` for which the series is used.
const MAX_V: f64 = 1.0 / 3.0;

/// `2^-49 = 16u`.
const ROUNDING: f64 = 8.0 * f64::EPSILON;

/// More than the loss of a nonzero deviance by underflow.
const UNDERFLOW: f64 = 1e-290;

/// The deviances of two counts from the expected parts of their sum.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deviances {
    /// Minus the sum of both deviances. The relative error is less than `33u`, with `u = 2^-53`.
    pub(crate) minus: Ball,
    /// The first count minus its expected value: `a - x n = (1-x) n - b`. The error is at most `2^-52` of the
    /// difference plus `2^-102` of the smaller expected count.
    pub(crate) lead: f64,
}

/// `a ln(x n / a) + b ln((1-x) n / b)` for `n = a + b`: `-n` times the Kullback-Leibler divergence of `x` from `a / n`.
///
/// The differences of the two counts from their expected values add up to zero, so one of them suffices. The code uses
/// the difference for the smaller rate, whose expected count is more exact.
#[inline]
pub(crate) fn minus_deviances(a: f64, b: f64, rate: &Rate) -> Deviances {
    let n = Dd::sum(a, b);
    let (part, count) = if rate.x_is_smaller { (rate.x, a) } else { (rate.y, b) };
    let expected = part * n;
    let difference = (expected.hi - count) + expected.lo;
    let d = if rate.x_is_smaller { difference } else { -difference };
    let minus = minus_deviance(a, d, rate.x, n.hi) + minus_deviance(b, -d, rate.y, n.hi);
    // Unlike `-d`, this form never results in a negative zero.
    Deviances { minus, lead: 0.0 - d }
}

/// `a ln(m / a) - d` for a count `a` and its expected value `m = x n = a + d`.
///
/// **Rounding**, with `u = 2^-53`. The relative error of `d` is `2u`, from the subtraction of the count and the
/// addition of the rest. A further error of up to `2^-102 m` changes the deviance by `|z|` times as much.
///
/// If `|v| <= 1/3`, the deviance is `d v - 2 a v^3 (1/3 + v^2/5 + ...)` with `v = d / (2 a + d)`. First, the relative
/// error of `d` changes the deviance by at most 2.4 times as much, which is less than `5u`. Second, given the rounded
/// `d`, the relative error is less than `3u` for `v`, less than `5u` for the first term, and less than `24u` for the
/// second term, which is at most a sixth of the first. For the deviance this is less than `(5 + 24/6) 6/5 u < 11u`. The
/// total is less than `16u`.
///
/// Otherwise, no other term nearly cancels the logarithm. The relative error of `n / a` is `2u`, so the error of `a`
/// times the logarithm is `2u a`. The deviance is at least 0.19 times the count and at least 0.3 times `|d|`, so its
/// relative error is less than `33u`.
fn minus_deviance(a: f64, d: f64, x: Dd, n: f64) -> Ball {
    let v = d / (a + (a + d));
    if v.abs() <= MAX_V {
        let deviance = d * v - a * cubic(v);
        let error = ROUNDING * deviance + d.abs() * (2.0 * Dd::RELATIVE_ERROR) + UNDERFLOW;
        return Ball::new(0.0 - deviance, 0.0, error);
    }
    let ln = ln(x.into()) + ln((n / a).into()).widen(1.5 * f64::EPSILON);
    (ln * a - d).widen(d.abs() * (1.5 * f64::EPSILON) + UNDERFLOW)
}

/// `2 v^3 (1/3 + v^2/5 + ... + v^32/35)`. The relative error is less than `14u` plus 3 times that of `v`. The
/// truncation is below `2^-59` of `v^2`. Up to `v^2 = 1/64`, eight terms suffice, with a truncation below `2^-54`.
#[inline(always)]
fn cubic(v: f64) -> f64 {
    let w = v * v;
    let sum = if w <= 1.0 / 64.0 { odd_reciprocals::<8>(w) } else { odd_reciprocals::<17>(w) };
    (v + v) * w * sum
}

/// `1/3 + w/5 + w^2/7 + ...`. All terms are positive, and each is less than `w <= 1/9` times the previous one. So the
/// relative error of the sum is less than `3u`, given that of `w`, which is `u`.
#[inline(always)]
fn odd_reciprocals<const TERMS: usize>(w: f64) -> f64 {
    (0..TERMS).rev().fold(0.0, |sum, k| sum * w + 1.0 / (2 * k + 3) as f64)
}

#[cfg(test)]
mod tests {
    use millstream_verify_random::cases;
    use num_rational::BigRational;
    use num_traits::Signed;
    use proptest::prelude::*;

    use super::*;
    use crate::exactly::{ln::ln, rational::of};

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn a_deviance_is_covered_near_and_far(
            x in 0.001f64..0.999, bits in 0.0f64..53.0, off in -1.5f64..1.5, small in 0.0f64..60.0
        ) {
            let n = bits.exp2().floor();
            let m = x * n;
            let a = (m * (1.0 + off.powi(3) * (-small * 0.3).exp2())).round().clamp(1.0, n);
            let b = n - a;
            prop_assume!(b > 0.0);
            let found = minus_deviances(a, b, &Rate::new(x));
            let part = |count: f64, rate: BigRational| {
                let quotient = rate * of(n) / of(count);
                let (least, greatest) = ln(quotient.numer(), quotient.denom());
                [least * of(count), greatest * of(count)]
            };
            let ([least, greatest], [least_b, greatest_b]) = (part(a, of(x)), part(b, of(1.0) - of(x)));
            let (least, greatest) = (least + least_b, greatest + greatest_b);
            let ball = found.minus;
            prop_assert!(of(ball.lower()) <= greatest && least <= of(ball.upper()), "{:?}", ball);
            let size = ball.mid.hi.abs();
            let most = size * 5.0 * ROUNDING + n * 1e-22 + 1e-280;
            prop_assert!(ball.radius <= most, "{:?} is wide", ball);
            let lead = of(a) - of(x) * of(n);
            let off = (of(found.lead) - &lead).abs();
            prop_assert!(off <= lead.abs() * of(f64::EPSILON) + of(a.min(b) * 1e-30));
        }
    }
}
