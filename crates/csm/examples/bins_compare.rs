//! Do 1000 bins of 128 000 balls really fill better than 100 bins of 60 000, or was that luck?
//!
//! `cargo run --release -p millstream-csm --example bins_compare`
//!
//! Ten thousand fills of each layout, and the permutation test of their difference: if both came from one distribution,
//! a random division of all fills into two halves would show as large a difference of means now and then. The p-value
//! is how often, and a driver watches it until it is decided whether it lies below 0.5 % or above 1 %, with an error of
//! one in a billion. The question and its numbers are Paul Khuong's.

use millstream_csm::bins::{Bins, Poissonised};
use millstream_csm::permutation::{Null, Permutation, Tail, mean_difference};
use millstream_csm::random::Random;
use millstream_csm::{Claim, Error, Progress, Setup, Status, Verdict};

const FILLS: usize = 10_000;

fn main() -> Result<(), Error> {
    let small = fills(Bins::new(100, 60_000)?, 1);
    let large = fills(Bins::new(1000, 128_000)?, 2);
    println!("mean fill of  100 bins of  60 000: {:.7}", mean(&small));
    println!("mean fill of 1000 bins of 128 000: {:.7}", mean(&large));
    let mut test = Permutation::new(&small, &large, mean_difference, Tail::Greater, Null::SAME)?;
    println!("difference {:.7}\n\ndivisions  as large  p-value lies in", test.observed());

    // Above 0.5 % the claim may hold, below 1 % it may fail.
    let setup = Setup::new(Claim::Between { low: 0.005, high: 0.01 }, 1e-9);
    let status = test.decide(&setup, &mut Random::seeded(3), report)?;
    match status.progress {
        Progress::Decided(Verdict::Fails) => println!("the difference is real: p < 0.01"),
        _ => println!("the difference may be chance: p > 0.005"),
    }
    Ok(())
}

fn fills(bins: Bins, seed: u64) -> Vec<f64> {
    let (mut sampler, mut random) = (Poissonised::new(bins), Random::seeded(seed));
    (0..FILLS).map(|_| bins.fill(sampler.balls(&mut random))).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn report(status: &Status) {
    let Status { trials, successes, interval, .. } = status;
    println!("{trials:>9}  {successes:>8}  [{:.6}, {:.6}]", interval.low, interval.high);
}
