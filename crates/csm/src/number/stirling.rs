//! The remainder of Stirling's formula for the logarithm of the Gamma function.
//!
//! ```text
//! ln Gamma(z) = (z - 1/2) ln z - z + ln(2 pi)/2 + d(z),   d(z) = 1/(12 z) - 1/(360 z^3) + 1/(1260 z^5) - ...
//! ```
//!
//! For `z > 0` that series is enveloping: the truth lies between any two successive partial sums (Whittaker and
//! Watson 12.33), which is Robbins' inequality with more terms. From 16 on, five terms leave out less than `1.1e-16`.
//! Below, the recurrence `Gamma(z + 1) = z Gamma(z)` moves `z` up, and eighths are in a table.

use super::ln::ln;
use super::stirling_table::EIGHTHS;
use super::{Ball, Dd, Rough};

/// From here on the series is used directly.
const LARGE: f64 = 16.0;

/// `d(z)` for `z > 0`. `z` is above `2^-40`.
#[inline(always)]
pub(crate) fn correction(z: Dd) -> Rough {
    if z.hi >= LARGE { large(z.hi) } else { below_large(z) }
}

#[inline(never)]
fn below_large(z: Dd) -> Rough {
    let eighths = (8.0 * z.hi) as i32;
    if eighths > 0 && f64::from(eighths) == 8.0 * z.hi && z.lo == 0.0 {
        let value = EIGHTHS[eighths as usize - 1];
        return Rough { value, error: value * (0.5 * f64::EPSILON) };
    }
    small(z)
}

/// The series, in floats. The truncation is less than `691/360360 / 16^11`, which is `1.1e-16`; taking `z.hi` for `z`
/// and rounding move the sum, less than `1/192`, by less than `8u = 2^-50` of itself: less than `5e-18`.
#[inline]
fn large(z: f64) -> Rough {
    let reciprocal = 1.0 / z;
    let square = reciprocal * reciprocal;
    let tail = (-1.0 / 360.0 + square * (1.0 / 1260.0)) + square * square * (-1.0 / 1680.0 + square * (1.0 / 1188.0));
    Rough { value: reciprocal * (1.0 / 12.0 + square * tail), error: 1.15e-16 }
}

/// `d(z) = d(z + 16) + (z + 31/2) ln(z + 16) - (z - 1/2) ln z - 16 - ln(z (z + 1) ... (z + 15))`.
fn small(z: Dd) -> Rough {
    let z = Ball::from(z);
    let up = z + LARGE;
    let mut product = z;
    for k in 1..16 {
        product = product * (z + f64::from(k));
    }
    let moved = (up + -0.5) * ln(up) - (z + -0.5) * ln(z) - ln(product);
    (moved + (-LARGE) + large(up.mid.hi)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_satisfies_the_recurrence() {
        for eighths in 1..128 {
            let z = Dd::from(f64::from(eighths) / 8.0);
            let (table, computed) = (below_large(z), small(z));
            assert!((table.value - computed.value).abs() <= computed.error + table.error, "{z:?}");
            assert!(computed.error < 1e-14, "{computed:?} says little");
        }
    }

    /// `d(z) - d(z + 1) = (z + 1/2) ln(1 + 1/z) - 1`.
    #[test]
    fn neighbours_differ_by_a_logarithm_across_all_sizes() {
        for step in 1..4000 {
            let z = f64::from(step) / 64.0;
            let ball = Ball::from(z);
            let truth = (ball + 0.5) * ln((ball + 1.0) / ball) + -1.0;
            let found = correction(z.into()) - correction((z + 1.0).into());
            let off = truth - found;
            assert!(off.lower() <= 0.0 && off.upper() >= 0.0, "{z}: {truth:?} and {found:?}");
            assert!(found.error < 1e-13, "{z}: {found:?} says little");
        }
    }
}
