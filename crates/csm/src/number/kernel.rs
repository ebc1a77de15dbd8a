//! `ln(x^a (1-x)^b / B(a, b))`, on which everything about success rates leans.
//!
//! With `n = a + b`, Stirling's formula for the three Gamma functions in the Beta function gives
//!
//! ```text
//! a ln(x n / a) + b ln((1-x) n / b) + 1/2 ln(a b / (2 pi n)) + d(n) - d(a) - d(b)
//! ```
//!
//! where `d` is what that formula leaves out ([`stirling`](super::stirling)). The large parts, `n ln n` and so on,
//! have cancelled on paper: the first two terms add up to `-n` times a Kullback-Leibler divergence, and what is left
//! is small. Multiplying an argument of a logarithm by `1 + t` moves the result by about `a t`; as `t` is some
//! `2^-100` and `a` at most `2^53`, even then the error is no more than `2^-47`. The logarithm's own error, `2^-76`
//! at most for such arguments, gives `2^-23` for `a = 2^53`, `2^-36` for `a = 10^12`, and `2^-56` for `a = 10^6`.
//!
//! Binomial coefficients and Robbins' level are the same sum with another half logarithm ([`choose`], [`level`]).

use std::f64::consts::TAU;

use super::exact::{split_exponent, two_sum};
use super::ln::{ln, ln_quotient, ln_scaled, ln_to_a_float};
use super::stirling::correction;
use super::{Ball, Dd};

/// A probability and its complement, both exact, each with its exponent split off so that neither underflows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    pub(crate) x: Scaled,
    pub(crate) y: Scaled,
}

/// `m 2^e`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scaled {
    pub(crate) m: Dd,
    pub(crate) e: i32,
}

impl Scaled {
    const ONE: Scaled = Scaled { m: Dd { hi: 1.0, lo: 0.0 }, e: 0 };

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
    /// Not a rate: both factors are 1, which leaves the Beta function alone.
    const BOTH_ONE: Rate = Rate { x: Scaled::ONE, y: Scaled::ONE };

    /// The rate `x`, strictly between 0 and 1. A sum of two floats is exact in two floats, so `1 - x` is.
    pub(crate) fn new(x: f64) -> Self {
        let (hi, lo) = two_sum(1.0, -x);
        Rate { x: Scaled::new(x), y: Scaled { m: Dd { hi, lo }, e: 0 } }
    }

    /// The rate whose complement is `y`.
    pub(crate) fn complement_of(y: f64) -> Self {
        Rate::new(y).swap()
    }

    /// The other outcome's rate.
    pub(crate) fn swap(self) -> Self {
        Rate { x: self.y, y: self.x }
    }
}

/// `ln(x^a (1-x)^b / B(a, b))`, for shapes between `2^-40` and `2^53`.
pub(crate) fn kernel(a: f64, b: f64, rate: &Rate) -> Ball {
    let n = Dd::sum(a, b);
    weighed(a, b, n, rate, half_ln(a * b / (TAU * n.hi)))
}

/// `ln B(a, b)`, for shapes between `2^-40` and `2^53`.
pub(crate) fn ln_beta(a: f64, b: f64) -> Ball {
    -kernel(a, b, &Rate::BOTH_ONE)
}

/// `ln C(s + f, s)`, for counts whose sum is at most `2^53`.
pub(crate) fn choose(s: f64, f: f64) -> Ball {
    if s == 0.0 || f == 0.0 {
        return Ball::ZERO;
    }
    let n = s + f;
    weighed(s, f, n.into(), &Rate::BOTH_ONE, half_ln(n / (TAU * (s * f))))
}

/// Robbins' level `ln((n+1) C(n, s) x^s (1-x)^f)` with `n = s + f`, for counts whose sum is less than `2^53`.
pub(crate) fn level(s: f64, f: f64, rate: &Rate) -> Ball {
    let n = s + f;
    if s == 0.0 {
        return ln_scaled(rate.y.m.into(), rate.y.e) * f + ln((n + 1.0).into());
    }
    if f == 0.0 {
        return ln_scaled(rate.x.m.into(), rate.x.e) * s + ln((n + 1.0).into());
    }
    weighed(s, f, n.into(), rate, half_ln((n + 1.0) * (n + 1.0) * n / (TAU * (s * f))))
}

/// `a ln(x n / a) + b ln((1-x) n / b) + d(n) - d(a) - d(b) + rest`.
#[inline]
fn weighed(a: f64, b: f64, n: Dd, rate: &Rate, rest: Ball) -> Ball {
    let term = |weight: f64, part: Scaled| ln_quotient(part.m, n, weight, part.e) * weight;
    // In an order that makes exchanging `a` and `b` change no bit.
    let corrections = correction(n) - (correction(a.into()) + correction(b.into()));
    term(a, rate.x) + term(b, rate.y) + (rest + Ball::from(corrections))
}

/// Half the logarithm of a number that six roundings or fewer have led to: each moves the result by up to `2^-54`.
#[inline]
fn half_ln(x: f64) -> Ball {
    ln_to_a_float(x).scale(0.5).widen(4.440_892_098_500_626e-16)
}
