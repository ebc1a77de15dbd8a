//! The cost of a level, by method, over a grid of thresholds, numbers of trials, and strengths of the evidence.
//!
//! ```sh
//! cargo run --release -p millstream-csm --example level_cost
//! ```
//!
//! A cell of the grid is a threshold, a number of trials, and a distance of the observed rate from the threshold in
//! standard deviations. Its cost is the median of nine runs over counts near these values. For counts that are evidence
//! against a direction, the level costs almost nothing, so only counts in favour of the direction are measured.

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use millstream_csm::{Method, Test};

const METHODS: [Method; 4] = [Method::Robbins, Method::Centred, Method::OneSided, Method::Balanced];
const THRESHOLDS: [f64; 7] = [0.5, 0.7, 0.9, 0.95, 0.98, 0.99, 0.999];
const TRIALS: [u64; 9] = [30, 100, 300, 1000, 10_000, 100_000, 1_000_000, 1_000_000_000, 1_000_000_000_000];
const DEVIATIONS: [f64; 14] = [-20.0, -8.0, -5.0, -4.0, -3.0, -2.0, -1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 8.0, 20.0];

fn main() -> Result<(), Box<dyn Error>> {
    for method in METHODS {
        let mut cells = Vec::new();
        for threshold in THRESHOLDS {
            let test = Test::new(threshold, 1e-6f64.ln(), method)?;
            for trials in TRIALS {
                for deviations in DEVIATIONS {
                    if let Some(cost) = cost(&test, threshold, trials, deviations) {
                        cells.push((cost, threshold, trials, deviations));
                    }
                }
            }
        }
        cells.sort_by(|one, other| one.0.total_cmp(&other.0));
        let rank = |part: f64| cells[((cells.len() - 1) as f64 * part) as usize].0;
        println!(
            "{method}: a level in {:.0} ns (median of {} cells; 90 % within {:.0}, 99 % within {:.0}), at worst:",
            rank(0.5),
            cells.len(),
            rank(0.9),
            rank(0.99)
        );
        for (cost, threshold, trials, deviations) in cells.iter().rev().take(6) {
            println!("  {cost:5.0} ns  threshold {threshold}, {trials} trials, {deviations:+} deviations");
        }
    }
    Ok(())
}

/// Nanoseconds per level, or `None` if no counts are in the cell.
fn cost(test: &Test, threshold: f64, trials: u64, deviations: f64) -> Option<f64> {
    const COUNTS: usize = 64;
    let n = trials as f64;
    let deviation = (n * threshold * (1.0 - threshold)).sqrt();
    let counts: Vec<(u64, u64)> = (0..COUNTS as u64)
        .map(|i| {
            // Each computation has different counts.
            let trials = trials + i * (trials / 1000);
            let near = deviations * (1.0 + 0.002 * i as f64);
            (trials, trials as f64 * threshold + near * deviation)
        })
        .filter(|&(trials, successes)| successes >= -0.5 && successes <= trials as f64 + 0.5)
        .map(|(trials, successes)| (trials, (successes.round() as u64).min(trials)))
        .collect();
    if counts.len() < COUNTS {
        return None;
    }
    let mut runs: Vec<f64> = (0..9)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..4 {
                for &(trials, successes) in &counts {
                    black_box(test.stop(black_box(trials), black_box(successes)).expect("a valid question"));
                }
            }
            start.elapsed().as_secs_f64() * 1e9 / (4 * COUNTS) as f64
        })
        .collect();
    runs.sort_by(f64::total_cmp);
    Some(runs[4])
}
