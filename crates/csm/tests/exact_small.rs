//! Comparison with exact integers, for all numbers of trials up to 60.

mod exact {
    pub(crate) mod binomial;
    pub(crate) mod ln;
    pub(crate) mod rational;
    pub(crate) mod size;
}

use exact::binomial::{dyadic, pascal};
use exact::ln::ln;
use exact::rational::{of, power};
use exact::size::at_least_one;
use millstream_csm::{Side, beta_bound, log_choose, robbins};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::One;

const MAX_N: u32 = 60;

const RATES: [f64; 8] = [0.5, 0.98, 1.0 / 3.0, 0.01, 0.999_999, 1e-300, 5e-324, 1.0 - f64::EPSILON / 2.0];

/// Asserts that `bound` is at least `truth`, and only slightly above it.
#[track_caller]
fn check_above(name: &str, bound: &BigRational, truth: &(BigRational, BigRational)) {
    assert!(*bound >= truth.1, "{name}: below the truth");
    // The margin is a thirtieth of the documented one.
    assert!(*bound <= &truth.0 + power(2, -45) * at_least_one(&truth.0), "{name}: too far above the truth");
}

#[test]
fn every_coefficient_is_enclosed() {
    for n in 0..=MAX_N {
        for (k, coefficient) in pascal(n).iter().enumerate() {
            let truth = ln(coefficient, &BigInt::one());
            let bounds = log_choose(n.into(), k as u64).expect("a valid question");
            if coefficient.is_one() {
                assert_eq!((bounds.low, bounds.high), (0.0, 0.0), "C({n}, {k})");
            } else {
                check_above(&format!("C({n}, {k})"), &of(bounds.high), &truth);
                check_above(&format!("-C({n}, {k})"), &-of(bounds.low), &(-truth.1, -truth.0));
            }
        }
    }
}

#[test]
fn every_level_is_above_the_truth() {
    for alpha in RATES {
        let (p, bits) = dyadic(alpha);
        let q = (BigInt::one() << bits) - &p;
        for n in 0..=MAX_N {
            for (s, coefficient) in pascal(n).iter().enumerate() {
                let likelihood = coefficient * (n + 1) * p.pow(s as u32) * q.pow(n - s as u32);
                let truth = ln(&likelihood, &(BigInt::one() << (bits * n)));
                let level = robbins::stop(n.into(), alpha, s as u64, -1.0).expect("a valid question").level;
                if likelihood == BigInt::one() << (bits * n) {
                    assert!((0.0..1e-14).contains(&level), "{s} of {n} at {alpha:e}: {level:e}");
                } else {
                    check_above(&format!("{s} of {n} at {alpha:e}"), &of(level), &truth);
                }
            }
        }
    }
}

/// `P(at least a of n)` at the rate `x / 2^bits`, times `2^(bits n)`.
fn at_least(a: u32, coefficients: &[BigInt], x: &BigInt, bits: u32) -> BigInt {
    let n = coefficients.len() as u32 - 1;
    let y = (BigInt::one() << bits) - x;
    // Sums from the highest power of x down, with ascending powers of y.
    let (mut sum, mut y_power) = (BigInt::ZERO, BigInt::one());
    for j in (a..=n).rev() {
        sum += &coefficients[j as usize] * x.pow(j) * &y_power;
        y_power *= &y;
    }
    sum
}

/// Whether `I_x(a, b) <= eps`, exactly.
fn is_low(a: u32, coefficients: &[BigInt], x: &(BigInt, u32), eps: f64) -> bool {
    let n = coefficients.len() as u32 - 1;
    let (eps, eps_bits) = dyadic(eps);
    at_least(a, coefficients, &x.0, x.1) << eps_bits <= eps << (x.1 * n)
}

/// `1 - x`, exactly.
fn one_minus(x: &(BigInt, u32)) -> (BigInt, u32) {
    ((BigInt::one() << x.1) - &x.0, x.1)
}

#[test]
fn every_beta_bound_is_safe_and_near() {
    let errors = [0.05, 1e-3, 1e-9, 0.4, 0.5, 0.6, 0.999, 1e-100];
    for n in 1..=MAX_N {
        let coefficients = pascal(n);
        for a in 1..=n {
            let b = n + 1 - a;
            // Each pair of shapes is tested with two errors.
            for turn in 0..2 {
                let eps = errors[(a + 3 * b + turn) as usize % errors.len()];
                let name = format!("Beta({a}, {b}) at {eps:e}");
                let low = beta_bound(a.into(), b.into(), eps, Side::Low).expect("a valid question");
                let (bound, complement) = (dyadic(low.bound), dyadic(low.complement));
                assert!(is_low(a, &coefficients, &bound, eps), "{name}: {low:?} is above");
                assert!(
                    is_low(a, &coefficients, &one_minus(&complement), eps),
                    "{name}: {low:?}'s complement is below"
                );
                let farther = dyadic(low.bound * (1.0 + 1e-12));
                assert!(!is_low(a, &coefficients, &farther, eps), "{name}: {low:?} is far");
                let farther = one_minus(&dyadic(low.complement * (1.0 - 1e-12)));
                assert!(!is_low(a, &coefficients, &farther, eps), "{name}: {low:?}'s complement is far");
            }
        }
    }
}
