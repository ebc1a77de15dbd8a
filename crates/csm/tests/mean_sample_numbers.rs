//! How many trials each method takes, by exact computation.

use millstream_csm::power::test_power;
use millstream_csm::process::{Method, Test, Threshold};

fn mean_trials(method: Method, threshold: f64, rate: f64, error: f64) -> f64 {
    let test = Test::new(Threshold::new(threshold).unwrap(), error.ln(), method).unwrap();
    let power = test_power(&test, rate, 30_000).unwrap();
    assert!(power.undecided < 1e-6, "{method} {threshold} {rate} {error}: {power:?}");
    power.mean_trials
}

#[test]
fn the_published_mean_sample_numbers_come_out() {
    use Method::{Centred, OneSided, Robbins};
    let cases = [
        (0.98, 0.993, 1e-3, [(Robbins, 2055), (Centred, 1403), (OneSided, 1339)]),
        (0.99, 0.999, 1e-6, [(Robbins, 2960), (Centred, 2216), (OneSided, 2261)]),
    ];
    for (threshold, rate, error, expected) in cases {
        for (method, mean) in expected {
            let found = mean_trials(method, threshold, rate, error);
            assert_eq!(found.round() as u64, mean, "{method} at {threshold}, {rate}, {error}: {found}");
        }
    }
}

#[test]
fn the_default_needs_at_most_seven_tenths_of_robbins_trials_where_it_matters() {
    for (threshold, rate, error) in [(0.98, 0.993, 1e-3), (0.99, 0.999, 1e-3), (0.95, 0.97, 0.05)] {
        let ratio = mean_trials(Method::Balanced, threshold, rate, error)
            / mean_trials(Method::Robbins, threshold, rate, error);
        assert!(ratio <= 0.7, "{threshold}, {rate}, {error}: {ratio}");
    }
}
