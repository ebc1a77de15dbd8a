//! Bars: small SVG images whose lengths are percentages, so that they follow the width of the page while their labels
//! stay text of the page.

use std::fmt::Write as _;

use millstream_command::screen::xml::escape;

/// A part of a bar.
pub(super) struct Part {
    /// Its class in the style sheet.
    pub(super) class: String,
    /// Shown when it is pointed at.
    pub(super) label: String,
    /// Its share of the whole width.
    pub(super) share: f64,
}

/// A bar of parts, one after the other.
pub(super) fn stacked(parts: &[Part], label: &str) -> String {
    let mut out = format!(
        "<svg height=\"16\" role=\"img\" aria-label=\"{}\">\
         <rect class=\"track\" width=\"100%\" height=\"16\" rx=\"3\"/>",
        escape(label)
    );
    let mut x = 0.0;
    for Part { class, label, share } in parts {
        let width = share * 100.0;
        // Thinner parts cannot be seen, and would only make the page long.
        if width >= 0.05 {
            let _ = write!(
                out,
                "<rect class=\"{class}\" x=\"{x:.2}%\" width=\"{width:.2}%\" height=\"16\" rx=\"2\">\
                 <title>{}</title></rect>",
                escape(label)
            );
        }
        x += width;
    }
    out + "</svg>"
}
