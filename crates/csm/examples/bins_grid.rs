//! Draws `docs/bins.svg`: the fill of all bins when the first is full, over a grid of bins and capacities.
//!
//! `cargo run --release -p millstream-csm --example bins_grid > docs/bins.svg`
//!
//! Each facet is the distribution of the fill in up to 100 000 exact trials. The seeds are fixed, so the picture is the
//! same on every machine.

use std::fmt::Write as _;

use millstream_csm::bins::{Bins, Poissonised};
use millstream_csm::random::Random;

const BINS: [u32; 4] = [10, 100, 1000, 10_000];
const CAPACITIES: [u32; 5] = [15_000, 30_000, 60_000, 128_000, 256_000];

/// The number of trials of a facet, within a limit on the number of bins looked at.
const BINS_LOOKED_AT: u32 = 100_000_000;
const MAX_TRIALS: u32 = 100_000;

/// The axis of every facet.
const LEFT: f64 = 0.95;
const RIGHT: f64 = 1.0;
const COLUMNS: usize = 100;

/// Sizes in pixels.
const MARGIN_LEFT: f64 = 92.0;
const MARGIN_TOP: f64 = 78.0;
const WIDTH: f64 = 158.0;
const HEIGHT: f64 = 92.0;
const GAP: f64 = 14.0;

const INK: &str = "#1f2937";
const PALE_INK: &str = "#55606f";

fn main() {
    print!("{}", picture());
}

fn picture() -> String {
    let width = MARGIN_LEFT + CAPACITIES.len() as f64 * (WIDTH + GAP) + 12.0;
    let height = MARGIN_TOP + BINS.len() as f64 * (HEIGHT + GAP) + 44.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\" aria-label=\"Distribution of the fill of all bins when the first is full, for 10 to 10 000 bins of \
         15 000 to 256 000 balls\" font-family=\"system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif\" \
         font-size=\"12.2\">\n<rect width=\"{width}\" height=\"{height}\" rx=\"10\" fill=\"#ffffff\"/>\n"
    );
    text(&mut svg, 24.0, 30.0, "start", INK, "How full are all bins when the first is full?");
    text(&mut svg, 24.0, 48.0, "start", PALE_INK, "share of all places in use; the line is the mean");
    for (row, bins) in BINS.into_iter().enumerate() {
        let top = MARGIN_TOP + row as f64 * (HEIGHT + GAP);
        text(&mut svg, MARGIN_LEFT - 10.0, top + HEIGHT / 2.0, "end", INK, &format!("{} bins", thousands(bins)));
        for (column, capacity) in CAPACITIES.into_iter().enumerate() {
            let left = MARGIN_LEFT + column as f64 * (WIDTH + GAP);
            if row == 0 {
                let title = format!("{} a bin", thousands(capacity));
                text(&mut svg, left + WIDTH / 2.0, top - 9.0, "middle", INK, &title);
            }
            facet(&mut svg, left, top, &fills(Bins::new(bins, capacity).expect("a small grid")));
            if row + 1 == BINS.len() {
                axis(&mut svg, left, top + HEIGHT);
            }
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// The fills of independent trials.
fn fills(bins: Bins) -> Vec<f64> {
    let mut sampler = Poissonised::new(bins);
    let mut random = Random::seeded(bins.places());
    let trials = (BINS_LOOKED_AT / bins.bins()).min(MAX_TRIALS);
    (0..trials).map(|_| bins.fill(sampler.balls(&mut random))).collect()
}

/// One distribution, as the outline of a histogram whose highest column fills the facet.
fn facet(svg: &mut String, left: f64, top: f64, fills: &[f64]) {
    let mut columns = [0_u32; COLUMNS];
    for fill in fills {
        let column = (fill - LEFT) / (RIGHT - LEFT) * COLUMNS as f64;
        if column >= 0.0 {
            columns[(column as usize).min(COLUMNS - 1)] += 1;
        }
    }
    let highest = f64::from(*columns.iter().max().expect("a facet has columns"));
    let mean = fills.iter().sum::<f64>() / fills.len() as f64;
    let bottom = top + HEIGHT;
    let _ = writeln!(svg, "<rect x=\"{left}\" y=\"{top}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#f7f8fa\"/>");
    let _ = write!(svg, "<path fill=\"#9dbfe3\" stroke=\"#3c74b4\" d=\"M{left} {bottom}");
    for (index, &count) in columns.iter().enumerate() {
        let y = bottom - 0.9 * HEIGHT * f64::from(count) / highest;
        let (from, to) = (x(left, index), x(left, index + 1));
        let _ = write!(svg, "L{from:.1} {y:.1}L{to:.1} {y:.1}");
    }
    let _ = writeln!(svg, "L{:.1} {bottom}Z\"/>", left + WIDTH);
    let at = left + (mean - LEFT) / (RIGHT - LEFT) * WIDTH;
    let _ = writeln!(svg, "<path stroke=\"{INK}\" d=\"M{at:.1} {top}V{bottom}\"/>");
    text(svg, left + 6.0, top + 16.0, "start", INK, &format!("{:.2} %", 100.0 * mean));
}

fn x(left: f64, column: usize) -> f64 {
    left + WIDTH * column as f64 / COLUMNS as f64
}

fn axis(svg: &mut String, left: f64, bottom: f64) {
    for percent in [95, 96, 97, 98, 99, 100] {
        let at = left + (f64::from(percent) / 100.0 - LEFT) / (RIGHT - LEFT) * WIDTH;
        let _ = writeln!(svg, "<path stroke=\"{PALE_INK}\" d=\"M{at:.1} {bottom}v5\"/>");
        if percent % 2 == 0 {
            text(svg, at, bottom + 19.0, "middle", PALE_INK, &format!("{percent} %"));
        }
    }
}

fn text(svg: &mut String, x: f64, y: f64, anchor: &str, colour: &str, words: &str) {
    let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{words}</text>");
}

/// The number with a thin space between groups of three digits.
fn thousands(number: u32) -> String {
    if number < 1000 { number.to_string() } else { format!("{}\u{2009}{:03}", number / 1000, number % 1000) }
}
