//! The deviance of a count from its expected value: `D(a, m) = a ln(a / m) + m - a`, Loader's "deviance part".
//!
//! ```text
//! D(a, m) = -a g(z),   z = (m - a) / a,   g(z) = ln(1 + z) - z
//! ```
//!
//! The logarithm and `z` nearly cancel where `z` is small, which is the most important case; with `v = z / (2 + z)`
//!
//! ```text
//! ln(1 + z) = 2 (v + v^3/3 + v^5/5 + ...),   z = 2 v + z v,   g(z) = -z v + 2 v^3 (1/3 + v^2/5 + v^4/7 + ...)
//! ```
//!
//! no terms cancel: the second term is less than a sixth of the first (C. Loader, "Fast and accurate computation of
//! binomial probabilities", 2000). So plain floats suffice, and the error is relative to the deviance itself, whatever
//! `a`.

use super::exact::power_of_two;
use super::kernel::{Rate, Scaled};
use super::ln::{ln_quotient, ln_to_a_float};
use super::{Ball, Dd, Rough};

/// The largest `|v|` for which the series is used.
const MAX_V: f64 = 1.0 / 3.0;

/// Up to here, an error relative to the deviance is good enough: `2^14`.
pub(super) const MAX_DEVIANCE: f64 = 16384.0;

/// Up to here, so is one relative to the logarithm: evidence of one in `10^27`.
const MODERATE: f64 = 64.0;

/// `2^-49 = 16u`.
const ROUNDING: f64 = 8.0 * f64::EPSILON;

/// More than the loss of a nonzero deviance by underflow.
const UNDERFLOW: f64 = 1e-290;

/// The deviances of two counts from the expected parts of their sum.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deviances {
    /// The sum of both, with a negative sign.
    pub(super) minus: Ball,
    /// The excess of the first count over its expected value: `a - x n = (1-x) n - b`. Off by `2^-52` of itself and
    /// `2^-102` of the smaller expected count.
    pub(super) lead: f64,
}

/// `a ln(x n / a) + b ln((1-x) n / b)` for `n = a + b`: `-n` times the Kullback-Leibler divergence of `x` from `a / n`.
///
/// The differences of the two counts from their expected values add up to zero, so one suffices: that of the smaller
/// rate, whose expected count is the more exact one.
#[inline(always)]
pub(super) fn minus_deviances(a: f64, b: f64, n: Dd, rate: &Rate) -> Deviances {
    let (part, count) = if rate.x_is_smaller { (rate.x, a) } else { (rate.y, b) };
    // A product that underflows here is below 2^-900, beside a count.
    let expected = part.m.scale(power_of_two(part.e.max(-1000))) * n;
    let difference = (expected.hi - count) + expected.lo;
    let d = if rate.x_is_smaller { difference } else { -difference };
    let [one, other] = near([a, b], [d, -d]);
    let minus = if one.holds() && other.holds() {
        (one.minus() + other.minus()).into()
    } else {
        let exact = expected + -count;
        let exact = if rate.x_is_smaller { exact } else { -exact };
        let [x_expected, y_expected] = if rate.x_is_smaller { [expected.hi, b - d] } else { [a + d, expected.hi] };
        one.minus_or_far(a, x_expected, rate.x, n, exact) + other.minus_or_far(b, y_expected, rate.y, n, -exact)
    };
    // A zero is a positive one.
    Deviances { minus, lead: 0.0 - d }
}

/// The result of the series for a count.
#[derive(Clone, Copy)]
struct Near {
    v: f64,
    deviance: f64,
    difference: f64,
}

/// The deviances of two counts from expected values that exceed them by these differences, `d v - 2 a v^3 (1/3 + v^2/5
/// + ...)`, where `v = d / (2 a + d)`.
///
/// **Rounding.** `d` is off by `2u` of itself, `u = 2^-53`, as subtracting a count rounds and adding the rest does; and
/// by up to `2^-102 m`, which moves the deviance by `|z|` times that. The former affects the deviance itself, whose
/// logarithm moves at most 2.4 times as much as that of `d` where `|v| <= 1/3`: less than `5u`. From the rounded `d`
/// on, `v` is off by less than `3u`, the first term by less than `5u`, and the second, a sixth of it at most, by less
/// than `24u`: less than `(5 + 24/6) 6/5 u < 11u`. That is less than `16u` together.
#[inline(always)]
fn near(counts: [f64; 2], differences: [f64; 2]) -> [Near; 2] {
    let v: [f64; 2] = std::array::from_fn(|i| differences[i] / (counts[i] + (counts[i] + differences[i])));
    let cubic = cubic(v);
    std::array::from_fn(|i| {
        let deviance = differences[i] * v[i] - counts[i] * cubic[i];
        Near { v: v[i], deviance, difference: differences[i] }
    })
}

impl Near {
    /// Whether the series may be used.
    #[inline(always)]
    fn holds(self) -> bool {
        self.v.abs() <= MAX_V && self.deviance <= MAX_DEVIANCE
    }

    #[inline(always)]
    fn minus(self) -> Rough {
        let error = ROUNDING * self.deviance + self.difference.abs() * (2.0 * Dd::RELATIVE_ERROR) + UNDERFLOW;
        Rough { value: 0.0 - self.deviance, error }
    }

    /// The deviance from this expected count, `x n`, with a negative sign, by the series or otherwise.
    #[inline]
    fn minus_or_far(self, count: f64, expected: f64, x: Scaled, n: Dd, difference: Dd) -> Ball {
        if self.holds() {
            return self.minus().into();
        }
        middling(count, expected, difference.hi).map_or_else(|| far(count, x, n, difference), Ball::from)
    }
}

/// `a ln(m / a) - (m - a)` in floats, beyond the series and where that is good enough. `m` may be off by `5u` of
/// itself.
///
/// The quotient is off by `6u`, the logarithm by `8u` of itself and that, the product and the sum are rounded once
/// each, and the difference is off by `2u`. As the result is at least 0.19 times the count and 0.2 times the
/// logarithm's product, that is less than `70u` of it.
#[inline]
fn middling(a: f64, m: f64, difference: f64) -> Option<Rough> {
    let ln = ln_to_a_float(m / a);
    let value = a * ln.value - difference;
    let error =
        a * (ln.error + (3.5 + ln.value.abs()) * f64::EPSILON) + (difference.abs() + value.abs()) * f64::EPSILON;
    (a >= 1.0 && -value <= MODERATE).then_some(Rough { value, error })
}

/// `a ln(m / a) - (m - a)`, `m = x n`, where either does not cancel or is large: the logarithm itself, in
/// double-double.
#[inline(never)]
fn far(a: f64, x: Scaled, n: Dd, difference: Dd) -> Ball {
    let ln = ln_quotient(x.m, n, a, x.e);
    let mid = ln.mid * a - difference;
    let size = ln.mid.hi.abs() * a + difference.hi.abs() + a;
    Ball::from(mid).widen(ln.radius * a + size * (4.0 * Dd::RELATIVE_ERROR) + UNDERFLOW)
}

/// `2 v^3 (1/3 + v^2/5 + ... + v^32/35)`, off by less than `14u` of itself and `3` times the error of `v`. The
/// truncation is below `2^-59` of `v^2`; up to `v^2 = 1/64`, eight terms suffice, with a truncation below `2^-54`.
#[inline(always)]
fn cubic(v: [f64; 2]) -> [f64; 2] {
    const SMALL: f64 = 1.0 / 64.0;
    let w = v.map(|v| v * v);
    let fourth = w.map(|w| w * w);
    let eighth = fourth.map(|w| w * w);
    // Four terms, from c on.
    let four = |i: usize, c: f64| {
        let term = |k: f64| 1.0 / (c + 2.0 * k);
        (term(0.0) + w[i] * term(1.0)) + fourth[i] * (term(2.0) + w[i] * term(3.0))
    };
    let low: [f64; 2] = std::array::from_fn(|i| four(i, 3.0) + eighth[i] * four(i, 11.0));
    let sum = if w[0] <= SMALL && w[1] <= SMALL {
        low
    } else {
        std::array::from_fn(|i| {
            let high = four(i, 19.0) + eighth[i] * (four(i, 27.0) + eighth[i] * (1.0 / 35.0));
            low[i] + eighth[i] * eighth[i] * high
        })
    };
    std::array::from_fn(|i| (v[i] + v[i]) * w[i] * sum[i])
}

#[cfg(test)]
mod tests {
    use millstream_verify_random::cases;
    use num_rational::BigRational;
    use num_traits::Signed;
    use proptest::prelude::*;

    use super::super::exactly::{ln::ln, rational::of};
    use super::*;

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
            let found = minus_deviances(a, b, n.into(), &Rate::new(x));
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
            prop_assert!(ball.radius <= 6e-11 + n * 1e-22, "{:?} is wide", ball);
            let lead = of(a) - of(x) * of(n);
            let off = (of(found.lead) - &lead).abs();
            prop_assert!(off <= lead.abs() * of(f64::EPSILON) + of(a.min(b) * 1e-30));
        }
    }
}
