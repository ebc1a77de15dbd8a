//! The promised error, by exact computation without simulation.

use millstream_csm::{Claim, Direction, Driver, Interval, Method, Progress, Setup, Test, Verdict, interval, quantile};

const THRESHOLDS: [f64; 8] = [0.001, 0.02, 0.1, 0.5, 0.7, 0.9, 0.98, 0.99];
const ERRORS: [f64; 3] = [0.2, 0.05, 1e-4];
const ALONE: [Method; 5] = [Method::Mixture, Method::Balanced, Method::Robbins, Method::Centred, Method::OneSided];

#[test]
fn at_the_threshold_a_test_stops_no_more_often_than_promised() {
    for p in THRESHOLDS {
        for error in ERRORS {
            for method in ALONE {
                let test = Test::new(p, error.ln(), method).unwrap();
                let power = test.power(p, 3000).unwrap();
                let promised = if method == Method::OneSided { 2.0 * error } else { error };
                let stopped = power.holds + power.fails;
                assert!(stopped <= promised, "{method} at {p}, {error}: stops with {stopped}");
                // The test uses a considerable part of its error.
                assert!(p == 0.001 || stopped > 0.1 * promised, "{method} at {p}, {error}: only {stopped}");
                assert!(power.holds <= error && power.fails <= error, "{method} at {p}, {error}: {power:?}");
            }
        }
    }
}

#[test]
fn a_one_sided_test_stops_at_its_threshold_with_up_to_twice_its_error() {
    // Each direction alone keeps the error; at the threshold the two add up.
    let stopped = |p: f64, error: f64, trials| {
        let test = Test::new(p, error.ln(), Method::OneSided).unwrap();
        let power = test.power(p, trials).unwrap();
        assert!(power.holds <= error && power.fails <= error, "{p}: {power:?}");
        (power.holds + power.fails) / error
    };
    assert!(stopped(0.5, 0.05, 20_000) > 1.5);
    for p in [0.1, 0.5, 0.9, 0.98] {
        assert!((1.0..=2.0).contains(&stopped(p, 0.01, 20_000)), "{p}: {}", stopped(p, 0.01, 20_000));
    }
}

#[test]
fn a_test_proves_the_wrong_side_no_more_often_than_promised() {
    for p in THRESHOLDS {
        for factor in [0.98, 0.8, 0.3] {
            for method in ALONE {
                let error = 0.05;
                let test = Test::new(p, f64::ln(error), method).unwrap();
                let below = test.power(p * factor, 1500).unwrap();
                let above = test.power(1.0 - (1.0 - p) * factor, 1500).unwrap();
                assert!(below.holds <= error, "{method} at {p}: above by mistake {}", below.holds);
                assert!(above.fails <= error, "{method} at {p}: below by mistake {}", above.fails);
            }
        }
    }
}

#[test]
fn between_two_thresholds_each_mistake_is_as_rare_as_promised() {
    for (low, high) in [(0.96, 0.98), (0.4, 0.6), (0.001, 0.01)] {
        for error in ERRORS {
            for method in Method::ALL {
                if matches!(method, Method::Balanced | Method::Mixture) {
                    continue;
                }
                let test = Test::between(low, high, error.ln(), method).unwrap();
                let at_low = test.power(low, 2000).unwrap();
                let at_high = test.power(high, 2000).unwrap();
                assert!(at_low.holds <= error, "{method} {low}: {}", at_low.holds);
                assert!(at_high.fails <= error, "{method} {high}: {}", at_high.fails);
            }
        }
    }
}

#[test]
fn a_drivers_verdict_is_wrong_no_more_often_than_promised() {
    let error = 0.1;
    let wrong = |claim, rate, fails: bool| {
        let power = Setup::new(claim, error).power(rate, 2000).unwrap();
        if fails { power.fails } else { power.holds }
    };
    let within = Claim::Within { low: 0.9, high: 0.95 };
    for (claim, rate, fails) in [
        (Claim::AtLeast(0.9), 0.9, true),
        (Claim::AtLeast(0.9), 0.8999, false),
        (Claim::AtMost(0.1), 0.1, true),
        (Claim::AtMost(0.1), 0.1001, false),
        (within, 0.9, false),
        (within, 0.95, false),
        (within, 0.925, true),
        (Claim::Between { low: 0.9, high: 0.95 }, 0.9, false),
        (Claim::Between { low: 0.9, high: 0.95 }, 0.95, true),
    ] {
        let probability = wrong(claim, rate, fails);
        assert!(probability <= error, "{claim:?} at {rate}: {probability}");
    }
}

/// The probability that a driver is wrong within `trials` trials: its verdict is wrong, or its interval misses the rate
/// after some trial.
fn ever_wrong(setup: &Setup, rate: f64, trials: u64) -> f64 {
    let is_wrong = |verdict| match (setup.claim, verdict) {
        // At a threshold neither verdict is right.
        (Claim::AtLeast(p), Verdict::Holds) | (Claim::AtMost(p), Verdict::Fails) => rate <= p,
        (Claim::AtLeast(p), Verdict::Fails) | (Claim::AtMost(p), Verdict::Holds) => rate >= p,
        (Claim::Within { low, high }, Verdict::Holds) => rate <= low || rate >= high,
        (Claim::Within { low, high }, Verdict::Fails) => low <= rate && rate <= high,
        (Claim::Between { low, .. }, Verdict::Holds) => rate <= low,
        (Claim::Between { high, .. }, Verdict::Fails) => rate >= high,
    };
    let mut alive = vec![1.0];
    let mut wrong = 0.0;
    for n in 1..=trials {
        one_more_trial(&mut alive, rate);
        for (s, mass) in alive.iter_mut().enumerate() {
            if *mass < 1e-9 {
                continue;
            }
            let status = Driver::resume(setup, n, s as u64).unwrap().status();
            let decided = match status.progress {
                Progress::Decided(verdict) => Some(verdict),
                _ => None,
            };
            if decided.is_some_and(is_wrong) || !status.interval.contains(rate) {
                wrong += *mass;
            }
            if decided.is_some() || !status.interval.contains(rate) {
                *mass = 0.0;
            }
        }
    }
    wrong
}

#[test]
fn verdict_and_interval_together_are_wrong_no_more_often_than_promised() {
    let error = 0.1;
    let mut worst = 0.0f64;
    for (claim, rates) in [
        (Claim::AtLeast(0.9), &[0.85, 0.899, 0.9, 0.901, 0.95][..]),
        (Claim::AtMost(0.5), &[0.5, 0.501, 0.45]),
        (Claim::Within { low: 0.7, high: 0.9 }, &[0.7, 0.8, 0.9]),
        (Claim::Between { low: 0.7, high: 0.9 }, &[0.7, 0.8, 0.9]),
    ] {
        for &rate in rates {
            let wrong = ever_wrong(&Setup::new(claim, error), rate, 150);
            assert!(wrong <= error, "{claim:?} at {rate}: {wrong}");
            worst = worst.max(wrong);
        }
    }
    // In the worst case, more than half of the error is used.
    assert!(worst > 0.5 * error, "{worst}");
}

#[test]
fn an_interval_agrees_with_the_verdict() {
    for (claim, method) in [
        (Claim::AtLeast(0.8), Method::Mixture),
        (Claim::AtLeast(0.8), Method::Balanced),
        (Claim::AtMost(0.8), Method::Robbins),
        (Claim::AtMost(0.8), Method::OneSided),
    ] {
        for s in 0..=60 {
            let status = Driver::resume(&Setup::new(claim, 0.05).method(method), 60, s).unwrap().status();
            let Interval { low, high } = status.interval;
            let is_above = match (claim, status.progress) {
                (_, Progress::Running | Progress::AtLimit) => None,
                (Claim::AtLeast(_), Progress::Decided(verdict)) => Some(verdict == Verdict::Holds),
                (_, Progress::Decided(verdict)) => Some(verdict == Verdict::Fails),
            };
            let agrees = match is_above {
                None => low <= 0.8 && high >= 0.8,
                Some(true) => low >= 0.8,
                Some(false) => high <= 0.8,
            };
            assert!(agrees && low <= high, "{claim:?} {method}, {s} of 60: {status:?}");
        }
    }
}

/// Updates the probabilities of each number of successes for a further trial.
fn one_more_trial(mass: &mut Vec<f64>, rate: f64) {
    mass.push(0.0);
    for s in (0..mass.len()).rev() {
        let before = if s == 0 { 0.0 } else { mass[s - 1] };
        mass[s] = mass[s] * (1.0 - rate) + before * rate;
    }
}

/// The probability that the interval misses the rate after some trial.
fn ever_missed(rate: f64, trials: u64, interval: impl Fn(u64, u64) -> Interval) -> f64 {
    let mut alive = vec![1.0];
    let mut missed = 0.0;
    for n in 1..=trials {
        one_more_trial(&mut alive, rate);
        for (s, mass) in alive.iter_mut().enumerate() {
            if *mass > 1e-12 && !interval(n, s as u64).contains(rate) {
                missed += std::mem::take(mass);
            }
        }
    }
    missed
}

#[test]
fn the_watched_interval_misses_no_more_often_than_promised_and_the_fixed_one_does() {
    for rate in [0.9, 0.5, 0.01] {
        let missed = ever_missed(rate, 300, |n, s| interval::watched(n, s, 0.05).unwrap());
        assert!(missed <= 0.05, "watched at {rate}: {missed}");
        assert!(missed > 0.005, "watched at {rate} is far too wide: {missed}");
    }
    let missed = ever_missed(0.9, 300, |n, s| interval::fixed(n, s, 0.05).unwrap());
    assert!(missed > 0.2, "an interval for a fixed number, watched: {missed}");
}

#[test]
fn at_one_number_of_trials_the_fixed_interval_misses_no_more_often_than_promised() {
    let (n, error) = (60u64, 0.05);
    for rate in [0.01, 0.3, 0.5, 0.9, 0.99] {
        let mut mass = vec![1.0];
        for _ in 0..n {
            one_more_trial(&mut mass, rate);
        }
        let misses = |s: u64| !interval::fixed(n, s, error).unwrap().contains(rate);
        let missed: f64 = (0..=n).filter(|&s| misses(s)).map(|s| mass[s as usize]).sum();
        assert!(missed <= error, "{rate}: {missed}");
    }
}

#[test]
fn a_quantiles_ranks_miss_no_more_often_than_promised() {
    // Among independent values without ties, the number of values below the quantile is a number of successes at the
    // rate q.
    for q in [0.5, 0.9] {
        let ranks: Vec<_> = (0..=400).map(|n| quantile::ranks(n, q, 0.1).unwrap()).collect();
        let missed = ever_missed(q, 400, |n, s| {
            let ranks = ranks[n as usize];
            let holds = ranks.low <= s && s < ranks.high;
            if holds { Interval { low: 0.0, high: 1.0 } } else { Interval { low: 2.0, high: 3.0 } }
        });
        assert!(missed <= 0.1 && missed > 0.02, "{q}: {missed}");
    }
}

#[test]
fn power_agrees_with_the_boundary_walked_by_hand() {
    // Five trials by Robbins' criterion with eps = 0.3. For s = n, (n+1) C(n,s) / 2^n is 1 at n = 1, 3/4 at n = 2, 1/2
    // at n = 3, 5/16 at n = 4, and 6/32 at n = 5.
    let test = Test::new(0.5, 0.3f64.ln(), Method::Robbins).unwrap();
    let power = test.power(0.5, 5).unwrap();
    assert_eq!((power.holds, power.fails), (1.0 / 32.0, 1.0 / 32.0));
    assert_eq!(power.mean_trials, 5.0);
    assert_eq!(test.stop(5, 5).unwrap().stop, Some(Direction::Above));
    assert_eq!(test.stop(4, 4).unwrap().stop, None);
}
