//! `ln(x^a (1-x)^b / B(a, b))`, the basis of all computations about success rates.
//!
//! With `n = a + b`, Stirling's formula for the three Gamma functions in the Beta function gives
//!
//! ```text
//! a ln(x n / a) + b ln((1-x) n / b) + 1/2 ln(a b / (2 pi n)) + d(n) - d(a) - d(b)
//! ```
//!
//! where `d` is the remainder of that formula ([`stirling`](super::stirling)). The large parts, `n ln n` and so on,
//! have cancelled on paper: the first two terms add up to `-n` times a Kullback-Leibler divergence. As `x n - a` and
//! `(1-x) n - b` add up to zero, they are a sum of two [`deviances`](super::deviance), which have one sign, so no
//! further cancellation occurs: up to `2^14`, they are off by `70u < 2^-46` of themselves at most, and less than a
//! quarter of that near `a / n`; where they are larger, by no more than `2^-76 n`.
//!
//! Robbins' level is the same sum with another half logarithm ([`level`]); so are the Beta function and binomial
//! coefficients ([`ln_beta`], [`choose`]), which have no rate, and whose first two terms are double-double logarithms:
//! off by `2^-76` of `n`, so that the error is `2^-23` for `n = 2^53`, `2^-36` for `n = 10^12`, `2^-56` for `n = 10^6`.

use std::f64::consts::TAU;

use super::deviance::minus_deviances;
use super::exact::{split_exponent, two_sum};
use super::exp::exp;
use super::ln::{ln, ln_quotient, ln_scaled, ln_to_a_float};
use super::stirling::correction;
use super::{Ball, Dd, Rough};

/// A probability and its complement, both exact, each with its exponent split off so that neither underflows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    pub(crate) x: Scaled,
    pub(crate) y: Scaled,
    /// Whether `x` is not the larger of the two.
    pub(super) x_is_smaller: bool,
}

/// `m 2^e`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scaled {
    pub(crate) m: Dd,
    pub(crate) e: i32,
}

impl Scaled {
    fn new(x: f64) -> Self {
        let (m, e) = split_exponent(x);
        Scaled { m: m.into(), e }
    }

    /// The number as a float.
    pub(crate) fn to_f64(self) -> f64 {
        let half = self.e / 2;
        self.m.hi * super::exact::power_of_two(half) * super::exact::power_of_two(self.e - half)
    }
}

impl Rate {
    /// The rate `x`, strictly between 0 and 1. A sum of two floats is exact in two floats, so `1 - x` is.
    pub(crate) fn new(x: f64) -> Self {
        let (hi, lo) = two_sum(1.0, -x);
        Rate { x: Scaled::new(x), y: Scaled { m: Dd { hi, lo }, e: 0 }, x_is_smaller: x <= 0.5 }
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

/// `x^a (1-x)^b / B(a, b)` in three factors: `e^deviances e^corrections sqrt(square)`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kernel {
    deviances: Ball,
    /// `a (1-x) - b x = a - x (a + b)`: positive on the near side of the mean. Off by `2^-52` of itself and `2^-102` of
    /// the smaller expected count.
    pub(crate) lead: f64,
    corrections: Rough,
    /// Off by five roundings or fewer.
    square: f64,
}

/// The kernel, for shapes between `2^-40` and `2^53`.
#[inline(always)]
pub(crate) fn kernel(a: f64, b: f64, rate: &Rate) -> Kernel {
    let n = Dd::sum(a, b);
    let deviances = minus_deviances(a, b, n, rate);
    Kernel {
        deviances: deviances.minus,
        lead: deviances.lead,
        corrections: corrections(a, b, n),
        square: a * b / (TAU * n.hi),
    }
}

impl Kernel {
    /// The logarithm.
    #[inline]
    pub(crate) fn ln(&self) -> Ball {
        self.deviances + (half_ln(self.square) + self.corrections)
    }

    /// The logarithm of the kernel over a number, in one step.
    #[inline(always)]
    pub(crate) fn ln_over(&self, x: Rough) -> Ball {
        let ln = half_ln(self.square / (x.value * x.value));
        let off = Rough { value: 0.0, error: x.error / (x.value - x.error) * 1.001 };
        self.deviances + (ln + self.corrections + off)
    }

    /// The kernel itself, where that is not above `e^700`.
    #[inline(always)]
    pub(crate) fn value(&self) -> Rough {
        let root = self.square.sqrt();
        Rough { value: root, error: 3.0 * f64::EPSILON * root } * exp(self.deviances + self.corrections).into()
    }

    /// `a ln(a / (x n)) + b ln(b / ((1-x) n))`: `n` times the Kullback-Leibler divergence of `x` from `a / n`. Off by
    /// less than `70u` of itself up to `2^14`.
    #[inline(always)]
    pub(crate) fn divergence(&self) -> f64 {
        // A zero may come with either sign.
        (-self.deviances.mid.hi).max(0.0)
    }
}

/// `ln B(a, b)`, for shapes between `2^-40` and `2^53`.
pub(crate) fn ln_beta(a: f64, b: f64) -> Ball {
    let n = Dd::sum(a, b);
    -(logarithms(a, b, n) + rest(a, b, n, a * b / (TAU * n.hi)))
}

/// `ln C(s + f, s)`, for counts whose sum is at most `2^53`.
pub(crate) fn choose(s: f64, f: f64) -> Ball {
    if s == 0.0 || f == 0.0 {
        return Ball::ZERO;
    }
    let n = s + f;
    logarithms(s, f, n.into()) + rest(s, f, n.into(), n / (TAU * (s * f)))
}

/// Robbins' level `ln((n+1) C(n, s) x^s (1-x)^f)` with `n = s + f`, for counts whose sum is less than `2^53`.
#[inline]
pub(crate) fn level(s: f64, f: f64, rate: &Rate) -> Ball {
    let n = s + f;
    if n == 0.0 {
        return Ball::ZERO;
    }
    if s == 0.0 {
        return ln_scaled(rate.y.m.into(), rate.y.e) * f + ln((n + 1.0).into());
    }
    if f == 0.0 {
        return ln_scaled(rate.x.m.into(), rate.x.e) * s + ln((n + 1.0).into());
    }
    minus_deviances(s, f, n.into(), rate).minus + rest(s, f, n.into(), (n + 1.0) * (n + 1.0) * n / (TAU * (s * f)))
}

/// About `a ln(x n / a) + b ln((1-x) n / b)`: `-n` times the Kullback-Leibler divergence of `x` from `a / n`.
pub(crate) fn minus_divergence(a: f64, b: f64, rate: &Rate) -> f64 {
    minus_deviances(a, b, Dd::sum(a, b), rate).minus.mid.hi
}

/// `a ln(n / a) + b ln(n / b)`.
fn logarithms(a: f64, b: f64, n: Dd) -> Ball {
    let one = Dd::from(1.0);
    ln_quotient(one, n, a, 0) * a + ln_quotient(one, n, b, 0) * b
}

/// `d(n) - d(a) - d(b)` and half the logarithm of `square`.
#[inline(always)]
fn rest(a: f64, b: f64, n: Dd, square: f64) -> Rough {
    half_ln(square) + corrections(a, b, n)
}

/// `d(n) - d(a) - d(b)`.
#[inline(always)]
fn corrections(a: f64, b: f64, n: Dd) -> Rough {
    // In an order that makes exchanging `a` and `b` change no bit.
    correction(n) - (correction(a.into()) + correction(b.into()))
}

/// Half the logarithm of a number that results from at most eight roundings: each moves the result by up to `2^-54`.
#[inline(always)]
fn half_ln(x: f64) -> Rough {
    let ln = ln_to_a_float(x);
    Rough { value: 0.5 * ln.value, error: 0.5 * ln.error + 4.440_892_098_500_626e-16 }
}
