//! Mills' ratio: the upper tail of a normal distribution divided by its density.
//!
//! ```text
//! M(z) = e^(z^2/2) times the integral of e^(-v^2/2) from z on
//! ```
//!
//! With `r = 6 / (z + 6)`, which goes from 1 to 0 as `z` goes from 0 to infinity, `M` is approximately `r P(t)` for a
//! polynomial `P` in `t = 2 r - 1`.
//!
//! **Error.** `M` is the bounded solution of `M' = z M - 1`. An approximation `A` leaves a residual `R = A' - z A + 1`,
//! so the difference `E = A - M` satisfies `E' = z E + R`. Because `E` is bounded, too,
//!
//! ```text
//! E(z) = -e^(z^2/2) times the integral of e^(-v^2/2) R(v) from z on,   |E(z)| <= M(z) sup |R|
//! ```
//!
//! So the greatest residual is a bound on the **relative** error, for all `z`. `z` and `r'` are rational in `r`, so the
//! residual is a polynomial in `t`, whose coefficients follow exactly from those of `P`. The sum of the absolute values
//! of its coefficients in the Chebyshev basis bounds the residual. A test computes that this sum is less than `2^-50`.
//!
//! **Rounding**, with `u = 2^-53`. In Horner's form the relative error of the term with `t^k` is at most `(2k + 2) u`,
//! which for `z <= 10` adds up to `6u` of the sum. The error of `t` is `4u` of `r / 2`, which changes the sum by up to
//! `8u` of its value. Three further roundings follow. The total is less than `20u`. For larger `z`, where `P` falls to
//! a sixth, the total is less than `52u`.

/// `P`, from the constant on.
#[rustfmt::skip]
const COEFFICIENTS: [f64; 24] = [
    0.3247553217937349, 0.2928615090573506, 0.23769891860140155, 0.17291707184603544,
    0.11195197024989122, 0.06378543111190832, 0.031404674879799685, 0.012944777988007165,
    0.0041901719937966235, 0.0008905236799214929, 1.3732190715428813e-05, -7.576735807097085e-05,
    -2.7051638635254803e-05, -4.488051127014247e-07, 2.8394698292327547e-06, 7.507328963384781e-07,
    -1.794408490895706e-07, -1.2826570576714973e-07, 2.8606902515596797e-09, 1.7144519889199668e-08,
    1.1813290669490401e-09, -1.949515264835733e-09, -1.5062016437827911e-10, 1.4218224327761983e-10,
];

/// `M(z)` for `z >= 0`. The relative error is less than `2^-47`, and less than `2^-48` for `z <= 10`.
#[inline(always)]
pub(super) fn mills(z: f64) -> f64 {
    let r = 6.0 / (z + 6.0);
    let t = r + r - 1.0;
    r * COEFFICIENTS.iter().rev().fold(0.0, |sum, coefficient| sum * t + coefficient)
}

#[cfg(test)]
mod tests {
    use num_rational::BigRational;
    use num_traits::{One, Signed, Zero};

    use super::*;
    use crate::exactly::rational::{of, power};

    type Polynomial = Vec<BigRational>;

    fn times(one: &[BigRational], other: &[BigRational]) -> Polynomial {
        let mut product = vec![BigRational::zero(); one.len() + other.len() - 1];
        for (i, x) in one.iter().enumerate() {
            for (j, y) in other.iter().enumerate() {
                product[i + j] += x * y;
            }
        }
        product
    }

    fn plus(one: &[BigRational], other: &[BigRational]) -> Polynomial {
        let at = |p: &[BigRational], k: usize| p.get(k).cloned().unwrap_or_else(BigRational::zero);
        (0..one.len().max(other.len())).map(|k| at(one, k) + at(other, k)).collect()
    }

    /// The sum of the absolute values of the coefficients in the Chebyshev basis: a bound on the polynomial on `[-1,
    /// 1]`.
    fn size(polynomial: &[BigRational]) -> BigRational {
        let half = of(0.5);
        let mut found = vec![BigRational::zero(); polynomial.len() + 1];
        for coefficient in polynomial.iter().rev() {
            // t T_0 = T_1, t T_k = (T_(k-1) + T_(k+1)) / 2
            let mut next = vec![BigRational::zero(); found.len() + 1];
            for (k, x) in found.iter().enumerate() {
                if k == 0 {
                    next[1] += x;
                } else {
                    next[k - 1] += x * &half;
                    next[k + 1] += x * &half;
                }
            }
            next[0] += coefficient;
            next.truncate(polynomial.len() + 1);
            found = next;
        }
        found.iter().map(Signed::abs).sum()
    }

    #[test]
    fn the_greatest_residual_is_tiny() {
        let p: Polynomial = COEFFICIENTS.map(of).into();
        let slope: Polynomial = p.iter().enumerate().skip(1).map(|(k, c)| c * of(k as f64)).collect();
        // z = 6 (1 - r) / r and dr/dz = -r^2 / 6, so R = -r^2/6 d(r P)/dr - 6 (1 - r) P + 1, where d/dr = 2 d/dt.
        let r = [of(0.5), of(0.5)];
        let whole_slope = plus(&p, &times(&r, &slope).iter().map(|c| c * of(2.0)).collect::<Vec<_>>());
        let first = times(&times(&r, &r), &whole_slope).iter().map(|c| -c / of(6.0)).collect::<Vec<_>>();
        let second = times(&[of(-3.0), of(3.0)], &p);
        let residual = plus(&plus(&first, &second), &[BigRational::one()]);
        assert!(size(&residual) < power(2, -50));
    }

    #[test]
    fn the_ratio_begins_at_the_root_of_half_pi_and_ends_as_a_reciprocal() {
        assert!((mills(0.0) - (std::f64::consts::PI / 2.0).sqrt()).abs() < 1e-15);
        for z in [1e3, 1e9, 1e200] {
            assert!((mills(z) * z - 1.0).abs() <= 1.0 / (z * z) + 1e-14, "{z}");
        }
    }

    /// Laplace's continued fraction `1/(z + 1/(z + 2/(z + 3/(z + ...))))`, whose successive convergents enclose the
    /// ratio.
    #[test]
    fn continued_fractions_enclose_it() {
        for step in 8..200 {
            let z = f64::from(step) * 0.25;
            let fraction = |terms: u32| (1..=terms).rev().fold(z, |tail, k| z + f64::from(k) / tail).recip();
            let (one, other) = (fraction(400), fraction(401));
            let room = 1.5e-14;
            let (least, greatest) = (one.min(other) * (1.0 - room), one.max(other) * (1.0 + room));
            assert!((least..=greatest).contains(&mills(z)), "{z}: {} and {one}, {other}", mills(z));
        }
    }
}
