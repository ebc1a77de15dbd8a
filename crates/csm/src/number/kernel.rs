//! The kernel `ln(x^a (1-x)^b / B(a, b))`, the basis of all computations about success rates.
//!
//! With `n = a + b`, Stirling's formula for the three Gamma functions in the Beta function yields
//!
//! ```text
//! a ln(x n / a) + b ln((1-x) n / b) + 1/2 ln(a b / (2 pi n)) + d(n) - d(a) - d(b)
//! ```
//!
//! where `d` is the remainder of the formula ([`stirling`](super::stirling)). The large parts, `n ln n` and so on,
//! cancel in the formula itself. The first two terms add up to `-n` times a Kullback-Leibler divergence. Because `x n -
//! a` and `(1-x) n - b` add up to zero, the two terms equal minus the sum of two [`deviances`](super::deviance). Both
//! deviances have the same sign, so there is no further cancellation, and the relative error is `33u < 2^-47`.
//!
//! Robbins' level is the same sum with a different half logarithm ([`level`]). At `x = a / n` the deviances are zero,
//! and the sum yields the Beta function ([`ln_beta`]), from which a binomial coefficient follows ([`choose`]).

use std::f64::consts::TAU;

use super::deviance::{Deviances, minus_deviances};
use super::exact::two_sum;
use super::ln::ln;
use super::stirling::correction;
use super::{Ball, Dd};

/// A probability and its complement, both exact.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    pub(crate) x: Dd,
    pub(crate) y: Dd,
    /// Whether `x` is at most its complement.
    pub(super) x_is_smaller: bool,
}

impl Rate {
    /// The rate `x`, strictly between 0 and 1. `1 - x` is exact as a sum of two floats.
    pub(crate) fn new(x: f64) -> Self {
        let (hi, lo) = two_sum(1.0, -x);
        Rate { x: x.into(), y: Dd { hi, lo }, x_is_smaller: x <= 0.5 }
    }

    /// The rate whose complement is `y`.
    pub(crate) fn complement_of(y: f64) -> Self {
        Rate::new(y).swap()
    }

    /// The rate of the other outcome.
    pub(crate) fn swap(self) -> Self {
        Rate { x: self.y, y: self.x, x_is_smaller: !self.x_is_smaller }
    }
}

/// The kernel, and the parts of it that are also used on their own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kernel {
    pub(crate) ln: Ball,
    /// `a (1-x) - b x = a - x (a + b)`: positive on the near side of the mean. The error is at most `2^-52` of the
    /// value plus `2^-102` of the smaller expected count.
    pub(crate) lead: f64,
    /// `a ln(a / (x n)) + b ln(b / ((1-x) n))`: `n` times the Kullback-Leibler divergence of `x` from `a / n`. The
    /// relative error is less than `33u`.
    pub(crate) divergence: f64,
}

/// The kernel, for shapes between `2^-40` and `2^53`.
#[inline]
pub(crate) fn kernel(a: f64, b: f64, rate: &Rate) -> Kernel {
    let Deviances { minus, lead } = minus_deviances(a, b, rate);
    let ln = minus + half_ln(a * b / (TAU * (a + b))) + corrections(a, b);
    // `max` turns a negative zero into a positive one.
    Kernel { ln, lead, divergence: (-minus.mid.hi).max(0.0) }
}

/// `ln B(a, b)`, for shapes between `2^-40` and `2^53`.
pub(crate) fn ln_beta(a: f64, b: f64) -> Ball {
    // The computation starts from the smaller shape, so that the result is bitwise the same if the shapes are
    // exchanged.
    let rate = if a <= b { Rate::new(a / (a + b)) } else { Rate::complement_of(b / (a + b)) };
    ln(rate.x.into()) * a + ln(rate.y.into()) * b - kernel(a, b, &rate).ln
}

/// `ln C(s + f, s)`, for counts whose sum is less than `2^53`: `B(s + 1, f + 1) = 1 / ((n + 1) C(n, s))`.
pub(crate) fn choose(s: f64, f: f64) -> Ball {
    if s == 0.0 || f == 0.0 {
        return Ball::ZERO;
    }
    -(ln_beta(s + 1.0, f + 1.0) + ln((s + f + 1.0).into()))
}

/// Robbins' level `ln((n+1) C(n, s) x^s (1-x)^f)` with `n = s + f`, for counts whose sum is less than `2^53`.
#[inline]
pub(crate) fn level(s: f64, f: f64, rate: &Rate) -> Ball {
    let n = s + f;
    if s == 0.0 || f == 0.0 {
        let part = if s == 0.0 { rate.y } else { rate.x };
        return ln(part.into()) * n + ln((n + 1.0).into());
    }
    minus_deviances(s, f, rate).minus + half_ln((n + 1.0) * (n + 1.0) * n / (TAU * (s * f))) + corrections(s, f)
}

/// `d(n) - d(a) - d(b)` for `n = a + b`.
#[inline(always)]
fn corrections(a: f64, b: f64) -> Ball {
    // In this order of operations, the result is bitwise the same if `a` and `b` are exchanged.
    correction(Dd::sum(a, b)) - (correction(a.into()) + correction(b.into()))
}

/// Half the logarithm of a number that results from at most eight roundings. Each rounding changes the result by up to
/// `2^-54`.
#[inline(always)]
fn half_ln(x: f64) -> Ball {
    ln(x.into()).scale(0.5).widen(2.0 * f64::EPSILON)
}
