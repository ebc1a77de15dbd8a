//! Both tails of the Beta distribution, as logarithms.

use super::Ball;
use super::exp::exp;
use super::fraction::{Fraction, NARROW, lead};
use super::kernel::{Rate, kernel};
use super::ln::{ln, ln_1p};
use super::quadrature::Quadrature;

/// How many steps of the fraction [`ln_upper_tail`] begins with.
const FEW_STEPS: u32 = 6;

/// Lower tails above this, about, take more steps.
const A_LITTLE: f64 = 1e-6;

/// `ln I_x(a, b)`, `ln(1 - I_x(a, b))`, and how fast they move.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tails {
    /// `ln I_x(a, b)`, the probability to be below `x`.
    pub(crate) lower: Ball,
    /// `ln(1 - I_x(a, b))`, the probability to be above.
    pub(crate) upper: Ball,
    /// `ln(x (1-x) f(x))` with the density `f`: the slope of `I_x` in `ln(x / (1-x))`.
    pub(crate) density: Ball,
}

/// Both tails at `rate`, for shapes between `2^-30` and `2^53`.
pub(crate) fn tails(a: f64, b: f64, rate: &Rate) -> Tails {
    let density = kernel(a, b, rate);
    if below_center(a, b, rate) {
        let share = near_share(a, b, rate);
        Tails { lower: density + ln(share), upper: ln_1m(exp(density) * share), density }
    } else {
        let share = near_share(b, a, &rate.swap());
        Tails { lower: ln_1m(exp(density) * share), upper: density + ln(share), density }
    }
}

/// `ln(1 - I_x(a, b))` alone, with [`Tails::density`] given: quickly, if there is little below `x`.
pub(crate) fn ln_upper_tail(a: f64, b: f64, rate: &Rate, density: Ball) -> Ball {
    if !below_center(a, b, rate) {
        return density + ln(near_share(b, a, &rate.swap()));
    }
    let density = exp(density);
    ln_1m(density * few_steps(a, b, rate, density).unwrap_or_else(|| near_share(a, b, rate)))
}

/// [`near_share`] from a few steps of the fraction, where they are enough to tell a little from nothing.
fn few_steps(a: f64, b: f64, rate: &Rate, density: Ball) -> Option<Ball> {
    // Far from the mean the share is about one over the lead: this spares steps that would be in vain.
    if density.mid.hi > A_LITTLE * lead(a, b, rate) {
        return None;
    }
    let found = Fraction::new(a, b, rate).enclose(FEW_STEPS);
    let share = Ball::between(found.lower, found.upper.min(f64::MAX)) / a;
    (density.upper() * share.radius <= NARROW).then_some(share)
}

/// Whether the lower tail is the one that the fraction gives quickly. That is so below the mean; but when the
/// upper tail is within a shape below 1 of the end, its fraction, there a power series, is the quick one.
fn below_center(a: f64, b: f64, rate: &Rate) -> bool {
    let n = a + b;
    if n < 2.0 {
        return rate.x.to_f64() <= 0.5;
    }
    let in_corner = |shape: f64, x: f64| shape < 1.0 && x * n < 1.0;
    if in_corner(a, rate.x.to_f64()) || in_corner(b, rate.y.to_f64()) {
        return in_corner(a, rate.x.to_f64());
    }
    lead(a, b, rate) >= 0.0
}

/// `I_x(a, b)` over `e^`[`density`](Tails::density), for `x` on the side where that is not the larger tail.
fn near_share(a: f64, b: f64, rate: &Rate) -> Ball {
    if let Some(quadrature) = Quadrature::new(a, b, rate) {
        let found = quadrature.enclose();
        return Ball::between(found.lower, found.upper);
    }
    let found = Fraction::new(a, b, rate).enclose_to(NARROW);
    Ball::between(found.lower, found.upper) / a
}

/// `ln(1 - x)` for `x` from 0 to below 1.
fn ln_1m(x: Ball) -> Ball {
    ln_1p(-x)
}

#[cfg(test)]
mod tests {
    use num_bigint::BigInt;
    use num_rational::BigRational;
    use num_traits::One;
    use proptest::prelude::*;

    use super::super::exactly::binomial::{dyadic, pascal};
    use super::super::exactly::ln as exactly;
    use super::super::exactly::rational::of;
    use super::*;

    fn overlap(one: Ball, other: Ball) -> bool {
        one.lower() <= other.upper() && other.lower() <= one.upper()
    }

    fn assert_covers(ball: Ball, numerator: &BigInt, denominator: &BigInt, name: &str) {
        let (least, greatest) = exactly::ln(numerator, denominator);
        assert!(of(ball.lower()) <= greatest && least <= of(ball.upper()), "{name}: {ball:?} misses the truth");
        let slack = BigRational::new(BigInt::one(), BigInt::one() << 40);
        assert!(of(ball.upper()) - of(ball.lower()) <= slack, "{name}: {ball:?} is wide");
    }

    #[test]
    fn tails_with_whole_shapes_cover_the_binomial_sums() {
        for n in [1u32, 2, 5, 17, 40] {
            let coefficients = pascal(n);
            for a in 1..=n {
                for x in [1e-12, 0.01, 0.3, 0.5, 0.77, 0.999] {
                    let (p, bits) = dyadic(x);
                    let q = (BigInt::one() << bits) - &p;
                    let at_least: BigInt = (a..=n).map(|j| &coefficients[j as usize] * p.pow(j) * q.pow(n - j)).sum();
                    let all = BigInt::one() << (bits * n);
                    let found = tails(f64::from(a), f64::from(n + 1 - a), &Rate::new(x));
                    let name = format!("Beta({a}, {}) at {x}", n + 1 - a);
                    assert_covers(found.lower, &at_least, &all, &name);
                    assert_covers(found.upper, &(&all - &at_least), &all, &name);
                }
            }
        }
    }

    proptest! {
        /// `I_x(a, b) = I_x(a + 1, b) + x^a (1-x)^b / (a B(a, b))`, for shapes of all kinds.
        #[test]
        fn neighbouring_shapes_differ_by_one_term(a in -10.0f64..40.0, b in -10.0f64..40.0, at in -6.0f64..6.0) {
            // Multiples of 2^-12, so that a + 1 is a float too.
            let grid = |bits: f64| (bits.exp2() * 4096.0).ceil() / 4096.0;
            let (a, b) = (grid(a), grid(b));
            let center = a / (a + b);
            let x = (center * (1.0 + at * (b / (a * (a + b + 1.0))).sqrt())).clamp(1e-9, 1.0 - 1e-9);
            let rate = Rate::new(x);
            let (here, next) = (tails(a, b, &rate), tails(a + 1.0, b, &rate));
            let term = exp(here.density - ln(a.into()));
            prop_assert!(overlap(exp(here.lower), exp(next.lower) + term), "{:?} and {:?}", here, next);
            prop_assert!(overlap(exp(here.upper) + term, exp(next.upper)), "{:?} and {:?}", here, next);
            prop_assert!(overlap(exp(here.lower) + exp(here.upper), Ball::from(1.0)), "{:?}", here);
        }

        /// All shapes, and rates from the far side of the mean to thirty deviations off, on either side.
        #[test]
        fn the_nearer_tail_is_always_known_narrowly(
            a in -30.0f64..53.0, b in -30.0f64..53.0, deviations in -30.0f64..30.0, near in any::<bool>()
        ) {
            let (a, b, deviations) = (a.exp2(), b.exp2(), if near { deviations / 30.0 } else { deviations });
            let (center, other) = (a / (a + b), b / (a + b));
            let off = deviations * (center / (a + b + 1.0) * other).sqrt();
            let rate = if center < 0.5 { Rate::new((center + off).abs().clamp(1e-300, 0.75)) } else {
                Rate::complement_of((other - off).abs().clamp(1e-300, 0.75))
            };
            let share = if below_center(a, b, &rate) { near_share(a, b, &rate) } else { near_share(b, a, &rate.swap()) };
            prop_assert!(share.radius <= 40.0 * NARROW * share.mid.hi, "{:?} at {:?}", share, rate);
        }

        /// Either tail's fraction, where both converge, gives the same distribution.
        #[test]
        fn both_fractions_agree(a in 0.5f64..300.0, b in 0.5f64..300.0, at in 0.2f64..0.8) {
            let rate = Rate::new((a / (a + b) + (at - 0.5) * 0.1).clamp(1e-3, 0.999));
            let density = kernel(a, b, &rate);
            let lower = density + ln(near_share(a, b, &rate));
            let upper = density + ln(near_share(b, a, &rate.swap()));
            prop_assert!(overlap(exp(lower) + exp(upper), Ball::from(1.0)), "{:?} and {:?}", lower, upper);
        }
    }
}
