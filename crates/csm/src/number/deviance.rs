//! How far a count is from what was expected: `D(a, m) = a ln(a / m) + m - a`, Loader's "deviance part".
//!
//! ```text
//! D(a, m) = -a g(z),   z = (m - a) / a,   g(z) = ln(1 + z) - z
//! ```
//!
//! The logarithm and `z` nearly cancel where `z` is small, which is where it is needed most; with `v = z / (2 + z)`
//!
//! ```text
//! ln(1 + z) = 2 (v + v^3/3 + v^5/5 + ...),   z = 2 v + z v,   g(z) = -z v + 2 v^3 (1/3 + v^2/5 + v^4/7 + ...)
//! ```
//!
//! nothing does: the second term is less than a fifteenth of the first (C. Loader, "Fast and accurate computation of
//! binomial probabilities", 2000). So plain floats do for it, and the error is relative to the deviance itself,
//! whatever `a`.

use super::exact::{fast_two_sum, power_of_two, two_prod};
use super::ln::ln_quotient;
use super::{Ball, Dd};

/// Where the series is used: there `|v|` is at most 1/7.
const LEAST: f64 = -0.25;
const GREATEST: f64 = 1.0 / 3.0;

/// `2^-52 = 2u`.
const ROUNDING: f64 = f64::EPSILON;

/// More than what underflow takes from a deviance that is not zero.
const UNDERFLOW: f64 = 1e-290;

/// `a ln(m / a) - (m - a)` for `m = x n 2^e`, which is the deviance with a negative sign. `x` and `n` are as for
/// [`ln_quotient`].
///
/// With `d = m - a`, the first term is `-d^2 / (a + m)`; its quotient is corrected by its remainder, and is as good as
/// exact. The other one is off by less than `17u` of itself, and is a fifteenth of it. The difference itself is off by
/// `2^-102 m`, which moves the result by `z` times that.
#[inline(always)]
pub(super) fn minus_deviance(a: f64, x: Dd, n: Dd, e: i32) -> Ball {
    // A rate below 2^-100 is far from any shape over any sum of shapes.
    if e >= -100 {
        let m = x.scale(power_of_two(e)) * n;
        let difference = m + -a;
        let d = difference.hi;
        if (LEAST * a..=GREATEST * a).contains(&d) {
            let sum = m + a;
            let (square, square_low) = two_prod(d, d);
            let quotient = square / sum.hi;
            let (back, back_low) = two_prod(quotient, sum.hi);
            let rest = (square - back) + ((square_low - back_low) + (2.0 * d * difference.lo - quotient * sum.lo));
            let (hi, lo) = fast_two_sum(-quotient, a * cubic(d / sum.hi) - rest / sum.hi);
            let error = ROUNDING * -hi + d.abs() * (2.0 * Dd::RELATIVE_ERROR) + UNDERFLOW;
            return Ball::from(Dd { hi, lo }).widen(error);
        }
    }
    far(a, x, n, e)
}

/// As [`minus_deviance`], where nothing cancels: the logarithm itself, in double-double.
#[inline(never)]
fn far(a: f64, x: Dd, n: Dd, e: i32) -> Ball {
    // What underflows here is below 2^-900, beside `a`.
    let expected = Ball::from(x.scale(power_of_two(e.max(-1000)))) * Ball::from(n);
    ln_quotient(x, n, a, e) * a - (expected + -a).widen(1e-270)
}

/// `ln(1 + z) - z`, off by less than `8u` of itself, for `z` from -1/4 to 1/3.
#[inline(always)]
pub(super) fn log_excess(z: f64) -> f64 {
    let v = z / (2.0 + z);
    cubic(v) - z * v
}

/// `2 v^3 (1/3 + v^2/5 + ... + v^16/19)`, off by less than `12u` of itself and `3` times what `v` is off by. What is cut
/// off is below `2^-56` of `v^2`.
#[inline(always)]
fn cubic(v: f64) -> f64 {
    let w = v * v;
    let fourth = w * w;
    let low = (1.0 / 3.0 + w * (1.0 / 5.0)) + fourth * (1.0 / 7.0 + w * (1.0 / 9.0));
    let high = (1.0 / 11.0 + w * (1.0 / 13.0)) + fourth * ((1.0 / 15.0 + w * (1.0 / 17.0)) + fourth * (1.0 / 19.0));
    (v + v) * w * (low + fourth * fourth * high)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::exactly::{ln::ln, rational::of};
    use super::super::ln::ln_1p;
    use super::*;

    #[test]
    fn the_excess_keeps_its_digits() {
        for exponent in 2..300 {
            for z in [1.0, -1.0, 0.7, -0.9].map(|part| part * power_of_two(-exponent)) {
                // In double-double, where that has digits enough; elsewhere the series' first terms are all.
                let truth = if exponent < 12 {
                    (ln_1p(z.into()) + -z).mid.hi
                } else {
                    -z * z * (0.5 - z * (1.0 / 3.0 - z * (0.25 - z * 0.2)))
                };
                let tolerance = if exponent < 12 { 2f64.powi(2 * exponent - 70) } else { 0.0 } + 16.0 * ROUNDING;
                assert!((log_excess(z) - truth).abs() <= tolerance * truth.abs(), "{z}: {} {truth}", log_excess(z));
            }
        }
    }

    proptest! {
        #[test]
        fn a_deviance_is_covered_near_and_far(
            x in 0.001f64..0.999, n in 1u64..1 << 53, off in -1.5f64..1.5, small in 0.0f64..60.0
        ) {
            let m = x * n as f64;
            let a = (m * (1.0 + off.powi(3) * (-small * 0.3).exp2())).round().clamp(1.0, n as f64);
            let ball = minus_deviance(a, x.into(), (n as f64).into(), 0);
            let expected = of(x) * of(n as f64);
            let (least, greatest) = ln((&expected / of(a)).numer(), (&expected / of(a)).denom());
            let (least, greatest) = (least * of(a) - &expected + of(a), greatest * of(a) - &expected + of(a));
            prop_assert!(of(ball.lower()) <= greatest && least <= of(ball.upper()), "{:?}", ball);
            let size = ball.mid.hi.abs();
            prop_assert!(ball.radius <= size * 2.0 * ROUNDING + a * 1e-22 + 1e-280, "{:?} is wide", ball);
        }
    }
}
