//! The exponential.
//!
//! `x = k ln 2 + 64 h` with an integer `k` and `|h| < 0.0055`; Taylor's series gives `e^h - 1`, whose first omitted
//! term is below `2^-133 |h|`; squaring `e^h` six times, as `E -> E (E + 2)` on `E = e^h - 1`, gives `e^(64 h) - 1`
//! without cancellation.

use super::exact::power_of_two;
use super::{Ball, Dd};

const DOUBLINGS: i32 = 6;
const TERMS: i32 = 13;

/// What no exponential of a ball below it exceeds: `e^-700 < 1e-304`.
const LEAST: f64 = -700.0;

/// `e^x`, for `x` up to 700. Below -700 the result is the ball of all numbers from 0 to `1e-304`.
pub(crate) fn exp(x: Ball) -> Ball {
    debug_assert!(x.upper() <= 700.0);
    if x.upper() < LEAST {
        return Ball::between(0.0, 1e-304);
    }
    let (rest, whole) = exp_m1_reduced(x);
    (rest + 1.0).scale(power_of_two(whole))
}

/// `e^x - 1`, for `x` from -700 to 700, with a small relative error near zero as well.
pub(crate) fn exp_m1(x: Ball) -> Ball {
    let (rest, whole) = exp_m1_reduced(x);
    if whole == 0 {
        return rest;
    }
    (rest + 1.0).scale(power_of_two(whole)) + -1.0
}

/// `(e^(x - k ln 2) - 1, k)`.
fn exp_m1_reduced(x: Ball) -> (Ball, i32) {
    let whole = (x.mid.hi * std::f64::consts::LOG2_E).round_ties_even() as i32;
    let rest = if whole == 0 { x } else { x - Ball::LN_2 * f64::from(whole) };
    let h = rest.scale(power_of_two(-DOUBLINGS));
    // h (1 + h/2 (1 + h/3 (1 + ...)))
    let mut taylor = Ball::from(1.0);
    for k in (2..=TERMS).rev() {
        taylor = h / f64::from(k) * taylor + 1.0;
    }
    let mut result = (h * taylor).widen(h.mid.hi.abs() * Dd::RELATIVE_ERROR);
    for _ in 0..DOUBLINGS {
        result = result * (result + 2.0);
    }
    (result, whole)
}

#[cfg(test)]
mod tests {
    use super::super::ln::{ln, ln_1p};
    use super::*;

    #[test]
    fn exponential_and_logarithm_undo_each_other() {
        for step in -550..550 {
            let x = Ball::from(f64::from(step) * 1.07);
            let back = ln(exp(x)) - x;
            assert!(back.lower() <= 0.0 && back.upper() >= 0.0, "{step}: {back:?}");
            assert!(back.radius < 1e-18 * (1.0 + x.mid.hi.abs()), "{step}: {back:?}");
        }
        for power in 1..270 {
            let x = Ball::from(0.3 * 10f64.powi(-power));
            let back = ln_1p(exp_m1(x)) - x;
            assert!(back.lower() <= 0.0 && back.upper() >= 0.0, "{power}: {back:?}");
            assert!(back.radius < 1e-19 * x.mid.hi.abs(), "{power}: {back:?}");
        }
    }

    #[test]
    fn below_the_least_exponent_the_exponential_is_no_more_than_tiny() {
        let tiny = exp(Ball::from(-701.0));
        assert!(tiny.lower() <= 0.0 && tiny.upper() >= 1.1e-305 && tiny.upper() < 1e-303, "{tiny:?}");
    }
}
