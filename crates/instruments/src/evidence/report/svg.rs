//! The answer as a picture that can be embedded in a web page or a Markdown file: the thresholds, the estimate, the
//! interval, and the shape of the posterior under a uniform prior.
//!
//! The shape is the Beta density. Its logarithm, s ln p + (n − s) ln(1 − p), is reduced by its maximum before it is
//! exponentiated, so that nothing over- or underflows however many outcomes there are. For a mean it is the bell curve
//! that approximates the distribution of the mean of many values. The shape is only an illustration; the verdict and
//! the interval do not depend on it. The colours follow the reader's light or dark setting, and the picture loads no
//! other file.

use std::fmt::Write as _;

use millstream_command::screen::xml::escape;

use super::super::answer::Answer;
use super::super::number;
use super::text;

const WIDTH: f64 = 680.0;
const HEIGHT: f64 = 272.0;
/// The plot extends from `LEFT` to `RIGHT`, and from `TOP` to `FLOOR`.
const LEFT: f64 = 32.0;
const RIGHT: f64 = WIDTH - 32.0;
const TOP: f64 = 98.0;
const FLOOR: f64 = 186.0;

const STYLE: &str = "\
.card{fill:#fff;stroke:#e2dfd7}.ink{fill:#1d2126}.faint{fill:#5d6670}.rule{stroke:#c9c5ba}.shape{fill:#2f6f9f;fill-opacity:.18;\
stroke:#2f6f9f;stroke-width:1.5}.band{stroke:#2f6f9f;stroke-width:5;stroke-linecap:round}.dot{fill:#2f6f9f}\
.bar{stroke:#1d2126;stroke-width:1.5;stroke-dasharray:5 4}.holds{fill:#2e7d4f}.fails{fill:#b3372f}.undecided{fill:#7a6a1f}\
.chip{fill:#fff}@media(prefers-color-scheme:dark){.card{fill:#1c2024;stroke:#30363c}.ink{fill:#e6e8ea}.faint{fill:#9aa3ac}\
.rule{stroke:#4a525a}.shape{fill:#63a4d4;stroke:#63a4d4}.band{stroke:#63a4d4}.dot{fill:#63a4d4}.bar{stroke:#e6e8ea}\
.holds{fill:#62b883}.fails{fill:#e2786f}.undecided{fill:#d9c65a}.chip{fill:#1c2024}}";

/// Returns the picture.
pub(in crate::evidence) fn svg(answer: &Answer) -> String {
    let axis = Axis::of(answer);
    let word = answer.word();
    let finding = answer.finding();
    let claim = escape(finding.split_once(": ").map_or(&*finding, |(_, what)| what));
    let chip = 18.0 + 8.0 * word.len() as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         role=\"img\" aria-label=\"{word}: {claim}\" \
         font-family=\"system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif\" font-size=\"13\">\n\
         <style>{STYLE}</style>\n\
         <rect class=\"card\" x=\".5\" y=\".5\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n\
         <rect class=\"{word}\" x=\"24\" y=\"18\" width=\"{chip:.0}\" height=\"22\" rx=\"11\"/>\n\
         <text class=\"chip\" x=\"{:.1}\" y=\"33.5\" text-anchor=\"middle\" font-weight=\"600\">{word}</text>\n\
         <text class=\"ink\" x=\"{:.1}\" y=\"34\" font-size=\"16\" font-weight=\"600\">{claim}</text>\n\
         <text class=\"faint\" x=\"24\" y=\"60\">{}</text>\n",
        WIDTH - 1.0,
        HEIGHT - 1.0,
        24.0 + chip / 2.0,
        24.0 + chip + 10.0,
        escape(&clipped(&text::observed(answer), 98)),
    );
    out += &shape(answer, &axis);
    out += &ruler(answer, &axis);
    for threshold in answer.stated.thresholds() {
        let (x, anchor) = (axis.at(threshold), axis.anchor(threshold));
        let _ = writeln!(
            out,
            "<path class=\"bar\" d=\"M{x:.1} {:.1}V{FLOOR}\"/><text class=\"ink\" x=\"{x:.1}\" y=\"{:.1}\" \
             text-anchor=\"{anchor}\" font-weight=\"600\">{}</text>",
            TOP - 8.0,
            TOP - 14.0,
            escape(&answer.stated.show(threshold)),
        );
    }
    out += &interval(answer, &axis);
    out + "</svg>\n"
}

/// Maps values to positions in the picture.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// Returns an axis wide enough for the thresholds and the interval, with a margin, and no wider than the possible values.
    fn of(answer: &Answer) -> Self {
        let (least, most) = answer.range.unwrap_or((0.0, 1.0));
        let interval = answer.view.interval;
        let mut shown: Vec<f64> = answer.stated.thresholds();
        shown.extend([interval.low.max(least), interval.high.min(most)]);
        let low = shown.iter().copied().fold(f64::INFINITY, f64::min);
        let high = shown.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let air = ((high - low) * 0.12).max((most - least) * 1e-6);
        Self { low: (low - air).max(least), high: (high + air).min(most) }
    }

    fn at(&self, value: f64) -> f64 {
        LEFT + (value.clamp(self.low, self.high) - self.low) / (self.high - self.low) * (RIGHT - LEFT)
    }

    /// Returns the anchor with which a label at this value fits into the picture.
    fn anchor(&self, value: f64) -> &'static str {
        let x = self.at(value);
        if x < LEFT + 60.0 {
            "start"
        } else if x > RIGHT - 60.0 {
            "end"
        } else {
            "middle"
        }
    }

    /// Returns about six round values on the axis.
    fn ticks(&self) -> Vec<f64> {
        let raw = (self.high - self.low) / 6.0;
        let magnitude = 10_f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * magnitude).find(|step| *step >= raw).unwrap_or(raw);
        let first = (self.low / step).ceil() as i64;
        (first..).map(|i| i as f64 * step).take_while(|tick| *tick <= self.high).take(12).collect()
    }
}

/// Draws the Beta density, or the bell curve of a mean, scaled to the height of the plot.
fn shape(answer: &Answer, axis: &Axis) -> String {
    let view = &answer.view;
    match (view.successes, view.estimate, view.spread, answer.range) {
        (Some(successes), Some(_), ..) => beta_shape(successes, view.trials, axis),
        (None, Some(mean), Some(spread), Some((low, high))) => {
            // If all values are equal, the spread is 0. The minimum width then shows the curve as a line.
            let deviation = (spread * (high - low)).max((axis.high - axis.low) * 1e-3);
            curve(axis, |x| -0.5 * ((x - mean) / deviation).powi(2))
        }
        _ => String::new(),
    }
}

/// Draws the Beta density of outcomes.
fn beta_shape(successes: u64, trials: u64, axis: &Axis) -> String {
    let (s, f) = (successes as f64, (trials - successes) as f64);
    // 0 × ln 0 counts as 0, as is usual in probability.
    let term = |count: f64, p: f64| if count == 0.0 { 0.0 } else { count * p.ln() };
    let log_density = |p: f64| term(s, p) + term(f, 1.0 - p);
    let top = log_density(s / (s + f));
    curve(axis, |p| log_density(p) - top)
}

/// Draws a curve, given the logarithm of its height, which is at most zero.
fn curve(axis: &Axis, log_height: impl Fn(f64) -> f64) -> String {
    const POINTS: u32 = 320;
    let mut path = format!("M{LEFT:.1} {FLOOR}");
    for i in 0..=POINTS {
        let p = axis.low + (axis.high - axis.low) * f64::from(i) / f64::from(POINTS);
        let height = log_height(p).min(0.0).exp();
        let _ = write!(path, "L{:.1} {:.1}", axis.at(p), FLOOR - height * (FLOOR - TOP));
    }
    format!("<path class=\"shape\" d=\"{path}L{RIGHT:.1} {FLOOR}Z\"/>\n")
}

/// Draws the line below the plot, with round values.
fn ruler(answer: &Answer, axis: &Axis) -> String {
    let mut out = format!("<path class=\"rule\" d=\"M{LEFT} {FLOOR}H{RIGHT}\"/>\n");
    for tick in axis.ticks() {
        let x = axis.at(tick);
        let _ = writeln!(
            out,
            "<path class=\"rule\" d=\"M{x:.1} {FLOOR}v5\"/><text class=\"faint\" x=\"{x:.1}\" y=\"{:.1}\" \
             text-anchor=\"middle\" font-size=\"11\">{}</text>",
            FLOOR + 18.0,
            escape(&answer.stated.show(tick)),
        );
    }
    out
}

/// Draws the interval with the estimate on it, and writes both in words.
fn interval(answer: &Answer, axis: &Axis) -> String {
    let y = FLOOR + 36.0;
    let (from, to) = (axis.at(answer.view.interval.low), axis.at(answer.view.interval.high));
    let mut out = format!("<path class=\"band\" d=\"M{from:.1} {y}H{to:.1}\"/>\n");
    if let Some(estimate) = answer.view.estimate {
        let x = axis.at(estimate);
        let _ = writeln!(out, "<circle class=\"dot\" cx=\"{x:.1}\" cy=\"{y}\" r=\"6\"/>");
    }
    let words = format!(
        "interval {}, right at all times at once; wrong with a probability of at most {}",
        answer.interval(),
        number::short(answer.stated.error)
    );
    let _ = writeln!(out, "<text class=\"faint\" x=\"24\" y=\"{:.1}\">{}</text>", HEIGHT - 20.0, escape(&words));
    out
}

fn clipped(line: &str, columns: usize) -> String {
    millstream_command::screen::text::fit(&millstream_command::screen::text::printable(line), columns).into_owned()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn the_picture_is_self_contained_and_holds_no_foreign_markup() {
        let picture = svg(&sample::answer(sample::HOLDS));
        for outside in ["href", "url(", "<script", "@import", "<http"] {
            assert!(!picture.contains(outside), "{outside}");
        }
        assert_eq!(picture.matches("http").count(), 2, "the namespace and the text of the command");
        assert!(picture.contains("curl &lt;http://x&gt;"));
    }

    #[test]
    fn a_mean_has_a_shape_whose_top_is_at_the_estimate() {
        let mut answer = sample::answer(sample::HOLDS);
        answer.range = Some((0.0, 2.0));
        (answer.view.successes, answer.view.estimate, answer.view.spread) = (None, Some(0.99), Some(0.001));
        let picture = svg(&answer);
        let path = picture.split("class=\"shape\" d=\"M").nth(1).expect("a shape").split('Z').next().unwrap();
        let points = path.split('L').skip(1).map(|point| {
            let (x, y) = point.split_once(' ').unwrap();
            (x.parse::<f64>().unwrap(), y.parse::<f64>().unwrap())
        });
        let top = points.min_by(|one, other| one.1.total_cmp(&other.1)).unwrap();
        assert!((top.0 - Axis::of(&answer).at(0.99)).abs() < 4.0 && top.1 < TOP + 8.0, "{top:?}");
        answer.view.spread = Some(0.0);
        assert!(svg(&answer).contains("class=\"shape\""));
    }

    #[test]
    fn everything_is_in_the_picture_even_with_extreme_counts() {
        for (trials, successes, low, high) in [
            (0, 0, 0.0, 1.0),
            (1, 1, 0.0, 1.0),
            (5000, 5000, 0.99, 1.0),
            (u64::MAX >> 12, 7, 0.0, 1e-12),
            (10, 0, 0.0, 0.6),
        ] {
            let mut answer = sample::answer(sample::HOLDS);
            (answer.view.trials, answer.view.successes) = (trials, Some(successes));
            answer.view.estimate = (trials > 0).then(|| successes as f64 / trials as f64);
            (answer.view.interval.low, answer.view.interval.high) = (low, high);
            let picture = svg(&answer);
            assert!(!picture.contains("NaN") && !picture.contains("inf"), "{trials}: {picture}");
            for path in picture.split(" d=\"").skip(1) {
                let path = path.split('"').next().unwrap();
                for number in path.split(|c: char| !(c.is_ascii_digit() || c == '.')).filter(|n| !n.is_empty()) {
                    assert!(number.parse::<f64>().unwrap() <= WIDTH, "{path}");
                }
            }
        }
    }
}
