//! The mean number of trials of each method, by exact computation.

mod peers {
    pub(crate) mod beta_binomial;
}

use millstream_csm::{Claim, Method, Setup, Test};
use peers::beta_binomial::tuned_trials;

fn mean_trials(method: Method, threshold: f64, rate: f64, error: f64) -> f64 {
    let power = Test::new(threshold, error.ln(), method).unwrap().power(rate, 30_000).unwrap();
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
fn the_balanced_method_needs_at_most_seven_tenths_of_robbins_trials() {
    for (threshold, rate, error) in [(0.98, 0.993, 1e-3), (0.99, 0.999, 1e-3), (0.95, 0.97, 0.05)] {
        let ratio = mean_trials(Method::Balanced, threshold, rate, error)
            / mean_trials(Method::Robbins, threshold, rate, error);
        assert!(ratio <= 0.7, "{threshold}, {rate}, {error}: {ratio}");
    }
}

#[test]
fn the_default_needs_no_more_trials_than_a_mixture_tuned_to_the_answer() {
    // The default method does not know the true rate, and its number includes the cost of the interval.
    for (threshold, rate, error) in [
        (0.98, 0.993, 1e-3),
        (0.99, 0.999, 1e-3),
        (0.99, 0.999, 1e-6),
        (0.95, 0.97, 0.05),
        (0.98, 0.83, 0.05),
        (0.95, 0.99, 1e-6),
        (0.9, 0.99, 0.05),
    ] {
        let ours = Setup::new(Claim::AtLeast(threshold), error).power(rate, 12_000).unwrap().mean_trials;
        let tuned = tuned_trials(threshold, rate, error, 12_000);
        println!("{threshold} {rate} {error:e}: {ours:.1} {tuned:.1} {:.3}", ours / tuned);
        assert!(ours <= tuned, "{threshold}, {rate}, {error}: {ours} and {tuned}");
    }
}
