//! A tail of the Beta distribution as a perturbed tail of the normal distribution: Temme's uniform expansion, with a
//! proven error.
//!
//! Consider the density of the logarithm of the odds. At the distance `s` below `t = ln(x / (1-x))`, relative to the
//! density at `t`, it is `e^-h(s)` with a convex `h`. The lower tail divided by the density is `J`, the integral of
//! `e^-h(s)` from 0 to infinity. With `n = a + b`, the density is greatest at the rate `a/n`. Its decrease at any rate
//! `P` is measured by
//!
//! ```text
//! v^2 / 2 = a ln(a / (n P)) + b ln(b / (n (1-P)))
//! ```
//!
//! which is a divergence. At `x` it is `zeta^2 / 2`. On the near side of the mean, `v` goes from `zeta` to infinity,
//! and
//!
//! ```text
//! J = integral of e^((zeta^2 - v^2)/2) G(v / sigma) / sigma dv,   sigma^2 = a b / n
//! ```
//!
//! where `G` is the scaled derivative of the logarithm of the odds with respect to `v`. Let `V = v / sigma`, `w = a b /
//! n^2` and `g = (b - a) / n`, so `g^2 = 1 - 4 w`. Differentiation of the divergence yields an equation for `G` without
//! logarithms:
//!
//! ```text
//! V G' = F(G) = G (1 - G^2 + g V G + w V^2),   G(0) = 1
//! ```
//!
//! From this follow the [`COEFFICIENTS`] of the power series `G = 1 + c_1 V + c_2 V^2 + ...`, such as `c_1 = g/3`. The
//! first `N` terms are used. Integration term by term yields `J` as the sum of `c_j A_j / sigma` with
//!
//! ```text
//! A_0 = M(zeta),   A_1 = 1 / sigma,   A_(j+1) = (zeta^j / sigma^j) / sigma + (j / sigma^2) A_(j-1)
//! ```
//!
//! where `M` is [Mills' ratio](super::mills) and all terms are positive. (N. M. Temme, "Incomplete Laplace integrals",
//! 1987, and "Asymptotic inversion of the incomplete beta function", 1992; the coefficients there have removable
//! singularities.)
//!
//! **Truncation.** The polynomial `S` of the first `N` terms leaves a residual `V S' - F(S) = rho_N V^N + ...`, which
//! ends with `V^(3N-3)`. So the error `e = S - G` satisfies
//!
//! ```text
//! V e' = B e + rho,   B = 1 + w V^2 + g V X - 3/4 X^2 - 1/4 e^2 <= 1 + V^2/3   with X = S + G
//! ```
//!
//! (The quadratic in `X` is at most `g^2 V^2 / 3`, and `w + (1 - 4w)/3 <= 1/3`.) Because `e` vanishes like `V^N` at 0,
//! it is at most
//!
//! ```text
//! |e(V)| <= integral of |rho(s)|/s (V/s) e^((V^2 - s^2)/6) ds from 0 to V <= e^(V^2/6) sum of |rho_k| V^k / (k-1)
//! ```
//!
//! for **all** `V >= 0` and all shapes. Under the integral, the factor `e^(V^2/6)` widens the bell a little. Moments
//! grow with `zeta`, so for `k <= 3N - 3` and `sigma^2 >= N/2`, the moment of `v^k` grows by a factor of less than
//! `e^(zeta^2 / (6 sigma^2) + (k+1) / (6 sigma^2 - 2)) <= e^(D/6)`, with `D = (zeta^2 + 3N) / sigma^2`. The moments
//! `I_k = sigma^k A_k` are logarithmically convex (Cauchy and Schwarz), so `(I_(k+1) / I_k)^2 <= I_(k+2) / I_k = k + 1
//! + zeta^(k+1) / I_k <= k + 1 + zeta^2`, and therefore `A_k <= A_N D^((k-N)/2)`. Together:
//!
//! ```text
//! |error of J| <= K A_N / sigma,   K = e^(D/6) sum of |rho_k| D^((k-N)/2) / (k-1)
//! ```
//!
//! A test derives the coefficients of `S` and of the residual in exact rational numbers. It bounds those of the
//! residual for all `w` from 0 to 1/4, and checks that `K` does not exceed [`REMAINDER`].
//!
//! **Rounding**, in relative errors with `u = 2^-53`. A moment `A_j` is the average of `((zeta + y) / sigma)^j` over a
//! bell in `y`, so the errors of `sigma` and `zeta` enter at most `j` times, and that of `zeta` at least once. The
//! error of `zeta` is at most `20u`, because that of the divergence is at most `33u`; the error of `1/sigma` is at most
//! `4u`. With `A_j <= A_0 D^(j/2)` and `D <= 2.25`, the sum of `j |c_j A_j|` is less than `4 A_0`, so these errors add
//! up to less than `(1 + 4) 20u + 4 4u = 116u` of `A_0`. The error of Mills' ratio, which is multiplied by less than
//! 1.01, is less than `60u`. The absolute values of the terms add up to less than `3 A_0`, and each term takes fewer
//! than 20 roundings. The total is less than `240u` of `A_0`. `A_0` is at most 3 times the sum, so the relative error
//! of the sum is less than `720u`.

use super::Ball;
use super::mills::mills;

/// Half of the number `N` of terms.
const PAIRS: usize = 6;

/// The smallest `sigma^2` for which the expansion is used. It is at least half the number of terms.
const MIN_VARIANCE: f64 = 24.0;

/// The largest `D` for which the expansion is used.
const MAX_SPREAD: f64 = 2.25;

/// A bound on `K` for `D` up to [`MAX_SPREAD`].
const REMAINDER: f64 = 6.8e-8;

/// `2^-43 = 1024u`.
const ROUNDING: f64 = 1.136_868_377_216_160_3e-13;

/// The coefficients `[c_(2k+2), c_(2k+1) / g]` for `k = 0, 1, ...`, as polynomials in `w`, constants first. The last
/// even coefficient, `c_12`, is not used.
#[rustfmt::skip]
const COEFFICIENTS: [[[f64; 2]; 6]; PAIRS] = [
    [
        [0.08333333333333333, 0.3333333333333333], [-0.08333333333333333, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0],
        [0.0, 0.0],
    ],
    [
        [0.0011574074074074073, 0.014814814814814815], [-0.0023148148148148147, 0.007407407407407408],
        [0.0011574074074074073, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0],
    ],
    [
        [-0.0001787551440329218, -0.0003527336860670194], [0.0005362654320987655, 0.0001763668430335097],
        [1.9290123456790123e-5, 0.0001763668430335097], [0.0001787551440329218, 0.0], [0.0, 0.0], [0.0, 0.0],
    ],
    [
        [-2.185448510679992e-6, -3.919263178522438e-5], [8.741794042719968e-6, 5.878894767783657e-5],
        [-6.4989344503233396e-6, 0.0], [2.1280374289633547e-6, -1.959631589261219e-5], [-2.185448510679992e-6, 0.0],
        [0.0, 0.0],
    ],
    [
        [8.296711340953087e-7, 1.85406221071516e-6], [-4.148355670476543e-6, -4.6351555267879e-6],
        [4.128120036118395e-6, 2.8701674792209774e-7], [4.047126871629615e-8, -3.2000717871774115e-7],
        [-2.0235634358148075e-8, -9.2703110535758e-7], [-8.296711340953087e-7, 0.0],
    ],
    [
        [0.0, 1.7665952736826078e-7], [0.0, -6.183083457889128e-7], [0.0, 3.466871322381153e-7],
        [0.0, 3.3159612492031333e-9], [0.0, 3.3159612492031333e-9], [0.0, 8.832976368413039e-8],
    ],
];

/// The lower tail divided by the density, for a rate on the near side of the mean. `divergence` is `zeta^2 / 2`, the
/// divergence of the rate from `a / (a + b)`. The result is `None` unless the relative error is proven to be at most
/// `most`; such a proof never exists for a `most` below `2^-43`.
#[inline]
pub(super) fn near_share(a: f64, b: f64, divergence: f64, most: f64) -> Option<Ball> {
    let one_over_n = 1.0 / (a + b);
    let q = b * one_over_n;
    let variance = a * q;
    if variance < MIN_VARIANCE || 2.0 * divergence + (6 * PAIRS) as f64 > MAX_SPREAD * variance {
        return None;
    }
    let (w, g) = (a * one_over_n * q, (b - a) * one_over_n);
    let precision = 1.0 / variance.sqrt();
    let per_variance = precision * precision;
    let zeta = (2.0 * divergence).sqrt();
    let ratio = zeta * precision;
    let mills = mills(zeta);
    let coefficients = COEFFICIENTS
        .map(|row| row.iter().rev().fold([0.0; 2], |sum, coefficient| [0, 1].map(|i| sum[i] * w + coefficient[i])));
    // `moments` has A_(2k+2) without its multiple of A_0, in units of zeta / sigma^2, and A_(2k+1), in units of 1 /
    // sigma. `sums` has the sums of both, each moment times its coefficient.
    let (mut power, mut moments, mut sums) = (1.0, [1.0; 2], coefficients[0]);
    // The multiple of A_0 in A_(2k+2), and the sum of these multiples, each times its coefficient.
    let (mut multiple, mut multiples) = (1.0, 1.0);
    for k in 1..PAIRS {
        let steps = [(2 * k + 1) as f64 * per_variance, (2 * k) as f64 * per_variance];
        multiple *= (2 * k - 1) as f64 * per_variance;
        multiples += coefficients[k - 1][0] * multiple;
        power *= ratio * ratio;
        moments = [0, 1].map(|i| power + steps[i] * moments[i]);
        sums = [0, 1].map(|i| sums[i] + coefficients[k][i] * moments[i]);
    }
    let rest = ratio * precision;
    let sum = multiples * mills + (rest * sums[0] + g * precision * sums[1]);
    let beyond = (2 * PAIRS - 1) as f64 * per_variance * multiple * mills + rest * moments[0];
    let error = REMAINDER * beyond + ROUNDING * sum;
    (error <= most * sum).then(|| Ball::new(sum * precision, 0.0, error * precision * 1.001))
}

#[cfg(test)]
mod tests {
    use millstream_verify_random::cases;
    use num_rational::BigRational;
    use num_traits::{One, Signed, ToPrimitive, Zero};
    use proptest::prelude::*;

    use super::super::fraction::{Fraction, NARROW};
    use super::super::kernel::{Rate, kernel};
    use super::*;
    use crate::exactly::rational::of;

    /// A polynomial in `w`.
    type Polynomial = Vec<BigRational>;

    /// A power series in `V`. Odd coefficients are stored without their factor `g`.
    type Series = Vec<Polynomial>;

    fn add(sum: &mut Polynomial, other: &[BigRational], factor: &BigRational) {
        sum.resize(sum.len().max(other.len()), BigRational::zero());
        sum.iter_mut().zip(other).for_each(|(x, y)| *x += y * factor);
    }

    fn times(one: &[BigRational], other: &[BigRational]) -> Polynomial {
        let mut product = vec![BigRational::zero(); (one.len() + other.len()).saturating_sub(1)];
        for (i, x) in one.iter().enumerate() {
            for (j, y) in other.iter().enumerate() {
                product[i + j] += x * y;
            }
        }
        product
    }

    /// The coefficient `c_j d_k`. If both are odd, their two factors `g` become `1 - 4 w`.
    fn term(one: (usize, &Polynomial), other: (usize, &Polynomial)) -> Polynomial {
        let product = times(one.1, other.1);
        if one.0 % 2 == 1 && other.0 % 2 == 1 { times(&product, &[of(1.0), of(-4.0)]) } else { product }
    }

    fn product(one: &Series, other: &Series, terms: usize) -> Series {
        let mut product = vec![Polynomial::new(); terms];
        for (j, c) in one.iter().enumerate() {
            for (k, d) in other.iter().enumerate().take(terms.saturating_sub(j)) {
                add(&mut product[j + k], &term((j, c), (k, d)), &BigRational::one());
            }
        }
        product
    }

    /// The coefficients of `F(G) = G - G^3 + g V G^2 + w V^2 G`.
    fn right_side(series: &Series, terms: usize) -> Series {
        let square = product(series, series, terms);
        let cube = product(&square, series, terms);
        let g = (1, &vec![BigRational::one()]);
        (0..terms)
            .map(|k| {
                let mut sum = series.get(k).cloned().unwrap_or_default();
                add(&mut sum, &cube[k], &of(-1.0));
                if k >= 1 {
                    add(&mut sum, &term(g, (k - 1, &square[k - 1])), &of(1.0));
                }
                if let Some(before) = k.checked_sub(2).and_then(|k| series.get(k)) {
                    add(&mut sum, &times(before, &[of(0.0), of(1.0)]), &of(1.0));
                }
                sum
            })
            .collect()
    }

    /// The first terms of `G`. In the equation, the unknown `c_j` has the factor `j` on the left and `1 - 3` on the
    /// right.
    fn solution(terms: usize) -> Series {
        let mut series = vec![vec![BigRational::one()]];
        for j in 1..terms {
            let known = right_side(&series, j + 1).pop().expect("a term for each power");
            series.push(known.iter().map(|x| x / of((j + 2) as f64)).collect());
        }
        series
    }

    /// A bound on the polynomial's absolute value from 0 to 1/4: the largest absolute value of its coefficients in the
    /// Bernstein basis.
    fn greatest(polynomial: &[BigRational]) -> BigRational {
        let degree = polynomial.len().saturating_sub(1);
        let choose = |n: usize, k: usize| (0..k).fold(of(1.0), |c, i| c * of((n - i) as f64) / of((i + 1) as f64));
        (0..=degree)
            .map(|i| {
                let part = |k: usize| choose(i, k) / choose(degree, k) * &polynomial[k] * of(4f64.powi(-(k as i32)));
                (0..=i).map(part).sum::<BigRational>().abs()
            })
            .fold(BigRational::zero(), |most, x| if x > most { x } else { most })
    }

    /// The coefficient of `w^k V^j` in the table.
    fn coefficient(j: usize, k: usize) -> f64 {
        match j {
            0 => f64::from(u8::from(k == 0)),
            _ => COEFFICIENTS[(j - 1) / 2][k][j % 2],
        }
    }

    #[test]
    fn the_coefficients_are_those_of_the_solution() {
        for (j, exact) in solution(2 * PAIRS).iter().enumerate() {
            for (k, found) in (0..6).map(|k| (k, coefficient(j, k))) {
                let truth = exact.get(k).cloned().unwrap_or_else(BigRational::zero);
                let off = (of(found) - &truth).abs();
                assert!(off <= truth.abs() * of(f64::EPSILON / 2.0), "w^{k} V^{j}: {found:e}");
            }
        }
    }

    #[test]
    fn the_remainder_is_no_greater_than_claimed() {
        let terms = 2 * PAIRS;
        let series = solution(terms);
        let root = of(MAX_SPREAD.sqrt());
        assert!(MAX_SPREAD.sqrt() * MAX_SPREAD.sqrt() == MAX_SPREAD && MIN_VARIANCE >= PAIRS as f64);
        let mut sum = BigRational::zero();
        let mut power = BigRational::one();
        for (k, right) in right_side(&series, 3 * terms).iter().enumerate() {
            let mut residual = series.get(k).cloned().unwrap_or_default();
            residual.iter_mut().for_each(|x| *x *= of(k as f64));
            add(&mut residual, right, &of(-1.0));
            let size = greatest(&residual);
            assert!((terms..=3 * terms - 3).contains(&k) || size.is_zero(), "V^{k}");
            if k >= terms {
                sum += size * &power / of((k - 1) as f64);
                power *= &root;
            }
        }
        let proven = sum.to_f64().expect("a moderate number") * (MAX_SPREAD / 6.0).exp();
        assert!(proven < REMAINDER && REMAINDER < 1.1 * proven, "{proven:e}");
    }

    #[test]
    fn unproven_cases_give_no_result() {
        // For these arguments the expansion is not used at any requested error: the rate is too far from the mean, or a
        // shape is too small.
        assert!(near_share(40.0, 1e6, 20.0, f64::MAX).is_some());
        assert!(near_share(40.0, 1e6, 50.0, f64::MAX).is_none());
        assert!(near_share(23.0, 1e6, 0.0, f64::MAX).is_none());
    }

    proptest! {
        #![proptest_config(cases(256))]

        /// The expansion and the fraction enclose the same tail, as narrowly as requested.
        #[test]
        fn the_fraction_agrees(
            a in 3.0f64..40.0, b in 3.0f64..40.0, deviations in 0.0f64..9.0, near in any::<bool>(), digits in 20i32..42
        ) {
            let (a, b) = (a.exp2(), b.exp2());
            let deviations = if near { deviations / 100.0 } else { deviations };
            let x = a / (a + b) * (1.0 - deviations * (b / (a * (a + b))).sqrt());
            let rate = if x < 0.5 { Rate::new(x.max(1e-9)) } else {
                Rate::complement_of((b / (a + b)) * (1.0 + deviations * (a / (b * (a + b))).sqrt()))
            };
            let width = 2f64.powi(-digits);
            let kernel = kernel(a, b, &rate);
            prop_assume!(kernel.lead >= 0.0);
            let Some(found) = near_share(a, b, kernel.divergence, width) else { return Ok(()) };
            prop_assert!(found.radius <= 1.01 * width * found.mid.hi, "{:?} is wide", found);
            let fraction = Fraction { a, b, x: rate.x.hi, lead: kernel.lead }.enclose_to(NARROW);
            let (lower, upper) = (fraction.lower / a * (1.0 - 1e-15), fraction.upper / a * (1.0 + 1e-15));
            prop_assert!(found.lower() <= upper && lower <= found.upper(), "{:?} and {:?}", found, fraction);
        }
    }
}
