//! Both tails of the Beta distribution, as logarithms.

use super::exp::exp;
use super::expansion;
use super::fraction::{Fraction, NARROW, lead};
use super::kernel::{Kernel, Rate, kernel};
use super::ln::{ln, ln_1p, rough_ln};
use super::{Ball, Rough, series};

/// `2^-54`: a probability indistinguishable from zero.
const NEXT_TO_NOTHING: f64 = 0.25 * f64::EPSILON;

/// `2^-42`: the relative precision of a level's smaller tail. Twice that is less than half of the `10^-12` by which a
/// level may exceed the truth.
const DIGITS: f64 = 2.273_736_754_432_320_6e-13;

/// `ln I_x(a, b)`, `ln(1 - I_x(a, b))`, and their slopes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tails {
    /// `ln I_x(a, b)`: the probability of a value below `x`.
    pub(crate) lower: Ball,
    /// `ln(1 - I_x(a, b))`: the probability of a value above.
    pub(crate) upper: Ball,
    /// `ln(x (1-x) f(x))` with the density `f`: the slope of `I_x` in `ln(x / (1-x))`.
    pub(crate) density: Ball,
}

/// Both tails at `rate`, for shapes between `2^-30` and `2^53`.
pub(crate) fn tails(a: f64, b: f64, rate: &Rate) -> Tails {
    let kernel = kernel(a, b, rate);
    let (density, divergence) = (kernel.ln(), kernel.divergence());
    if below_center(a, b, rate) {
        let share = near_share(a, b, rate, divergence, NARROW);
        Tails { lower: density + ln(share), upper: ln_1p(-(exp(density) * share)), density }
    } else {
        let share = near_share(b, a, &rate.swap(), divergence, NARROW);
        Tails { lower: ln_1p(-(exp(density) * share)), upper: density + ln(share), density }
    }
}

/// The logarithm of the hazard, the [density](Tails::density) over the upper tail, for whole shapes and with the kernel
/// given: quickly, and off by about `2^-42` times the smaller tail.
#[inline(always)]
pub(crate) fn ln_hazard(a: f64, b: f64, rate: &Rate, kernel: &Kernel) -> Ball {
    let lead = kernel.lead;
    if lead < 0.0 {
        return Ball::ZERO - rough_ln(whole_share(b, a, &rate.swap(), kernel.divergence(), DIGITS));
    }
    // The lower tail is at most the density over the lead, as its logarithm's slope only grows on the way down.
    let density = kernel.value();
    let most = (density.value + density.error) * 1.001;
    if lead >= 1.0 && most <= NEXT_TO_NOTHING * lead {
        return kernel.ln_over(Rough { value: 1.0, error: NEXT_TO_NOTHING });
    }
    // For a small part, a few digits suffice.
    let width = DIGITS * (lead / most).max(1.0);
    let lower = density * whole_share(a, b, rate, kernel.divergence(), width);
    kernel.ln_over(Rough { value: 1.0, error: 0.0 } - lower)
}

/// Whether the fraction gives the lower tail quickly. It does below the mean; but when the upper tail is within a shape
/// below 1 of the end, its fraction, there a power series, is the quick one.
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

/// `I_x(a, b)` over `e^`[`density`](Tails::density), for `x` on the side where that is not the larger tail, and to
/// about `width` of itself, or [`DIGITS`] where the distribution is much like a normal one.
#[inline]
fn near_share(a: f64, b: f64, rate: &Rate, divergence: f64, width: f64) -> Ball {
    if let Some(share) = expansion::near_share(a, b, divergence, width.max(DIGITS)) {
        return share.into();
    }
    fraction_share(a, b, rate, width)
}

/// As [`near_share`], by the fraction.
fn fraction_share(a: f64, b: f64, rate: &Rate, width: f64) -> Ball {
    let found = Fraction::new(a, b, rate).enclose_to(width);
    Ball::between(found.lower, found.upper) / a
}

/// As [`near_share`], for whole shapes.
#[inline(always)]
fn whole_share(a: f64, b: f64, rate: &Rate, divergence: f64, width: f64) -> Rough {
    if let Some(share) = expansion::near_share(a, b, divergence, width) {
        return share;
    }
    series::near_share(a, b, rate, width).unwrap_or_else(|| fraction_share(a, b, rate, width).into())
}

#[cfg(test)]
mod tests {
    use millstream_verify_random::cases;
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

    #[test]
    fn the_hazard_covers_the_binomial_sums() {
        let mut ways = [0; 3];
        for n in [1u32, 2, 5, 17, 40, 60, 90, 260] {
            let coefficients = pascal(n);
            for a in 1..=n {
                for x in [1e-12, 0.01, 0.125, 0.5, 0.75, 0.999] {
                    let (p, bits) = dyadic(x);
                    let q = (BigInt::one() << bits) - &p;
                    let below: BigInt = (0..a).map(|j| &coefficients[j as usize] * p.pow(j) * q.pow(n - j)).sum();
                    let (a, b, rate) = (f64::from(a), f64::from(n + 1 - a), Rate::new(x));
                    let kernel = kernel(a, b, &rate);
                    let found = kernel.ln() - ln_hazard(a, b, &rate, &kernel);
                    let name = format!("Beta({a}, {b}) at {x}: {found:?}");
                    let (least, greatest) = exactly::ln(&below, &(BigInt::one() << (bits * n)));
                    assert!(of(found.lower()) <= greatest && least <= of(found.upper()), "{name}");
                    let most = 4e-13 * found.mid.hi.abs().max(1.0) + 4e-15 * kernel.divergence();
                    assert!(found.radius <= most, "{name} is wide");
                    let (a, b, rate) = if lead(a, b, &rate) < 0.0 { (b, a, rate.swap()) } else { (a, b, rate) };
                    let way = match expansion::near_share(a, b, kernel.divergence(), DIGITS) {
                        Some(_) => 0,
                        None => 1 + usize::from(series::near_share(a, b, &rate, DIGITS).is_none()),
                    };
                    ways[way] += 1;
                }
            }
        }
        assert!(ways[0] > 100 && ways[1] > 300 && ways[2] == 0, "{ways:?}");
    }

    proptest! {
        #![proptest_config(cases(256))]

        /// Whole shapes of all sizes: a sum of positive terms or an expansion is always found.
        #[test]
        fn the_share_of_whole_shapes_needs_no_fraction(
            a in 0.0f64..52.0, b in 0.0f64..52.0, deviations in -0.1f64..20.0, digits in 10i32..44
        ) {
            let (a, b) = (a.exp2().floor(), b.exp2().floor());
            let (center, other) = (a / (a + b), b / (a + b));
            let off = deviations * (center / (a + b + 1.0) * other).sqrt();
            let rate = if center < 0.5 { Rate::new((center - off).abs().clamp(1e-300, 0.75)) } else {
                Rate::complement_of((other + off).abs().clamp(1e-300, 0.75))
            };
            let (a, b, rate) = if lead(a, b, &rate) < 0.0 { (b, a, rate.swap()) } else { (a, b, rate) };
            let divergence = kernel(a, b, &rate).divergence();
            prop_assume!(divergence < 40.0);
            let width = if divergence < 20.0 { DIGITS } else { 2f64.powi(-digits.min(24)) };
            let share = expansion::near_share(a, b, divergence, width).or_else(|| series::near_share(a, b, &rate, width));
            prop_assert!(share.is_some(), "Beta({}, {}) at {:?}, {}", a, b, rate, divergence);
            let share = share.unwrap().into();
            prop_assert!(overlap(share, near_share(a, b, &rate, 1e300, NARROW)), "{:?}", share);
        }

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
            let divergence = kernel(a, b, &rate).divergence();
            let share = if below_center(a, b, &rate) {
                near_share(a, b, &rate, divergence, NARROW)
            } else {
                near_share(b, a, &rate.swap(), divergence, NARROW)
            };
            prop_assert!(share.radius <= 40.0 * NARROW * share.mid.hi, "{:?} at {:?}", share, rate);
        }

        /// Either tail's fraction, where both converge, gives the same distribution.
        #[test]
        fn both_fractions_agree(a in 0.5f64..300.0, b in 0.5f64..300.0, at in 0.2f64..0.8) {
            let rate = Rate::new((a / (a + b) + (at - 0.5) * 0.1).clamp(1e-3, 0.999));
            let density = kernel(a, b, &rate).ln();
            let share = |a: f64, b: f64, rate: &Rate| {
                let found = Fraction::new(a, b, rate).enclose_to(NARROW);
                Ball::between(found.lower, found.upper) / a
            };
            let lower = density + ln(share(a, b, &rate));
            let upper = density + ln(share(b, a, &rate.swap()));
            prop_assert!(overlap(exp(lower) + exp(upper), Ball::from(1.0)), "{:?} and {:?}", lower, upper);
        }
    }
}
