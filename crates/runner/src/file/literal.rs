//! Positions in a string literal of TOML.

use std::ops::Range;

/// Converts `range` of the string `value` to the corresponding range of its literal `raw`, quotes included. Returns
/// `None` if `raw` is not a literal of `value`.
pub(super) fn place(raw: &str, value: &str, range: &Range<usize>) -> Option<Range<usize>> {
    let quotes = [("\"\"\"", true), ("'''", false), ("\"", true), ("'", false)];
    let (quote, has_escapes, inner) = quotes.into_iter().find_map(|(quote, has_escapes)| {
        let inner = raw.strip_prefix(quote)?.strip_suffix(quote)?;
        Some((quote, has_escapes, inner))
    })?;
    let mut inner_from = quote.len();
    let mut text = inner;
    // A line end directly after the opening quotes of a multi-line string is not part of the value.
    if let Some(rest) = inner.strip_prefix("\r\n").or_else(|| inner.strip_prefix('\n')).filter(|_| quote.len() == 3) {
        inner_from += inner.len() - rest.len();
        text = rest;
    }
    let (mut written, mut valued) = (0, 0);
    let (mut start, mut end) = (None, None);
    while written < text.len() {
        let (width, meant) = step(&text[written..], has_escapes)?;
        if meant > 0 && valued >= range.start {
            start.get_or_insert(written);
        }
        written += width;
        valued += meant;
        if meant > 0 && valued >= range.end {
            end.get_or_insert(written);
        }
    }
    let (start, end) = (start.unwrap_or(written), end.unwrap_or(written));
    let is_value = valued == value.len() && range.end <= valued;
    is_value.then(|| inner_from + start..inner_from + end.max(start))
}

/// The number of bytes of the first character or escape of `text`, in the literal and in the value; `None` if the
/// escape is not valid.
fn step(text: &str, has_escapes: bool) -> Option<(usize, usize)> {
    let first = text.chars().next()?;
    if first != '\\' || !has_escapes {
        return Some((first.len_utf8(), first.len_utf8()));
    }
    let escaped = text[1..].chars().next()?;
    let digits = match escaped {
        'x' => 2,
        'u' => 4,
        'U' => 8,
        // The line continues after the white space.
        escaped if escaped.is_ascii_whitespace() => {
            let rest = text[1..].trim_start_matches([' ', '\t', '\r', '\n']);
            return Some((text.len() - rest.len(), 0));
        }
        escaped => return Some((1 + escaped.len_utf8(), 1)),
    };
    let code = u32::from_str_radix(text.get(2..2 + digits)?, 16).ok()?;
    Some((2 + digits, char::from_u32(code)?.len_utf8()))
}

#[cfg(test)]
mod tests {
    use super::place;

    /// The part of `raw` that represents `value` from its first `{` to its first `}`.
    fn found<'a>(raw: &'a str, value: &str) -> Option<&'a str> {
        let range = value.find('{').unwrap()..value.find('}').unwrap() + 1;
        Some(&raw[place(raw, value, &range)?])
    }

    #[test]
    fn a_field_is_found_however_its_string_is_written() {
        for (raw, value) in [
            ("\"a {x} b\"", "a {x} b"),
            ("'a {x} b'", "a {x} b"),
            ("\"\"\"\nfirst\nsecond {x}\n\"\"\"", "first\nsecond {x}\n"),
            ("\"\"\"\r\nfirst {x}\"\"\"", "first {x}"),
            ("'''\na\\n{x}'''", "a\\n{x}"),
            ("\"a\\n\\u00e9\\U0001F600\\\"{x}\\t\"", "a\n\u{e9}\u{1F600}\"{x}\t"),
            ("\"\"\"a \\\n   \n  {x}\"\"\"", "a {x}"),
            ("\"\u{e9}{x}\"", "\u{e9}{x}"),
        ] {
            assert_eq!(found(raw, value), Some("{x}"), "{raw}");
        }
        assert_eq!(found("\"other {x}\"", "{x}"), None);
    }
}
