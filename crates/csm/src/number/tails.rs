//! Both tails of the Beta distribution, as logarithms.

use super::Ball;
use super::exp::exp;
use super::expansion;
use super::fraction::{Fraction, NARROW};
use super::kernel::{Kernel, Rate, kernel};
use super::ln::{ln, ln_1p};

/// `2^-42`: the relative precision of the smaller tail in a level. A level may exceed the true one by `10^-12`, and
/// twice this precision is less than half of that.
const DIGITS: f64 = 2.273_736_754_432_320_6e-13;

/// The logarithms of both tails, and their slopes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tails {
    /// `ln I_x(a, b)`: the logarithm of the probability of a value below `x`.
    pub(crate) lower: Ball,
    /// `ln(1 - I_x(a, b))`: the logarithm of the probability of a value above `x`.
    pub(crate) upper: Ball,
    /// `ln(x (1-x) f(x))` with the density `f`: the slope of `I_x` in `ln(x / (1-x))`.
    pub(crate) density: Ball,
    /// The logarithmic slope of that density, `a (1-x) - b x`.
    pub(crate) lead: f64,
}

/// Computes both tails at `rate`, for shapes between `2^-30` and `2^53`.
pub(crate) fn tails(a: f64, b: f64, rate: &Rate) -> Tails {
    let kernel = kernel(a, b, rate);
    let Kernel { ln: density, lead, .. } = kernel;
    let is_lower = is_lower_nearer(a, b, rate, lead);
    let share =
        if is_lower { lower_share(a, b, rate, &kernel, NARROW) } else { upper_share(a, b, rate, &kernel, NARROW) };
    let (near, far) = (density + ln(share), ln_1p(-(exp(density) * share)));
    let (lower, upper) = if is_lower { (near, far) } else { (far, near) };
    Tails { lower, upper, density, lead }
}

/// The logarithm of the hazard, which is the [density](Tails::density) divided by the upper tail. Its error is at most
/// about `2^-42`, which permits a quick computation.
pub(crate) fn ln_hazard(a: f64, b: f64, rate: &Rate) -> Ball {
    let kernel = kernel(a, b, rate);
    if !is_lower_nearer(a, b, rate, kernel.lead) {
        return -ln(upper_share(a, b, rate, &kernel, DIGITS));
    }
    // The lower tail is at most the density divided by the lead, because the slope of the tail's logarithm only grows
    // towards lower rates. If this bound is small, a few digits of the tail suffice.
    let density = exp(kernel.ln);
    let width = DIGITS * (kernel.lead / density.upper()).max(1.0);
    kernel.ln - ln_1p(-(density * lower_share(a, b, rate, &kernel, width)))
}

/// Whether the fraction computes the lower tail more quickly than the upper tail. Below the mean it does, and above the
/// mean it does not, with an exception: near an end whose shape is below 1, the fraction for the tail at that end is a
/// power series, which is quicker.
fn is_lower_nearer(a: f64, b: f64, rate: &Rate, lead: f64) -> bool {
    let n = a + b;
    if n < 2.0 {
        return rate.x.hi <= 0.5;
    }
    let in_corner = |shape: f64, x: f64| shape < 1.0 && x * n < 1.0;
    if in_corner(a, rate.x.hi) || in_corner(b, rate.y.hi) {
        return in_corner(a, rate.x.hi);
    }
    lead >= 0.0
}

/// `1 - I_x(a, b)` divided by `e^`[`density`](Tails::density), with the error of [`lower_share`].
fn upper_share(a: f64, b: f64, rate: &Rate, kernel: &Kernel, width: f64) -> Ball {
    lower_share(b, a, &rate.swap(), &Kernel { lead: -kernel.lead, ..*kernel }, width)
}

/// `I_x(a, b)` divided by `e^`[`density`](Tails::density), for a rate at which [`is_lower_nearer`] is true. The
/// relative error is about `width`, or [`DIGITS`] if the distribution is nearly normal.
fn lower_share(a: f64, b: f64, rate: &Rate, kernel: &Kernel, width: f64) -> Ball {
    expansion::near_share(a, b, kernel.divergence, width.max(DIGITS)).unwrap_or_else(|| {
        let found = Fraction { a, b, x: rate.x.hi, lead: kernel.lead }.enclose_to(width);
        Ball::between((found.lower / a).next_down(), (found.upper / a).next_up())
    })
}

#[cfg(test)]
mod tests {
    use millstream_verify_random::cases;
    use num_bigint::BigInt;
    use num_rational::BigRational;
    use num_traits::One;
    use proptest::prelude::*;

    use super::*;
    use crate::exactly::binomial::{dyadic, pascal};
    use crate::exactly::ln as exactly;
    use crate::exactly::rational::of;

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
        for n in [1u32, 2, 5, 17, 40, 60, 90, 260] {
            let coefficients = pascal(n);
            for a in 1..=n {
                for x in [1e-12, 0.01, 0.125, 0.5, 0.75, 0.999] {
                    let (p, bits) = dyadic(x);
                    let q = (BigInt::one() << bits) - &p;
                    let below: BigInt = (0..a).map(|j| &coefficients[j as usize] * p.pow(j) * q.pow(n - j)).sum();
                    let (a, b, rate) = (f64::from(a), f64::from(n + 1 - a), Rate::new(x));
                    let kernel = kernel(a, b, &rate);
                    let found = kernel.ln - ln_hazard(a, b, &rate);
                    let name = format!("Beta({a}, {b}) at {x}: {found:?}");
                    let (least, greatest) = exactly::ln(&below, &(BigInt::one() << (bits * n)));
                    assert!(of(found.lower()) <= greatest && least <= of(found.upper()), "{name}");
                    let most = 4e-13 * found.mid.hi.abs().max(1.0) + 4e-15 * kernel.divergence;
                    assert!(found.radius <= most, "{name} is wide");
                }
            }
        }
    }

    proptest! {
        #![proptest_config(cases(256))]

        /// `I_x(a, b) = I_x(a + 1, b) + x^a (1-x)^b / (a B(a, b))`, for shapes of all kinds.
        #[test]
        fn neighbouring_shapes_differ_by_one_term(a in -10.0f64..40.0, b in -10.0f64..40.0, at in -6.0f64..6.0) {
            // Shapes are multiples of 2^-12, so that a + 1 is a float too.
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

        /// Shapes of all sizes, and rates up to thirty standard deviations from the mean, on both sides.
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
            let kernel = kernel(a, b, &rate);
            let share = if is_lower_nearer(a, b, &rate, kernel.lead) { lower_share } else { upper_share };
            let share = share(a, b, &rate, &kernel, NARROW);
            prop_assert!(share.radius <= 40.0 * NARROW * share.mid.hi, "{:?} at {:?}", share, rate);
        }

        /// Where the fractions of both tails converge, they agree.
        #[test]
        fn both_fractions_agree(a in 0.5f64..300.0, b in 0.5f64..300.0, at in 0.2f64..0.8) {
            let rate = Rate::new((a / (a + b) + (at - 0.5) * 0.1).clamp(1e-3, 0.999));
            let Kernel { ln: density, lead, .. } = kernel(a, b, &rate);
            let share = |a: f64, b: f64, rate: &Rate, lead: f64| {
                let found = Fraction { a, b, x: rate.x.hi, lead }.enclose_to(NARROW);
                Ball::between((found.lower / a).next_down(), (found.upper / a).next_up())
            };
            let lower = density + ln(share(a, b, &rate, lead));
            let upper = density + ln(share(b, a, &rate.swap(), -lead));
            prop_assert!(overlap(exp(lower) + exp(upper), Ball::from(1.0)), "{:?} and {:?}", lower, upper);
        }
    }
}
