//! The difference between two contents, as lines for a reader.

use millstream_command::screen::shown;

/// The maximum number of lines shown of a difference; the others are counted.
const MAX_LINES: usize = 40;
/// The number of equal lines shown before the lines that differ, and after them.
const CONTEXT: usize = 2;

/// The difference between two contents, if there is one: texts line by line, other bytes at the first difference.
pub fn bytes_differ(what: &str, expected: &[u8], found: &[u8]) -> Option<String> {
    if expected == found {
        return None;
    }
    let (Ok(expected_text), Ok(found_text)) = (str::from_utf8(expected), str::from_utf8(found)) else {
        let at = expected.iter().zip(found).position(|(a, b)| a != b).unwrap_or(expected.len().min(found.len()));
        return Some(format!("{what} differs at byte {at}:\n- {} bytes\n+ {} bytes", expected.len(), found.len()));
    };
    let lines = |text| str::split_inclusive(text, '\n').collect::<Vec<_>>();
    Some(format!("{what} differs:{}", lines_differ(&lines(expected_text), &lines(found_text))))
}

/// The lines that differ, between those that are equal at the start and at the end.
fn lines_differ(expected: &[&str], found: &[&str]) -> String {
    let before = expected.iter().zip(found).take_while(|(a, b)| a == b).count();
    let (expected_rest, found_rest) = (&expected[before..], &found[before..]);
    let behind = expected_rest.iter().rev().zip(found_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let marked = |mark: char, lines: &[&str]| -> Vec<String> {
        let end = |line: &str| if line.ends_with('\n') { "" } else { " (without a line end)" };
        lines.iter().map(|line| format!("{mark} {}{}", shown::line(line.trim_end_matches('\n')), end(line))).collect()
    };
    let mut shown = marked(' ', &expected[before.saturating_sub(CONTEXT)..before]);
    shown.extend(marked('-', &expected_rest[..expected_rest.len() - behind]));
    shown.extend(marked('+', &found_rest[..found_rest.len() - behind]));
    let end = expected.len() - behind;
    shown.extend(marked(' ', &expected[end..(end + CONTEXT).min(expected.len())]));
    let more = shown.len().saturating_sub(MAX_LINES);
    shown.truncate(MAX_LINES);
    let mut page: String = shown.iter().map(|line| format!("\n{line}")).collect();
    if more > 0 {
        page += &format!("\n… and {more} lines more");
    }
    page
}

#[cfg(test)]
mod tests {
    use super::bytes_differ;

    fn differs(expected: &str, found: &str) -> String {
        bytes_differ("x", expected.as_bytes(), found.as_bytes()).unwrap_or_default()
    }

    #[test]
    fn different_lines_are_shown_between_equal_ones() {
        assert_eq!(differs("a\nb\n", "a\nb\n"), "");
        assert_eq!(differs("a\nb\nc\nd\n", "a\nB\nB\nc\nd\n"), "x differs:\n  a\n- b\n+ B\n+ B\n  c\n  d");
        assert_eq!(differs("a\n", "a"), "x differs:\n- a\n+ a (without a line end)");
        assert_eq!(differs("", "a\n"), "x differs:\n+ a");
        assert_eq!(differs("a\na\n", "a\n"), "x differs:\n  a\n- a");
        let long = differs("", &"y\n".repeat(100));
        assert!(long.ends_with("… and 60 lines more"), "{long}");
        assert_eq!(bytes_differ("x", b"a\xFF", b"a\xFE").unwrap(), "x differs at byte 1:\n- 2 bytes\n+ 2 bytes");
    }
}
