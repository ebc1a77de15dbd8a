//! The cost of an observation, of an evaluation and of a complete answer.
//!
//! `cargo run --release -p millstream-csm --example update_speed`

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use millstream_csm::means::{MeanDriver, MeanSetup};
use millstream_csm::random::Random;
use millstream_csm::{Claim, Driver, Method, Setup, Test, interval, quantile};

const TRIALS: usize = 20_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut random = Random::seeded(1);
    // The rate is so near the threshold that no claim is decided.
    let outcomes: Vec<bool> = (0..TRIALS).map(|_| random.uniform() < 0.99).collect();
    for (name, setup) in [
        ("mixture", Setup::new(Claim::AtLeast(0.99), 1e-6)),
        ("robbins", Setup::new(Claim::AtLeast(0.99), 1e-6).method(Method::Robbins)),
        ("within", Setup::new(Claim::Within { low: 0.9899, high: 0.9901 }, 1e-6)),
    ] {
        let mut one = Driver::new(&setup)?;
        let single = nanoseconds(TRIALS, || outcomes.iter().for_each(|&success| _ = black_box(one.observe(success))));
        let mut many = Driver::new(&setup)?;
        let sliced = nanoseconds(TRIALS, || _ = black_box(many.observe_slice(&outcomes)));
        assert_eq!(one.status(), many.status());
        println!("{name:>9}: observe {single:.2} ns, observe_slice {sliced:.2} ns ({:?})", one.status().progress);
    }

    let values: Vec<f64> = (0..TRIALS).map(|_| random.uniform()).collect();
    let mut driver = MeanDriver::new(&MeanSetup::new(Claim::AtLeast(0.5), 1e-6, 0.0, 1.0))?;
    let mean = nanoseconds(TRIALS, || values.iter().for_each(|&value| drop(black_box(driver.observe(value)))));
    println!("     mean: observe {mean:.2} ns ({:?})", driver.status().progress);

    // Each test has a different error, because the latest tests are cached.
    let build = |i: usize| Test::new(0.99, -13.8 - i as f64 * 1e-6, Method::Balanced).unwrap();
    println!(
        "building a balanced test: {:.0} us",
        nanoseconds(20, || (1..=20).for_each(|i| drop(black_box(build(i))))) / 1e3
    );
    let test = build(0);
    let level = nanoseconds(10_000, || (0..10_000).for_each(|i| drop(black_box(test.stop(20_000, 19_800 + i % 100)))));
    println!("a level, balanced: {level:.0} ns");
    for (trials, successes) in [(1000, 990), (1_000_000, 990_000)] {
        let cost =
            nanoseconds(200, || (0..200).for_each(|_| drop(black_box(interval::watched(trials, successes, 0.05)))));
        println!("a watched interval of {trials}: {:.1} us", cost / 1e3);
    }
    let cost = nanoseconds(200, || {
        (0..200).for_each(|i| drop(black_box(interval::fixed(4000, 3900 + i % 100, 0.05))));
    });
    println!("a fixed interval of 4000: {:.1} us", cost / 1e3);
    let cost = nanoseconds(100, || (0..100).for_each(|_| drop(black_box(quantile::ranks(10_000, 0.99, 0.05)))));
    println!("a quantile's ranks of 10000: {:.1} us", cost / 1e3);
    Ok(())
}

fn nanoseconds(times: usize, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / times as f64
}
