//! The cost of a trial of balls and bins, with every ball thrown and drawn exactly.
//!
//! `cargo run --release -p millstream-csm --example bins_cost`
//!
//! Each figure is the median of five runs.

use std::time::Instant;

use millstream_csm::Error;
use millstream_csm::bins::{Bins, Direct, Poissonised};
use millstream_csm::random::Random;

fn main() -> Result<(), Error> {
    let bins = Bins::new(1000, 30_000)?;
    let mut random = Random::seeded(1);
    let (mut direct, mut poissonised) = (Direct::new(bins), Poissonised::new(bins));
    let (thrown, took) = median(|| (0..10).map(|_| direct.balls(&mut random)).sum());
    println!("every ball thrown: {:.3} ns a ball, {:.2} ms a trial", took * 1e9 / thrown, took * 1e2);
    let (drawn, took) = median(|| (0..20_000).map(|_| poissonised.balls(&mut random)).sum());
    println!("drawn exactly: {:.2} µs a trial; mean fill {:.5}", took * 50.0, drawn / 20_000.0 / bins.places() as f64);
    Ok(())
}

/// The balls and the seconds of the run with the median time.
fn median(mut run: impl FnMut() -> u64) -> (f64, f64) {
    let mut runs: Vec<(f64, f64)> = (0..5)
        .map(|_| {
            let start = Instant::now();
            let balls = run() as f64;
            (balls, start.elapsed().as_secs_f64())
        })
        .collect();
    runs.sort_by(|one, other| one.1.total_cmp(&other.1));
    runs[2]
}
