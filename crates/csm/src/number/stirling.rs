//! The remainder of Stirling's formula for the logarithm of the Gamma function.
//!
//! ```text
//! ln Gamma(z) = (z - 1/2) ln z - z + ln(2 pi)/2 + d(z),   d(z) = 1/(12 z) - 1/(360 z^3) + 1/(1260 z^5) - ...
//! ```
//!
//! For `z > 0` this series is enveloping: the true value is between any two successive partial sums (Whittaker and
//! Watson 12.33), which generalises Robbins' inequality. For `z >= 16`, the truncation after the fifth term is less
//! than `1.1e-16`. For smaller `z`, the recurrence `Gamma(z + 1) = z Gamma(z)` increases `z` first. Most shapes are
//! multiples of 1/8, whose values are computed once.

use std::sync::LazyLock;

use super::ln::ln;
use super::{Ball, Dd};

/// The smallest `z` for which the series is used directly.
const LARGE: f64 = 16.0;

/// `d(1/8)`, `d(2/8)`, ..., `d(127/8)`.
static EIGHTHS: LazyLock<[Ball; 127]> =
    LazyLock::new(|| std::array::from_fn(|i| small(Ball::from((i + 1) as f64 * 0.125))));

/// `d(z)`, for `z` above `2^-40`.
#[inline(always)]
pub(crate) fn correction(z: Dd) -> Ball {
    if z.hi >= LARGE { large(z.hi) } else { below_large(z) }
}

#[inline(never)]
fn below_large(z: Dd) -> Ball {
    let eighths = 8.0 * z.hi;
    let is_eighth = z.lo == 0.0 && eighths >= 1.0 && eighths.fract() == 0.0;
    if is_eighth { EIGHTHS[eighths as usize - 1] } else { small(z.into()) }
}

/// The series, in floats. The truncation is less than `691/360360 / z^11`, which is at most `1.1e-16`. Rounding and the
/// use of `z.hi` instead of `z` cause a relative error of less than `8u = 2^-50`.
#[inline]
fn large(z: f64) -> Ball {
    let reciprocal = 1.0 / z;
    let square = reciprocal * reciprocal;
    let fourth = square * square;
    let tail = (-1.0 / 360.0 + square * (1.0 / 1260.0)) + fourth * (-1.0 / 1680.0 + square * (1.0 / 1188.0));
    let value = reciprocal * (1.0 / 12.0 + square * tail);
    Ball::new(value, 0.0, 0.00192 * (fourth * fourth) * (square * reciprocal) + 4.0 * f64::EPSILON * value)
}

/// `d(z) = d(z + 32) + (z + 63/2) ln(z + 32) - (z - 1/2) ln z - 32 - ln(z (z + 1) ... (z + 31))`.
fn small(z: Ball) -> Ball {
    let up = z + 32.0;
    let product = (1..32).fold(z, |product, k| product * (z + f64::from(k)));
    let moved = (up + -0.5) * ln(up) - (z + -0.5) * ln(z) - ln(product);
    moved + -32.0 + large(up.mid.hi)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_come_out() {
        // d(1/8), and d(z) = ln Gamma(z) - (z - 1/2) ln z + z - ln(2 pi)/2 at 1/2 and at 1.
        for (z, known) in [
            (0.125, 0.44568924621918515),
            (0.5, 0.5 - 0.5 * std::f64::consts::LN_2),
            (1.0, 1.0 - 0.5 * std::f64::consts::TAU.ln()),
        ] {
            let found = correction(z.into());
            assert!((found.mid.hi - known).abs() <= 1e-16 && found.radius < 1e-17, "{z}: {found:?}");
        }
    }

    /// `d(z) - d(z + 1) = (z + 1/2) ln(1 + 1/z) - 1`.
    #[test]
    fn neighbours_differ_by_a_logarithm_across_all_sizes() {
        for step in 1..4000 {
            let z = f64::from(step) / 64.0;
            let ball = Ball::from(z);
            let truth = (ball + 0.5) * (ln(ball + 1.0) - ln(ball)) + -1.0;
            let found = correction(z.into()) - correction((z + 1.0).into());
            let off = truth - found;
            assert!(off.lower() <= 0.0 && off.upper() >= 0.0, "{z}: {truth:?} and {found:?}");
            assert!(found.radius < 2.5e-16, "{z}: {found:?} says little");
        }
    }
}
