//! Every question has an answer or an error; none panics.

use millstream_csm::power;
use millstream_csm::process::{Method, Test, Threshold};
use millstream_csm::{Claim, Driver, Error, MOST_TRIALS, Setup, interval, quantile};
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
                Err(_) => prop_assert!(s > n || n > MOST_TRIALS || !(error > 0.0 && error < 1.0)),
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
        n in prop_oneof![0..2000u64, 0..=MOST_TRIALS],
        part in 0.0..=1.0f64,
    ) {
        let Ok(threshold) = Threshold::new(p) else {
            prop_assert!(!(p > 0.0 && p < 1.0));
            return Ok(());
        };
        let s = ((n as f64 * part) as u64).min(n);
        match Test::new(threshold, log_eps, method) {
            Ok(test) => {
                let decision = test.stop(n, s).unwrap();
                prop_assert!(!decision.level.is_nan());
                prop_assert_eq!(decision.stop.is_some(), decision.level < log_eps);
            }
            Err(Error::NeedsTwoThresholds { .. }) => prop_assert!(method.needs_two_thresholds()),
            Err(_) => prop_assert!(!log_eps.is_finite() || log_eps > 0.0),
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
        match Driver::new(&setup) {
            Ok(mut driver) => {
                prop_assert_eq!(setup.check(), Ok(()));
                prop_assert!(driver.run(|| true, |_| ()).trials <= limit);
            }
            // As text, because NaN is not equal to itself.
            Err(found) => prop_assert_eq!(setup.check().unwrap_err().to_string(), found.to_string()),
        }
    }
}

#[test]
fn each_mistake_has_its_error() {
    let setup = Setup::new(Claim::AtLeast(0.9), 0.01);
    assert!(matches!(setup.method(Method::Sprt).check(), Err(Error::NeedsTwoThresholds { method: Method::Sprt })));
    assert!(matches!(setup.limit(0).check(), Err(Error::OutOfRange { .. })));
    assert!(matches!(Setup::new(Claim::AtLeast(1.0), 0.01).check(), Err(Error::OutOfRange { .. })));
    let reversed = Claim::Between { low: 0.9, high: 0.8 };
    assert!(matches!(Setup::new(reversed, 0.01).check(), Err(Error::NotInOrder { .. })));
    assert!(matches!(Driver::resume(&setup, 5, 6), Err(Error::MoreThanAll { found: 6, whole: 5, .. })));
    assert!(matches!(quantile::ranks(MOST_TRIALS + 1, 0.5, 0.1), Err(Error::TooMany { .. })));
    assert!(matches!(power::power(&setup, 1.5, 10), Err(Error::OutOfRange { .. })));
    assert!(matches!(power::power(&setup, 0.5, power::MOST_TRIALS + 1), Err(Error::TooMany { .. })));
    assert!("fastest".parse::<Method>().unwrap_err().to_string().contains("balanced, robbins"));
    for method in Method::ALL {
        assert_eq!(method.to_string().parse(), Ok(method));
    }
}
