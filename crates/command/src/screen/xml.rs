//! Text inside XML and HTML.

use super::shown;

/// The text with the characters that mean something in XML and HTML written as references, and the characters that XML
/// cannot hold, or that a reader would not see, by their number.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in shown::lines(text).chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            c => out.push(c),
        }
    }
    out
}
