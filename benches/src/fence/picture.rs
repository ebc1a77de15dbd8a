//! A picture of the distributions: the share of fences up to each duration, on a logarithmic scale of time.

use std::fmt::Write;

use crate::fence::load::Load;
use crate::fence::method::NAMES;
use crate::fence::sample::Samples;
use crate::fence::verdict::sorted;
use crate::picture::{COLOURS, TOP, page};

const WIDTH: f64 = 820.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 56.0;
const PLOT_WIDTH: f64 = 510.0;
const PLOT_HEIGHT: f64 = 270.0;
/// The powers of ten of a millisecond on the scale: 1 µs to 100 ms.
const DECADES: std::ops::RangeInclusive<i32> = -3..=2;
fn x(ms: f64) -> f64 {
    let (first, last) = (f64::from(*DECADES.start()), f64::from(*DECADES.end()));
    LEFT + PLOT_WIDTH * ((ms.log10() - first) / (last - first)).clamp(0.0, 1.0)
}

/// The vertical scale ends at 99.99 %. Each step adds a nine.
const NINES: f64 = 4.0;

fn y(share_above: f64) -> f64 {
    TOP + PLOT_HEIGHT * (1.0 - (-share_above.log10() / NINES).clamp(0.0, 1.0))
}

/// Draws the picture of the samples taken under this load, as SVG.
#[must_use]
pub fn picture(samples: &Samples, load: Load) -> String {
    let title =
        format!("How long a heavy fence takes on {} machine", if load == Load::Idle { "an idle" } else { "a busy" });
    let said = format!("Vertical: the share of fences up to this duration. {} of each kind.", samples[0].len());
    let mut drawing = String::new();
    scales(&mut drawing);
    for (method, samples) in samples.iter().enumerate() {
        curve(&mut drawing, COLOURS[method], &sorted(samples));
        legend(&mut drawing, method, &sorted(samples));
    }
    page(WIDTH, HEIGHT, &title, &said, &drawing)
}

fn scales(svg: &mut String) {
    let (right, bottom) = (LEFT + PLOT_WIDTH, TOP + PLOT_HEIGHT);
    for decade in DECADES {
        let at = x(10_f64.powi(decade));
        let label = ["1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms"][(decade - DECADES.start()) as usize];
        let _ = writeln!(
            svg,
            "<path class=\"rule\" d=\"M{at:.1} {TOP}V{bottom}\"/>\
             <text class=\"tick\" x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
            bottom + 20.0,
        );
    }
    for (share, label) in
        [(1.0, "0"), (0.5, "50 %"), (0.1, "90 %"), (0.01, "99 %"), (0.001, "99.9 %"), (0.0001, "99.99 %")]
    {
        let at = y(share);
        let _ = writeln!(
            svg,
            "<path class=\"rule\" d=\"M{LEFT} {at:.1}H{right}\"/>\
             <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            LEFT - 6.0,
            at + 4.0,
        );
    }
}

/// Draws a curve through as many points as are visible.
fn curve(svg: &mut String, colour: &str, sorted: &[f64]) {
    let count = sorted.len() as f64;
    let mut path = String::new();
    let mut last = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    for (rank, ms) in sorted.iter().enumerate() {
        let (x, y) = (x(*ms), y((count - rank as f64) / count));
        if (x - last.0).abs() + (y - last.1).abs() >= 1.0 || rank + 1 == sorted.len() {
            let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { 'M' } else { 'L' });
            last = (x, y);
        }
    }
    let _ = writeln!(svg, "<path class=\"curve\" stroke=\"{colour}\" d=\"{path}\"/>");
}

fn legend(svg: &mut String, method: usize, sorted: &[f64]) {
    let (left, top) = (LEFT + PLOT_WIDTH + 18.0, TOP + 12.0 + 50.0 * method as f64);
    let at = |q: f64| sorted[((sorted.len() - 1) as f64 * q).round() as usize];
    let _ = writeln!(
        svg,
        "<path class=\"curve\" stroke=\"{}\" d=\"M{left:.1} {:.1}h18\"/><text x=\"{:.1}\" y=\"{top:.1}\">{}</text>\
         <text class=\"said\" x=\"{:.1}\" y=\"{:.1}\">{:.3} · p99 {:.3} · worst {:.1} ms</text>",
        COLOURS[method],
        top - 4.0,
        left + 24.0,
        NAMES[method],
        left,
        top + 18.0,
        at(0.5),
        at(0.99),
        at(1.0),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fence::method::COUNT;

    #[test]
    fn each_kind_has_a_curve_and_times_grow_to_the_right() {
        let samples: Samples = std::array::from_fn(|method| vec![0.01, 10_f64.powi(method as i32 - 2)]);
        let svg = picture(&samples, Load::Idle);
        assert_eq!(svg.matches("class=\"curve\" stroke").count(), 2 * COUNT);
        assert!(NAMES.iter().all(|name| svg.contains(name)));
        assert!(x(0.01) < x(0.1) && y(0.5) > y(0.01));
    }
}
