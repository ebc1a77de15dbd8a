//! Strings in JSON notation.

use std::fmt::{self, Write as _};

/// A string in double quotes, with the escapes that JSON requires.
pub(crate) struct Quoted<'a>(pub(crate) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        let mut rest = self.0;
        while let Some(at) = rest.find(|c: char| c < ' ' || c == '"' || c == '\\') {
            f.write_str(&rest[..at])?;
            match rest.as_bytes()[at] {
                b'\n' => f.write_str("\\n"),
                b'\r' => f.write_str("\\r"),
                b'\t' => f.write_str("\\t"),
                0x08 => f.write_str("\\b"),
                0x0c => f.write_str("\\f"),
                control @ ..b' ' => write!(f, "\\u{control:04x}"),
                plain => write!(f, "\\{}", char::from(plain)),
            }?;
            rest = &rest[at + 1..];
        }
        f.write_str(rest)?;
        f.write_char('"')
    }
}

#[cfg(all(test, feature = "formats"))]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_as_a_json_library_quotes_them() {
        let every: String = (0..0x300).filter_map(char::from_u32).collect();
        for text in ["", "plain", "\"", "a\\b\nc", "\u{1f}\u{7f}\u{20ac}\u{1f600}", "\\\\\"\"", &every] {
            assert_eq!(Quoted(text).to_string(), serde_json::Value::from(text).to_string());
        }
    }
}
