//! Text inside XML and HTML.

use super::shown;

/// The text, safe for XML and HTML. Characters with a special meaning in XML are replaced by references. Characters
/// that XML cannot contain, or that a reader would not see, are shown by their numbers.
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
