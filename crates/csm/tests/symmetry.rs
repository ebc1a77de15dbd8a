//! Properties for all valid inputs (symmetry, monotonicity), and typed errors for all others.

use millstream_csm::{Direction, Error, MAX_TRIALS, Side, beta_bound, log_choose, robbins};
use millstream_verify_random::cases;
use proptest::prelude::*;

/// Counts of all sizes. Small counts are as frequent as large ones.
fn count() -> impl Strategy<Value = u64> {
    (0u32..50, any::<u64>()).prop_map(|(bits, random)| random & ((1 << bits) - 1))
}

/// A number of trials and of successes among them.
fn counts() -> impl Strategy<Value = (u64, u64)> {
    (count(), count()).prop_map(|(s, f)| (s + f, s))
}

/// Any float. Special values are frequent.
fn any_float() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<u64>().prop_map(f64::from_bits),
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        Just(-0.0),
        Just(5e-324),
        -2.0..2.0,
    ]
}

/// Rates of all sizes.
fn rate() -> impl Strategy<Value = f64> {
    prop_oneof![0.0..1.0, (1u64..0x3ff0_0000_0000_0000).prop_map(f64::from_bits)]
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn choosing_some_or_the_others_is_the_same((n, k) in counts()) {
        prop_assert_eq!(log_choose(n, k), log_choose(n, n - k));
    }

    #[test]
    fn exchanging_outcomes_changes_no_level((n, s) in counts(), quarter in 1u64..1 << 53) {
        // A multiple of 2^-53, so that the complement is exactly a float.
        let alpha = quarter as f64 / (1u64 << 53) as f64;
        let (one, other) = (robbins::stop(n, alpha, s, -1.0)?, robbins::stop(n, 1.0 - alpha, n - s, -1.0)?);
        let tolerance = 1e-12 * one.level.abs().max(1.0) * (n as f64 / 1e12).max(1.0);
        prop_assert!((one.level - other.level).abs() <= tolerance, "{:?} and {:?}", one, other);
    }

    #[test]
    fn exchanging_outcomes_exchanges_beta_bounds(a in count(), b in count(), eps in rate()) {
        let (a, b) = (a as f64 + 1.0, b as f64 + 1.0);
        let (low, high) = (beta_bound(a, b, eps, Side::Low)?, beta_bound(b, a, eps, Side::High)?);
        prop_assert_eq!((low.bound, low.complement), (high.complement, high.bound));
    }

    #[test]
    fn a_larger_error_moves_the_bounds_inwards(a in count(), b in count(), eps in rate()) {
        let (a, b) = (a as f64 + 1.0, b as f64 + 1.0);
        let (strict, lax) = (beta_bound(a, b, eps * 0.9, Side::Low)?, beta_bound(a, b, eps, Side::Low)?);
        prop_assert!(strict.bound <= lax.bound && lax.complement <= strict.complement, "{:?} and {:?}", strict, lax);
    }

    #[test]
    fn a_bound_and_its_complement_add_up_to_one(a in count(), b in count(), eps in rate()) {
        let low = beta_bound(a as f64 + 1.0, b as f64 + 1.0, eps, Side::Low)?;
        prop_assert!((low.bound + low.complement - 1.0).abs() <= f64::EPSILON, "{:?}", low);
        prop_assert!((0.0..=1.0).contains(&low.bound) && (0.0..=1.0).contains(&low.complement), "{:?}", low);
    }

    /// Some of these quantiles are closer to 0 or 1 than the smallest normal float, or than any float.
    #[test]
    fn shapes_close_to_zero_have_bounds_too(a in -30.0f64..3.0, b in -30.0f64..3.0, part in 1u64..1 << 53) {
        // A multiple of 2^-53, so that the complement is exactly a float.
        let (a, b, eps) = (a.exp2(), b.exp2(), part as f64 / (1u64 << 53) as f64);
        let (low, high) = (beta_bound(a, b, eps, Side::Low)?, beta_bound(a, b, 1.0 - eps, Side::High)?);
        for found in [low, high] {
            prop_assert!((found.bound + found.complement - 1.0).abs() <= f64::EPSILON, "{:?}", found);
        }
        // The same quantile, from both sides.
        prop_assert!(low.bound <= high.bound && high.complement <= low.complement, "{:?} and {:?}", low, high);
    }

    #[test]
    fn beyond_the_threshold_evidence_only_grows(n in 1u64..1 << 40, alpha in rate(), part in 0.0..1.0) {
        let first = (n as f64 * alpha).ceil() as u64;
        let s = first + ((n.saturating_sub(first)) as f64 * part) as u64;
        prop_assume!(s < n);
        let (less, more) = (robbins::stop(n, alpha, s, -1.0)?, robbins::stop(n, alpha, s + 1, -1.0)?);
        let tolerance = 1e-12 * less.level.abs().max(1.0) * (n as f64 / 1e10).max(1.0);
        prop_assert!(more.level <= less.level + tolerance, "{:?} then {:?}", less, more);
    }

    #[test]
    fn the_direction_is_that_of_the_observed_rate((n, s) in counts(), alpha in rate(), log_eps in -50.0..0.0) {
        let look = robbins::stop(n, alpha, s, log_eps)?;
        prop_assert_eq!(look.stop.is_some(), look.level < log_eps);
        let part = s as f64 / n as f64;
        match look.stop {
            Some(Direction::Above) => prop_assert!(part >= alpha),
            Some(Direction::Below) => prop_assert!(part <= alpha),
            None => {}
        }
    }

    #[test]
    fn every_input_gets_an_answer_or_a_typed_error(
        n in any::<u64>(), s in any::<u64>(), x in any_float(), y in any_float(), z in any_float(),
    ) {
        for (n, s) in [(n, s), (n >> 12, s >> 13), (n % 100, s % 100)] {
            let valid = s <= n && n <= MAX_TRIALS;
            prop_assert_eq!(log_choose(n, s).is_ok(), valid);
            let look = robbins::stop(n, x, s, y);
            prop_assert_eq!(look.is_ok(), valid && (0.0..=1.0).contains(&x) && y <= 0.0);
            if let Ok(look) = look {
                prop_assert!(!look.level.is_nan());
            }
        }
        let shape = |x: f64| x == 0.0 || (2f64.powi(-30)..=2f64.powi(53)).contains(&x);
        let valid = shape(x) && shape(y) && (x != 0.0 || y != 0.0) && (0.0..=1.0).contains(&z);
        for side in [Side::Low, Side::High] {
            prop_assert_eq!(beta_bound(x, y, z, side).is_ok(), valid);
        }
    }
}

#[test]
fn errors_say_what_was_expected_and_found() {
    let message = |error: Error| error.to_string();
    let found = robbins::stop(10, 0.5, 11, -1.0).expect_err("more successes than trials");
    assert!(message(found).starts_with("there are 11 successes among 10 trials"));
    let found = robbins::stop(10, 1.5, 1, -1.0).expect_err("no rate");
    assert_eq!(message(found), "the threshold must be between 0 and 1, but it is 1.5");
    let found = robbins::stop(10, f64::NAN, 1, -1.0).expect_err("no number");
    assert!(message(found).starts_with("the threshold must be a finite number, but it is NaN"));
    let found = beta_bound(0.0, 0.0, 0.1, Side::Low).expect_err("no distribution");
    assert!(message(found).contains("above 0 if the other one is 0"));
    let found = log_choose(u64::MAX, 3).expect_err("too many");
    assert!(message(found).contains("18446744073709551615 items exceed the maximum of 9007199254740991"));
}

#[test]
fn the_ends_of_the_scale_are_exact() {
    let level = |n, alpha, s| robbins::stop(n, alpha, s, -1.0).expect("a valid question").level;
    assert_eq!(level(10, 0.0, 1), f64::NEG_INFINITY);
    assert_eq!(level(10, 1.0, 9), f64::NEG_INFINITY);
    for (alpha, s) in [(0.0, 0), (1.0, 10)] {
        assert!((level(10, alpha, s) - 11f64.ln()).abs() < 1e-15);
    }
    assert!(level(0, 0.3, 0).abs() < 1e-300);
    assert_eq!(robbins::stop(0, 0.3, 0, 0.0).expect("a valid question").stop, None, "no data stop nothing");
    let impossible = robbins::stop(10, 0.0, 1, f64::NEG_INFINITY).expect("a valid question");
    assert!(impossible.stop.is_none(), "an error of 0 stops nothing, and the comparison is strict: {impossible:?}");
    assert_eq!(robbins::stop(1 << 40, 0.3, 0, f64::NEG_INFINITY).expect("a valid question").stop, None);
}
