//! Horizontal box plots of times: the box contains half of the times, its whisker reaches to 99 %, and the marks show
//! 99.9 % and the longest.

use std::fmt::Write;

use super::{COLOURS, Scale, TOP, page};
use crate::times::Quantiles;

const WIDTH: f64 = 760.0;
const LEFT: f64 = 176.0;
const PLOT_WIDTH: f64 = 550.0;
/// Distance from one box to the next.
const STEP: f64 = 40.0;
const BOX: f64 = 18.0;

/// Draws several distributions; times are on a logarithmic scale in `unit`.
#[must_use]
pub fn draw(title: &str, unit: &str, distributions: &[(&str, Quantiles)]) -> String {
    let bottom = TOP + STEP * distributions.len() as f64;
    // A coarse clock may measure zero, which a logarithmic scale cannot show.
    let of = |quantiles: &Quantiles| quantiles.map(|time| time.max(1.0));
    let scale = Scale::around(distributions.iter().flat_map(|(_, times)| of(times)), (LEFT, LEFT + PLOT_WIDTH));
    let mut drawing = String::new();
    for (x, label) in scale.ticks() {
        let _ = writeln!(
            drawing,
            "<path class=\"rule\" d=\"M{x:.1} {TOP}V{bottom}\"/>\
             <text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>",
            bottom + 20.0,
        );
    }
    for (number, (name, times)) in distributions.iter().enumerate() {
        let colour = COLOURS[number % COLOURS.len()];
        let middle = TOP + STEP * (number as f64 + 0.5);
        let [p25, p50, p75, p99, p999, most] = of(times).map(|time| scale.at(time));
        let (top, half) = (middle - BOX / 2.0, BOX / 2.0);
        let _ = writeln!(
            drawing,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{name}</text>\
             <rect x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{BOX}\" fill=\"{colour}\" fill-opacity=\"0.35\" stroke=\"{colour}\"/>\
             <path class=\"curve\" stroke=\"{colour}\" d=\"M{p50:.1} {top:.1}v{BOX}M{p75:.1} {middle:.1}H{p99:.1}M{p99:.1} {:.1}v{half}\
             M{p999:.1} {:.1}l4 4l-4 4l-4 -4z\"/>\
             <circle cx=\"{most:.1}\" cy=\"{middle:.1}\" r=\"3.5\" fill=\"{colour}\"/>",
            LEFT - 10.0,
            middle + 4.0,
            // A box without width would be invisible.
            p25 - 1.0,
            p75 - p25 + 2.0,
            middle - half / 2.0,
            middle - 4.0,
        );
    }
    let said = format!(
        "Horizontal: {unit}. Box: 25 to 75 %, with the median; whisker: 99 %; diamond: 99.9 %; dot: the longest."
    );
    page(WIDTH, bottom + 36.0, title, &said, &drawing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_distribution_has_a_box_and_times_grow_to_the_right() {
        let svg = draw("Title", "cycles", &[("a", [0.0, 26.0, 26.0, 52.0, 78.0, 1e7]), ("b", [26.0; 6])]);
        assert_eq!(svg.matches("<rect").count(), 3, "the page and two boxes");
        assert!(svg.contains(">a<") && svg.contains(">b<") && svg.contains(">10 M<"), "{svg}");
    }
}
