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
//! nothing does: the second term is less than a sixth of the first (C. Loader, "Fast and accurate computation of
//! binomial probabilities", 2000). So plain floats do for it, and the error is relative to the deviance itself,
//! whatever `a`.

use super::exact::{fast_two_sum, power_of_two, two_prod};
use super::ln::ln_quotient;
use super::{Ball, Dd};

/// Where the series is used: there `|v|` is at most 1/3.
const LEAST: f64 = -0.5;
const GREATEST: f64 = 1.0;

/// `2^-51 = 4u`.
const ROUNDING: f64 = 2.0 * f64::EPSILON;

/// More than what underflow takes from a deviance that is not zero.
const UNDERFLOW: f64 = 1e-290;

/// A count's deviance.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deviance {
    /// With a negative sign.
    pub(super) minus: Ball,
    /// `m - a`, off by `2^-52` of itself and `2^-101 m`.
    pub(super) difference: f64,
}

/// `a ln(m / a) - (m - a)` for `m = x n 2^e`, which is the deviance with a negative sign. `x` and `n` are as for
/// [`ln_quotient`].
///
/// With `d = m - a`, the first term is `-d^2 / (a + m)`; its quotient is corrected by its remainder, and is as good as
/// exact. The other one is off by less than `22u` of itself, and is a sixth of it at most. The difference itself is off by
/// `2^-102 m`, which moves the result by `z` times that.
#[inline(always)]
pub(super) fn minus_deviance(a: f64, x: Dd, n: Dd, e: i32) -> Deviance {
    // What underflows here is below 2^-900, beside `a`.
    let m = x.scale(power_of_two(e.max(-1000))) * n;
    let difference = m + -a;
    let d = difference.hi;
    if !(LEAST * a..=GREATEST * a).contains(&d) {
        return Deviance { minus: far(a, x, n, e, difference), difference: d };
    }
    let sum = m + a;
    let reciprocal = 1.0 / sum.hi;
    let (square, square_low) = two_prod(d, d);
    let quotient = square / sum.hi;
    let (back, back_low) = two_prod(quotient, sum.hi);
    let rest = (square - back) + ((square_low - back_low) + (2.0 * d * difference.lo - quotient * sum.lo));
    let (hi, lo) = fast_two_sum(-quotient, a * cubic(d * reciprocal) - rest * reciprocal);
    let error = ROUNDING * -hi + d.abs() * (2.0 * Dd::RELATIVE_ERROR) + UNDERFLOW;
    Deviance { minus: Ball::from(Dd { hi, lo }).widen(error), difference: d }
}

/// As [`minus_deviance`], where nothing cancels: the logarithm itself, in double-double. The difference `m - a` is off by
/// `2^-101` of the larger of the two.
#[inline(never)]
fn far(a: f64, x: Dd, n: Dd, e: i32, difference: Dd) -> Ball {
    let ln = ln_quotient(x, n, a, e);
    let mid = ln.mid * a - difference;
    let size = ln.mid.hi.abs() * a + difference.hi.abs() + a;
    Ball::from(mid).widen(ln.radius * a + size * (4.0 * Dd::RELATIVE_ERROR) + UNDERFLOW)
}

/// `2 v^3 (1/3 + v^2/5 + ... + v^32/35)`, off by less than `14u` of itself and `3` times what `v` is off by. What is cut
/// off is below `2^-56` of `v^2`.
#[inline(always)]
fn cubic(v: f64) -> f64 {
    let w = v * v;
    let fourth = w * w;
    let eighth = fourth * fourth;
    let low = (1.0 / 3.0 + w * (1.0 / 5.0)) + fourth * (1.0 / 7.0 + w * (1.0 / 9.0));
    let middle = (1.0 / 11.0 + w * (1.0 / 13.0)) + fourth * (1.0 / 15.0 + w * (1.0 / 17.0));
    let high = (1.0 / 19.0 + w * (1.0 / 21.0)) + fourth * (1.0 / 23.0 + w * (1.0 / 25.0));
    let highest = (1.0 / 27.0 + w * (1.0 / 29.0)) + fourth * ((1.0 / 31.0 + w * (1.0 / 33.0)) + fourth * (1.0 / 35.0));
    (v + v) * w * ((low + eighth * middle) + eighth * eighth * (high + eighth * highest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::exactly::{ln::ln, rational::of};
    use super::*;

    proptest! {
        #[test]
        fn a_deviance_is_covered_near_and_far(
            x in 0.001f64..0.999, n in 1u64..1 << 53, off in -1.5f64..1.5, small in 0.0f64..60.0
        ) {
            let m = x * n as f64;
            let a = (m * (1.0 + off.powi(3) * (-small * 0.3).exp2())).round().clamp(1.0, n as f64);
            let ball = minus_deviance(a, x.into(), (n as f64).into(), 0).minus;
            let expected = of(x) * of(n as f64);
            let (least, greatest) = ln((&expected / of(a)).numer(), (&expected / of(a)).denom());
            let (least, greatest) = (least * of(a) - &expected + of(a), greatest * of(a) - &expected + of(a));
            prop_assert!(of(ball.lower()) <= greatest && least <= of(ball.upper()), "{:?}", ball);
            let size = ball.mid.hi.abs();
            prop_assert!(ball.radius <= size * 2.0 * ROUNDING + a * 1e-22 + 1e-280, "{:?} is wide", ball);
        }
    }
}
