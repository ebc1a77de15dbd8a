//! Curves of throughput over the number of threads.

use std::fmt::Write;

use super::{COLOURS, Scale, TOP, page};
use crate::compare::{Comparison, median};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 72.0;
const PLOT_WIDTH: f64 = 420.0;
const PLOT_HEIGHT: f64 = 270.0;

/// One curve for each competitor.
#[derive(Debug, Default)]
pub struct Curves(Vec<Curve>);

#[derive(Debug)]
struct Curve {
    name: String,
    /// Number of threads and throughput at each point.
    points: Vec<(usize, f64)>,
}

impl Curves {
    /// Adds the medians of a comparison, converted to throughput by `rate`, to the curves of its competitors.
    pub fn add(&mut self, threads: usize, comparison: &Comparison, rate: impl Fn(f64) -> f64) {
        for figures in &comparison.figures {
            let point = (threads, rate(median(&figures.rounds)));
            match self.0.iter_mut().find(|curve| curve.name == figures.name) {
                Some(curve) => curve.points.push(point),
                None => self.0.push(Curve { name: figures.name.clone(), points: vec![point] }),
            }
        }
    }

    /// Draws the picture; `said` names the vertical axis.
    #[must_use]
    pub fn draw(&self, title: &str, said: &str) -> String {
        let points = || self.0.iter().flat_map(|curve| &curve.points);
        let scale = Scale::around(points().map(|&(_, rate)| rate), (TOP + PLOT_HEIGHT, TOP));
        let most = points().map(|&(threads, _)| threads).max().unwrap_or(1);
        let x = |threads: usize| LEFT + PLOT_WIDTH * (threads as f64 - 0.5) / most as f64;
        let mut drawing = String::new();
        for (y, label) in scale.ticks() {
            let _ = writeln!(
                drawing,
                "<path class=\"rule\" d=\"M{LEFT} {y:.1}H{:.1}\"/>\
                 <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                LEFT + PLOT_WIDTH,
                LEFT - 6.0,
                y + 4.0,
            );
        }
        let mut counts: Vec<usize> = points().map(|&(threads, _)| threads).collect();
        counts.sort_unstable();
        counts.dedup();
        for threads in counts {
            let plural = if threads == 1 { "" } else { "s" };
            let _ = writeln!(
                drawing,
                "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{threads} thread{plural}</text>",
                x(threads),
                TOP + PLOT_HEIGHT + 24.0,
            );
        }
        for (number, curve) in self.0.iter().enumerate() {
            let colour = COLOURS[number % COLOURS.len()];
            let mut path = String::new();
            for &(threads, rate) in &curve.points {
                let (x, y) = (x(threads), scale.at(rate));
                let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { 'M' } else { 'L' });
                let _ = writeln!(drawing, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\" fill=\"{colour}\"/>");
            }
            let _ = writeln!(drawing, "<path class=\"curve\" stroke=\"{colour}\" d=\"{path}\"/>");
            legend(&mut drawing, number, colour, &curve.name);
        }
        page(WIDTH, HEIGHT, title, said, &drawing)
    }
}

fn legend(drawing: &mut String, number: usize, colour: &str, name: &str) {
    let (left, top) = (LEFT + PLOT_WIDTH + 24.0, TOP + 16.0 + 30.0 * number as f64);
    let _ = writeln!(
        drawing,
        "<path class=\"curve\" stroke=\"{colour}\" d=\"M{left:.1} {:.1}h18\"/><text x=\"{:.1}\" y=\"{top:.1}\">{name}</text>",
        top - 4.0,
        left + 24.0,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Figures, Role};

    #[test]
    fn each_competitor_has_a_curve_through_all_numbers_of_threads() {
        let comparison = |figure: f64| Comparison {
            unit: "ns",
            figures: ["ours", "peer"]
                .map(|name| Figures { name: name.into(), role: Role::Peer, rounds: vec![figure] })
                .into(),
        };
        let mut curves = Curves::default();
        curves.add(1, &comparison(4.0), |ns| 1e3 / ns);
        curves.add(4, &comparison(20.0), |ns| 1e3 / ns);
        let svg = curves.draw("Title", "up");
        assert_eq!(svg.matches("<circle").count(), 4);
        assert_eq!(svg.matches("<path class=\"curve\" stroke").count(), 4, "two curves, two entries of the legend");
        assert!(svg.contains(">ours<") && svg.contains(">1 thread<") && svg.contains(">4 threads<"), "{svg}");
    }
}
