//! Every question results in an answer or an error, never in a panic.

use millstream_csm::{Claim, Driver, Error, MAX_TRIALS, Method, Setup, Test, interval, quantile};
use millstream_verify_random::cases;
use proptest::prelude::*;

fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>(),
        0.0..1.0f64,
        prop::sample::select(&[0.0, -0.0, 1.0, 5e-324, 1e-300, 1.0 - f64::EPSILON / 2.0, f64::NAN, f64::INFINITY][..]),
    ]
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn any_numbers_give_an_interval_around_the_rate_or_an_error(n: u64, s: u64, small: bool, error in any_number()) {
        let (n, s) = if small { (n % 1000, s % 1000) } else { (n >> 10, s >> 11) };
        for interval in [interval::watched, interval::fixed, interval::credible] {
            match interval(n, s, error) {
                Ok(found) => {
                    prop_assert!(s <= n && 0.0 < error && error < 1.0);
                    prop_assert!(0.0 <= found.low && found.low <= found.high && found.high <= 1.0, "{:?}", found);
                }
                Err(_) => prop_assert!(s > n || n > MAX_TRIALS || !(error > 0.0 && error < 1.0)),
            }
        }
        if let Ok(found) = interval::watched(n, s, error) {
            prop_assert!(n == 0 || found.contains(s as f64 / n as f64), "{} of {}: {:?}", s, n, found);
        }
    }

    #[test]
    fn any_threshold_has_a_test_that_looks_at_any_counts_or_an_error(
        p in any_number(),
        log_eps in prop_oneof![any::<f64>(), -745.0..0.0f64],
        method in prop::sample::select(&Method::ALL[..]),
        n in prop_oneof![0..2000u64, 0..=MAX_TRIALS],
        part in 0.0..=1.0f64,
    ) {
        let s = ((n as f64 * part) as u64).min(n);
        match Test::new(p, log_eps, method) {
            Ok(test) => {
                prop_assert!(p > 0.0 && p < 1.0);
                let decision = test.stop(n, s).unwrap();
                prop_assert!(!decision.level.is_nan());
                prop_assert_eq!(decision.stop.is_some(), decision.level < log_eps);
            }
            Err(Error::NeedsTwoThresholds { .. }) => prop_assert!(matches!(method, Method::Sprt | Method::Blend)),
            Err(_) => prop_assert!(!log_eps.is_finite() || log_eps > 0.0 || !(p > 0.0 && p < 1.0)),
        }
    }

    #[test]
    fn any_setup_is_refused_or_runs(
        first in any_number(), second in any_number(), error in any_number(), kind in 0..4, limit in 0u64..50,
        method in prop::sample::select(&Method::ALL[..]),
    ) {
        let claim = match kind {
            0 => Claim::AtLeast(first),
            1 => Claim::AtMost(first),
            2 => Claim::Within { low: first, high: second },
            _ => Claim::Between { low: first, high: second },
        };
        let setup = Setup::new(claim, error).method(method).limit(limit);
        let is_rate = |x: f64| x > 0.0 && x < 1.0;
        let has_thresholds = is_rate(first) && (kind < 2 || (is_rate(second) && first < second));
        let suits = kind == 3 || !matches!(method, Method::Sprt | Method::Blend);
        let driver = Driver::new(&setup);
        prop_assert_eq!(driver.is_ok(), has_thresholds && suits && is_rate(error) && limit > 0);
        if let Ok(mut driver) = driver {
            prop_assert!(driver.run(|| true, |_| ()).trials <= limit);
        }
    }
}

#[test]
fn each_mistake_has_its_error() {
    let setup = Setup::new(Claim::AtLeast(0.9), 0.01);
    let refusal = |setup: &Setup| Driver::new(setup).map(drop).unwrap_err();
    assert!(matches!(refusal(&setup.method(Method::Sprt)), Error::NeedsTwoThresholds { method: Method::Sprt }));
    assert!(matches!(refusal(&setup.limit(0)), Error::OutOfRange { .. }));
    assert!(matches!(refusal(&Setup::new(Claim::AtLeast(1.0), 0.01)), Error::OutOfRange { .. }));
    let reversed = Claim::Between { low: 0.9, high: 0.8 };
    assert!(matches!(refusal(&Setup::new(reversed, 0.01)), Error::NotInOrder { .. }));
    assert!(matches!(Driver::resume(&setup, 5, 6), Err(Error::MoreThanAll { found: 6, whole: 5, .. })));
    assert!(matches!(quantile::ranks(MAX_TRIALS + 1, 0.5, 0.1), Err(Error::TooMany { .. })));
    assert!(matches!(setup.power(1.5, 10), Err(Error::OutOfRange { .. })));
    assert!(matches!(setup.power(0.5, 1_000_001), Err(Error::TooMany { .. })));
    assert!("fastest".parse::<Method>().unwrap_err().to_string().contains("balanced, robbins"));
    for method in Method::ALL {
        assert_eq!(method.to_string().parse(), Ok(method));
    }
}
