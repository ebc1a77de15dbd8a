//! Pictures as SVG in one style: a page with a title, scales of powers of ten, colours.

pub mod boxes;
pub mod curves;

use std::path::Path;

use crate::error::Error;

/// Colours that colour-blind readers can distinguish, after Okabe and Ito. The last colour is for competitors shown for
/// scale.
pub const COLOURS: [&str; 8] = ["#0072b2", "#56b4e9", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#7b5ea7", "#8a8f94"];

const STYLE: &str = "\
text { font: 12px system-ui, \"Segoe UI\", Roboto, \"DejaVu Sans\", sans-serif; fill: #1d2126; }
.page { fill: #ffffff; stroke: #e2dfd7; }
.title { font-size: 17px; font-weight: 600; }
.said, .tick { fill: #5d6670; }
.rule { stroke: #eceae3; }
.curve { fill: none; stroke-width: 2; stroke-linejoin: round; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6e8ea; }
  .page { fill: #1c2024; stroke: #30363c; }
  .said, .tick { fill: #9aa3ac; }
  .rule { stroke: #2a2f34; }
}";

/// Top of the drawing on a page, below the title.
pub const TOP: f64 = 72.0;

/// A page with its title, a line of explanation, and a drawing.
#[must_use]
pub fn page(width: f64, height: f64, title: &str, said: &str, drawing: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\" aria-label=\"{title}\">\n<style>\n{STYLE}\n</style>\n\
         <rect class=\"page\" width=\"100%\" height=\"100%\" rx=\"8\"/>\n\
         <text class=\"title\" x=\"16\" y=\"30\">{title}</text>\n\
         <text class=\"said\" x=\"16\" y=\"50\">{said}</text>\n{drawing}</svg>\n"
    )
}

/// Writes a picture into the folder for pictures, if there is one.
///
/// # Errors
/// Fails when the file cannot be written.
pub fn save(folder: Option<&Path>, name: &str, draw: impl FnOnce() -> String) -> Result<(), Error> {
    let Some(folder) = folder else { return Ok(()) };
    // Create the folder if necessary: a missing folder must not waste minutes of measurements.
    std::fs::create_dir_all(folder).map_err(Error::at(folder))?;
    let path = folder.join(name).with_extension("svg");
    std::fs::write(&path, draw()).map_err(Error::at(&path))
}

/// A logarithmic scale over whole powers of ten.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    first: i32,
    last: i32,
    /// Positions of the first and the last power.
    ends: (f64, f64),
}

impl Scale {
    /// The smallest scale that contains all figures, which must be positive.
    #[must_use]
    pub fn around(figures: impl IntoIterator<Item = f64>, ends: (f64, f64)) -> Self {
        let (low, high) = figures
            .into_iter()
            .fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), figure| (low.min(figure), high.max(figure)));
        let first = low.log10().floor() as i32;
        Scale { first, last: (high.log10().ceil() as i32).max(first + 1), ends }
    }

    /// The position of a figure.
    #[must_use]
    pub fn at(self, figure: f64) -> f64 {
        let share = (figure.log10() - f64::from(self.first)) / f64::from(self.last - self.first);
        self.ends.0 + (self.ends.1 - self.ends.0) * share.clamp(0.0, 1.0)
    }

    /// The powers of ten of the scale, with their labels.
    pub fn ticks(self) -> impl Iterator<Item = (f64, String)> {
        (self.first..=self.last).map(move |power| {
            let label = match power {
                0..=3 => format!("{}", 10_u32.pow(power as u32)),
                4..=5 => format!("{} k", 10_u32.pow(power as u32 - 3)),
                6..=8 => format!("{} M", 10_u32.pow(power as u32 - 6)),
                9.. => format!("10^{power}"),
                ..0 => format!("{:.*}", power.unsigned_abs() as usize, 10_f64.powi(power)),
            };
            (self.at(10_f64.powi(power)), label)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_encloses_its_figures_between_powers_of_ten() {
        let scale = Scale::around([0.5, 20.0], (0.0, 300.0));
        let ticks: Vec<_> = scale.ticks().collect();
        assert_eq!(ticks, [(0.0, "0.1".into()), (100.0, "1".into()), (200.0, "10".into()), (300.0, "100".into())]);
        assert!(scale.at(0.5) > 0.0 && scale.at(20.0) < 300.0 && scale.at(0.5) < scale.at(20.0));
    }

    #[test]
    fn a_single_figure_has_a_scale() {
        assert_eq!(Scale::around([1.0], (0.0, 10.0)).ticks().count(), 2);
    }
}
