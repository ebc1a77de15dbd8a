//! A tail of the Beta distribution as a sum of binomial probabilities, for whole shapes of which one is small.
//!
//! For whole `a` and `b`, `I_x(a, b)` is the probability of `a` or more successes in `a + b - 1` trials. From the first
//! such probability on, each is the one before times
//!
//! ```text
//! r_k = (b - 1 - k) / (a + 1 + k) x / (1-x),   k = 0, 1, 2, ..., b - 1
//! ```
//!
//! and the first one, over `x^a (1-x)^b / B(a, b)`, is `1 / (a (1-x))`. All terms are positive; the last ratio is zero.
//! The ratios fall, so the sum after a term `t` and its ratio `r < 1` is at most `t r / (1 - r)`: a geometric series.
//!
//! **Rounding.** A ratio is off by less than `5u` of itself, `u = 2^-53`, a term by less than `6u` for each of its
//! factors, and the sum by `u` for each addition: less than `8u` a term, of the whole.

use super::Rough;
use super::kernel::Rate;

/// Terms are added by fours; after each four, the sum is tested.
const STRIDE: usize = 4;

/// More strides than it takes where a shape is below 50.
const MAX_STRIDES: u32 = 64;

/// The lower tail over the density, to about `width` of itself, on the near side of the mean; `None`, if that takes
/// very many terms.
#[inline]
pub(super) fn near_share(a: f64, b: f64, rate: &Rate, width: f64) -> Option<Rough> {
    let (x, y) = (rate.x.to_f64(), rate.y.to_f64());
    let odds = x / y;
    let (mut top, mut bottom) = (b - 1.0, a + 1.0);
    let (mut term, mut sum) = (1.0, 1.0);
    for stride in 1..=MAX_STRIDES {
        // Ratios after the last one, which is zero, do not count.
        let ratios: [f64; STRIDE] = std::array::from_fn(|k| (top - k as f64).max(0.0) / (bottom + k as f64) * odds);
        for ratio in ratios {
            term *= ratio;
            sum += term;
        }
        let last = ratios[STRIDE - 1];
        if term * last <= width * sum * (1.0 - last) {
            let beyond = if term == 0.0 { 0.0 } else { term * last / (1.0 - last) * 1.001 };
            let rounding = f64::from(stride) * ROUNDING * sum;
            let first = 1.0 / (a * y);
            let middle = (sum + 0.5 * beyond) * first;
            return Some(Rough { value: middle, error: (0.5 * beyond + rounding) * first * 1.001 });
        }
        top -= STRIDE as f64;
        bottom += STRIDE as f64;
    }
    None
}

/// `8u` for each of the terms of a stride, and as much again for the first and the last factor: `2^-47`.
const ROUNDING: f64 = 7.105_427_357_601_002e-15;
