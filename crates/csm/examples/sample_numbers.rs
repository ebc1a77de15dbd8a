//! Prints the mean number of trials that each method needs for a decision, and that of a beta-binomial mixture tuned to
//! the true rate. For each method, it also prints the probability of a stop if the rate equals the threshold, relative
//! to the error. All numbers are computed exactly.
//!
//! `cargo run --release -p millstream-csm --example sample_numbers`

#[path = "../tests/peers/beta_binomial.rs"]
mod beta_binomial;

use std::error::Error;

use millstream_csm::{Method, Test};

const METHODS: [Method; 5] = [Method::Robbins, Method::Centred, Method::OneSided, Method::Balanced, Method::Mixture];

/// The rows of the table in `docs/evidence.md`.
const PUBLISHED: [(f64, f64, f64); 10] = [
    (0.98, 0.993, 1e-3),
    (0.99, 0.999, 1e-3),
    (0.99, 0.999, 1e-6),
    (0.95, 0.97, 0.05),
    (0.98, 0.83, 0.05),
    (0.95, 0.99, 1e-6),
    (0.9, 0.99, 0.05),
    (0.99, 0.97, 1e-6),
    (0.98, 0.96, 1e-3),
    (0.5, 0.6, 1e-3),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("One threshold: mean trials (share of the error used up at the threshold)");
    print!("{:>9} {:>6} {:>6}", "threshold", "rate", "error");
    METHODS.iter().for_each(|method| print!("{:>18}", method.to_string()));
    println!("{:>9}{:>9}", "tuned", "ratio");
    let mut worst: (f64, String) = (0.0, String::new());
    for (threshold, rate, error) in PUBLISHED {
        row(threshold, rate, error, &mut worst)?;
    }
    for threshold in [0.5, 0.7, 0.9, 0.95, 0.98, 0.99, 0.999] {
        for odds_ratio in [10.0, 4.0, 2.0, 0.5, 0.25, 0.1, 0.02] {
            for error in [0.05, 1e-3, 1e-6] {
                let odds = threshold / (1.0 - threshold) * odds_ratio;
                row(threshold, odds / (1.0 + odds), error, &mut worst)?;
            }
        }
    }
    println!("worst ratio of the default to the tuned beta-binomial mixture: {:.3} at {}", worst.0, worst.1);

    println!("\nTwo thresholds, 0.96 and 0.98, error 1e-3 each: mean trials");
    println!("{:>6} {:>9} {:>9} {:>9} {:>9}", "rate", "robbins", "one-sided", "sprt", "blend");
    for rate in [0.93, 0.95, 0.96, 0.965, 0.97, 0.975, 0.98, 0.99] {
        print!("{rate:>6}");
        for method in [Method::Robbins, Method::OneSided, Method::Sprt, Method::Blend] {
            let test = Test::between(0.96, 0.98, 1e-3f64.ln(), method)?;
            print!("{:>10.0}", test.power(rate, 60_000)?.mean_trials);
        }
        println!();
    }
    Ok(())
}

fn row(threshold: f64, rate: f64, error: f64, worst: &mut (f64, String)) -> Result<(), Box<dyn Error>> {
    print!("{threshold:>9} {rate:>6.4} {error:>6.0e}");
    let mut means = [0.0; METHODS.len()];
    for (method, mean) in METHODS.into_iter().zip(&mut means) {
        let test = Test::new(threshold, error.ln(), method)?;
        let power = test.power(rate, 40_000)?;
        let at_threshold = test.power(threshold, 4000)?;
        *mean = power.mean_trials;
        let lost = if power.undecided > 1e-3 { "!" } else { "" };
        print!("{mean:>9.1}{lost} ({:.3})", (at_threshold.holds + at_threshold.fails) / error);
    }
    let tuned = beta_binomial::tuned_trials(threshold, rate, error, 40_000);
    let ratio = means[4] / tuned;
    println!("{tuned:>9.1}{ratio:>9.3}");
    if ratio > worst.0 {
        *worst = (ratio, format!("{threshold} {rate:.4} {error:e}"));
    }
    Ok(())
}
