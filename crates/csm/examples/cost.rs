//! The cost of the basic computations: nanoseconds for a level and a binomial coefficient, microseconds for a Beta
//! bound.
//!
//! ```sh
//! cargo run --release -p millstream-csm --example cost
//! ```
//!
//! Each figure is the median of nine runs over inputs that vary, so that nothing is computed once and reused.

use std::hint::black_box;
use std::time::Instant;

use millstream_csm::{Side, beta_bound, log_choose, robbins};

/// The median time of a call, in nanoseconds.
fn nanoseconds(calls: u64, mut call: impl FnMut(u64)) -> f64 {
    let mut runs: Vec<f64> = (0..9)
        .map(|_| {
            let start = Instant::now();
            for i in 0..calls {
                call(i);
            }
            start.elapsed().as_secs_f64() * 1e9 / calls as f64
        })
        .collect();
    runs.sort_by(f64::total_cmp);
    runs[4]
}

fn main() {
    println!("Robbins' level, ns");
    for (n, alpha) in [(100, 0.98), (10_000, 0.5), (1_000_000, 0.99), (1_000_000_000_000, 0.5)] {
        let cost = nanoseconds(200_000, |i| {
            let s = (n as f64 * alpha) as u64 - i % (n / 20);
            black_box(robbins::stop(n, black_box(alpha), s, -6.9).expect("a valid question"));
        });
        println!("  n = {n:<14} alpha = {alpha:<5} {cost:6.0}");
    }
    println!("binomial coefficient, ns");
    for n in [100, 1_000_000, 1_000_000_000_000] {
        let cost = nanoseconds(200_000, |i| {
            black_box(log_choose(n, i % n).expect("a valid question"));
        });
        println!("  n = {n:<14} {cost:20.0}");
    }
    println!("Beta bound, µs");
    let shapes =
        [(1.0, 1.0), (3972.0, 28.0), (2.0, 100.0), (901.0, 101.0), (1e6, 1e6), (3.0, 1e9), (1e12, 1.0), (1e15, 1e15)];
    for (a, b) in shapes {
        print!("  a = {a:<6e} b = {b:<6e}");
        for eps in [1e-300, 1e-9, 1e-3, 0.025, 0.1, 0.3, 0.5] {
            print!("  {eps:e}: {:<8.1}", bound(200, a, b, eps) * 1e-3);
        }
        println!();
    }
    slowest();
}

/// The cost of a Beta bound, in nanoseconds.
fn bound(calls: u64, a: f64, b: f64, eps: f64) -> f64 {
    nanoseconds(calls, |i| {
        let eps = eps * (1.0 - i as f64 * 1e-6);
        black_box(beta_bound(a, b, black_box(eps), Side::Low).expect("a valid question"));
    })
}

/// The slowest bounds on a grid that spans all shapes and errors.
fn slowest() {
    let mut sizes: Vec<f64> = (-30..=53).step_by(3).map(|power| 2f64.powi(power) * 1.0).collect();
    sizes.extend([0.5, 1.0, 2.0, 3.0, 10.0, 100.0, 1000.0, 1023.0, 1024.0, 1500.0, 4000.0, 1e6, 2f64.powi(53)]);
    let tails = [5e-324, 1e-300, 1e-100, 1e-30, 1e-12, 1e-6, 1e-3, 0.025, 0.1, 0.25, 0.4, 0.49, 0.5];
    let mut costs = Vec::new();
    for &a in &sizes {
        for &b in &sizes {
            for eps in tails.into_iter().chain(tails.map(|tail| 1.0 - tail)).filter(|&eps| eps < 1.0) {
                costs.push((bound(1, a, b, eps), a, b, eps));
            }
        }
    }
    costs.sort_by(|one, other| other.0.total_cmp(&one.0));
    println!("the slowest of {} bounds, µs; median {:.1}", costs.len(), costs[costs.len() / 2].0 * 1e-3);
    for (cost, a, b, eps) in &costs[..12] {
        println!("  a = {a:<12e} b = {b:<12e} eps = {eps:<8e} {:8.1}", cost * 1e-3);
    }
}
