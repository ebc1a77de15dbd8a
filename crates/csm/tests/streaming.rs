//! Trial by trial, in slices, or from the counts: the answer is the same after the same trial.

use millstream_csm::random::Random;
use millstream_csm::{Claim, Direction, Driver, Method, Progress, Setup, Test, Verdict, interval, report_due};
use millstream_verify_random::cases;
use proptest::prelude::*;

fn a_test(p: f64, log_eps: f64, method: Method) -> Test {
    if matches!(method, Method::Sprt | Method::Blend) {
        return Test::between(p, p + (1.0 - p) / 2.0, log_eps, method).unwrap();
    }
    Test::new(p, log_eps, method).unwrap()
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn a_driver_gives_the_same_status_trial_by_trial_and_in_slices(
        claim in prop_oneof![
            (0.01..0.99f64).prop_map(Claim::AtLeast),
            (0.01..0.99f64).prop_map(Claim::AtMost),
            (0.01..0.6f64).prop_map(|low| Claim::Within { low, high: low + 0.3 }),
            (0.01..0.9f64).prop_map(|low| Claim::Between { low, high: low + 0.05 }),
        ],
        rate in 0.0..1.0f64,
        limit in 1u64..3000,
        seed: u64,
        slice in 1usize..700,
    ) {
        let setup = Setup::new(claim, 0.01).limit(limit);
        let mut random = Random::seeded(seed);
        let outcomes: Vec<bool> = (0..3000).map(|_| random.uniform() < rate).collect();
        let mut single = Driver::new(&setup).unwrap();
        outcomes.iter().for_each(|&success| { single.observe(success); });
        let mut sliced = Driver::new(&setup).unwrap();
        let used: usize = outcomes.chunks(slice).map(|chunk| sliced.observe_slice(chunk).0).sum();
        prop_assert_eq!(single.status(), sliced.status());
        prop_assert_eq!(used as u64, single.status().trials);
        // The counts are all the evidence.
        let status = single.status();
        let resumed = Driver::resume(&setup, status.trials, status.successes).unwrap().status();
        // If a side was proven earlier and the counts no longer prove it, the resumed driver has forgotten it.
        if !matches!(claim, Claim::Within { .. }) || resumed.progress == status.progress {
            prop_assert_eq!(resumed, status);
        }
    }

    #[test]
    fn success_and_failure_are_symmetric(
        method in prop::sample::select(&[Method::Mixture, Method::Balanced, Method::Robbins, Method::Centred, Method::OneSided][..]),
        eighths in 1u32..8,
        n in 0u64..5000,
        part in 0.0..=1.0f64,
    ) {
        // The complement of such a threshold is exactly a float.
        let p = f64::from(eighths) / 8.0;
        let s = (part * n as f64) as u64;
        let one = a_test(p, -5.0, method).stop(n, s).unwrap();
        let other = a_test(1.0 - p, -5.0, method).stop(n, n - s).unwrap();
        prop_assert_eq!(one.stop.is_some(), other.stop.is_some());
        prop_assert!(one.stop.is_none() || one.stop != other.stop);
        prop_assert!((one.level - other.level).abs() <= 1e-12 * (1.0 + one.level.abs()), "{:?} {:?}", one, other);
        // The levels are also equal for counts whose observed rate is exactly the threshold.
        let (n, s) = (n * 8, n * u64::from(eighths));
        let (one, other) = (a_test(p, -5.0, method), a_test(1.0 - p, -5.0, method));
        let (one, other) = (one.stop(n, s).unwrap().level, other.stop(n, n - s).unwrap().level);
        prop_assert!((one - other).abs() <= 1e-12 * (1.0 + one.abs()), "{} {}", one, other);
    }

    #[test]
    fn a_favourable_outcome_never_undoes_a_decision(
        method in prop::sample::select(&Method::ALL[..]),
        p in 0.01..0.99f64,
        n in 1u64..100_000,
        part in 0.0..=1.0f64,
    ) {
        let test = a_test(p, -3.0, method);
        let s = (part * n as f64) as u64;
        match test.stop(n, s).unwrap().stop {
            Some(Direction::Above) => {
                prop_assert_eq!(test.stop(n + 1, s + 1).unwrap().stop, Some(Direction::Above));
                prop_assert!(s == n || test.stop(n, s + 1).unwrap().stop == Some(Direction::Above));
            }
            Some(Direction::Below) => {
                prop_assert_eq!(test.stop(n + 1, s).unwrap().stop, Some(Direction::Below));
                prop_assert!(s == 0 || test.stop(n, s - 1).unwrap().stop == Some(Direction::Below));
            }
            None => {}
        }
    }
}

#[test]
fn robbins_method_has_robbins_level() {
    let p = 0.98;
    let test = a_test(p, -6.9, Method::Robbins);
    for (n, s) in [(0, 0), (1, 0), (1, 1), (1000, 995), (4000, 3972), (1_000_000_000, 980_000_001)] {
        let direct = millstream_csm::robbins::stop(n, p, s, -6.9).unwrap();
        let decision = test.stop(n, s).unwrap();
        assert_eq!(decision, direct, "{s} of {n}");
    }
}

#[test]
fn a_set_is_looked_at_once_at_its_end() {
    let setup = Setup::new(Claim::AtLeast(0.5), 1e-3);
    let mut driver = Driver::new(&setup).unwrap();
    // A hundred successes alone would decide the claim, but the whole set does not.
    assert_eq!(driver.observe_set(200, 100), Ok(None));
    assert_eq!(driver.observe_set(100, 100), Ok(Some(Verdict::Holds)));
    // Trials after a verdict are ignored.
    assert_eq!(driver.observe_set(1000, 0), Ok(Some(Verdict::Holds)));
    assert_eq!(driver.status().trials, 300);
}

#[test]
fn a_run_reports_progress_when_it_is_due_and_at_its_end() {
    let mut reported = Vec::new();
    let mut random = Random::seeded(8);
    let mut driver = Driver::new(&Setup::new(Claim::AtLeast(0.5), 1e-6).limit(250)).unwrap();
    let status = driver.run(|| random.uniform() < 0.5, |status| reported.push((status.trials, status.progress)));
    assert_eq!(status.progress, Progress::AtLimit);
    let due: Vec<u64> = (1..250).filter(|&n| report_due(n)).chain([250]).collect();
    assert_eq!(reported.iter().map(|report| report.0).collect::<Vec<_>>(), due);
    assert_eq!(reported.last(), Some(&(250, Progress::AtLimit)));
}

#[test]
fn a_drivers_interval_has_a_third_of_the_error_where_the_tests_have_the_rest() {
    for claim in [Claim::AtLeast(0.9), Claim::AtMost(0.5), Claim::Between { low: 0.2, high: 0.3 }] {
        let setup = Setup::new(claim, 0.03);
        let method = if matches!(claim, Claim::Between { .. }) { setup.method } else { Method::Balanced };
        let mut driver = Driver::new(&setup.method(method)).unwrap();
        driver.observe_set(50, 30).unwrap();
        let (found, expected) = (driver.status().interval, interval::watched(50, 30, 0.01).unwrap());
        assert!((found.low - expected.low).abs() < 1e-12 && (found.high - expected.high).abs() < 1e-12, "{found:?}");
    }
}

#[test]
fn a_drivers_interval_has_the_error_left_by_the_wrong_verdict() {
    // For rates above the threshold of 0.9 the wrong verdict is "fails", whose evidence jumps; for rates below, it is
    // "holds".
    let width = |successes, method| {
        let mut driver = Driver::new(&Setup::new(Claim::AtLeast(0.9), 0.03).method(method)).unwrap();
        driver.observe_set(400, successes).unwrap();
        let interval = driver.status().interval;
        interval.high - interval.low
    };
    assert!(width(392, Method::Mixture) < width(392, Method::Balanced));
    assert!(width(200, Method::Mixture) < 1.1 * width(200, Method::Balanced));
}

#[test]
fn a_drivers_tests_have_the_share_of_the_error_that_their_method_leaves_them() {
    let (at_least, at_most) = (Claim::AtLeast(0.9), Claim::AtMost(0.5));
    let within = Claim::Within { low: 0.2, high: 0.9 };
    let between = Claim::Between { low: 0.2, high: 0.3 };
    for (claim, method, part) in [
        (at_least, Method::Mixture, 1.0),
        (within, Method::Mixture, 2.0),
        (at_least, Method::Balanced, 1.5),
        (at_most, Method::Robbins, 1.5),
        (within, Method::Balanced, 3.0),
        (between, Method::Blend, 1.5),
        // With this method, each direction has the whole error.
        (at_least, Method::OneSided, 3.0),
        (within, Method::OneSided, 6.0),
    ] {
        let log_eps = Driver::new(&Setup::new(claim, 0.03).method(method)).unwrap().status().log_eps;
        assert!((log_eps - (0.03f64 / part).ln()).abs() < 1e-12, "{claim:?} {method}: {log_eps}");
    }
}

#[test]
fn a_watched_intervals_ends_are_each_others_mirror_images() {
    for n in [1u64, 2, 7, 30, 101, 1000] {
        for s in n.div_ceil(2)..n {
            for error in [0.5, 0.05, 1e-6] {
                let high = interval::watched(n, s, error).unwrap().high;
                let low = interval::watched(n, n - s, error).unwrap().low;
                // The difference is exact, because the end is above 1/2. The last rate that is ruled out is the same
                // for both ends.
                let beyond = 1.0 - high;
                assert!(beyond <= low && low - beyond <= 2.0 * f64::EPSILON, "{s} of {n}, {error}: {high} and {low}");
            }
        }
    }
}
