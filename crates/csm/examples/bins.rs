//! Decides the two questions of Paul Khuong's article about balls and bins.
//!
//! ```sh
//! cargo run --release -p millstream-csm --example bins
//! ```
//!
//! Do 1000 bins of 30 000 balls reach a fill of 97.5 % in at least 98 % of all cases before the first bin is full? And
//! do 1000 bins of 128 000 balls fill better than 100 bins of 60 000, or is the difference due to chance? The program
//! simulates every ball, so the answers take a minute.

use std::error::Error;

use millstream_csm::bins::Bins;
use millstream_csm::permutation::{Null, Permutation, Tail, mean_difference};
use millstream_csm::random::Random;
use millstream_csm::{Claim, Driver, Setup};

fn main() -> Result<(), Box<dyn Error>> {
    let mut random = Random::seeded(1);

    let mut bins = Bins::new(1000, 30_000)?;
    let mut driver = Driver::new(&Setup::new(Claim::AtLeast(0.98), 1e-3))?;
    let status = driver.run(|| bins.fill(&mut random) >= 0.975, |_| ());
    let (low, high) = (status.interval.low, status.interval.high);
    println!("a fill of 97.5 % in at least 98 % of all cases: {:?}", status.progress);
    println!("  {} of {} trials; the rate is between {low:.4} and {high:.4}", status.successes, status.trials);

    let mut sample = |bins, capacity| -> Result<Vec<f64>, Box<dyn Error>> {
        let mut bins = Bins::new(bins, capacity)?;
        Ok((0..200).map(|_| bins.fill(&mut random)).collect())
    };
    let (few, many) = (sample(100, 60_000)?, sample(1000, 128_000)?);
    let mut test = Permutation::new(&many, &few, mean_difference, Tail::Greater, Null::default())?;
    let mut driver = Driver::new(&Setup::new(Claim::AtMost(0.01), 1e-9))?;
    let status = driver.run(|| test.draw(&mut random), |_| ());
    println!("1000 bins of 128 000 fill {:.5} better than 100 of 60 000", test.observed());
    println!("  p < 0.01: {:?}, {} of {} divisions are as extreme", status.progress, status.successes, status.trials);
    Ok(())
}
