//! What the numbers cost: nanoseconds for a level and a binomial coefficient, microseconds for a Beta bound.
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
            let cost = nanoseconds(200, |i| {
                let eps = eps * (1.0 + i as f64 * 1e-6);
                black_box(beta_bound(a, b, black_box(eps), Side::Low).expect("a valid question"));
            });
            print!("  {eps:e}: {:<8.1}", cost * 1e-3);
        }
        println!();
    }
}
