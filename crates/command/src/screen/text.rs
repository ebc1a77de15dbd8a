//! Formats numbers, bytes and times, and fits text into columns.
//!
//! All output of the command (the live frame, the plain lines, the report table, the HTML page, `status`) formats its
//! numbers with these functions, so that a quantity looks the same everywhere.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

pub use super::shown::printable;

/// A number with separators: 1234567 becomes `1,234,567`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number and its noun: `1 unit`, `2 units`.
pub fn counted(n: u64, noun: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(n))
}

/// The indefinite article for a noun.
pub fn article(noun: &str) -> &'static str {
    if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" }
}

/// A number of bytes in binary units, with three significant digits: `512 B`, `1.25 KiB`, `64 MiB`.
pub fn bytes(n: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if n < 1024 {
        return format!("{n} B");
    }
    let mut value = n as f64 / 1024.0;
    let mut unit = 0;
    // From 999.5 on, rounding would give the four digits 1000.
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{} {}", three_digits(value), UNITS[unit])
}

/// A span given in nanoseconds, with up to three significant digits: `812 ns`, `1.2 µs`, `34 ms`, `1.25 s`,
/// `3 min 5 s`.
pub fn span(ns: u64) -> String {
    const MINUTE_NS: u64 = 60_000_000_000;
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..999_500 => format!("{} µs", three_digits(ns as f64 / 1e3)),
        999_500..999_500_000 => format!("{} ms", three_digits(ns as f64 / 1e6)),
        999_500_000..MINUTE_NS => format!("{} s", three_digits(ns as f64 / 1e9)),
        _ => {
            let seconds = ns / 1_000_000_000;
            let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
            if hours > 0 { format!("{hours} h {minutes} min") } else { format!("{minutes} min {seconds} s") }
        }
    }
}

/// A span given in seconds, in the format of [`span`].
pub fn seconds(s: f64) -> String {
    span((s.max(0.0) * 1e9) as u64)
}

/// A span in the format of a clock: `0:07`, `12:03`, `1:02:03`.
pub fn clock(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// A number per second: `0.25/s`, `12.5/s`, `1,204/s`.
pub fn rate(per_s: f64) -> String {
    if per_s >= 999.5 { format!("{}/s", count(per_s.round() as u64)) } else { format!("{}/s", three_digits(per_s)) }
}

/// A share from 0 to 1 in whole percent. A share below 1 is never shown as `100%`.
pub fn percent(share: f64) -> String {
    format!("{}%", (share.clamp(0.0, 1.0) * 100.0).floor())
}

fn three_digits(value: f64) -> String {
    let text = if value >= 99.95 {
        format!("{value:.0}")
    } else if value >= 9.995 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// The number of columns that the text occupies on a terminal.
pub fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// A text that is cut to `n` columns keeps at most `n` times this many characters. Without this limit, a text of many
/// zero-width characters would stay long.
const MAX_CHARACTERS: usize = 8;

/// The text, cut to at most `columns` columns. If the text was cut, the last column is an ellipsis.
pub fn fit(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    if columns == 0 {
        return Cow::Borrowed("");
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars().take(columns * MAX_CHARACTERS) {
        let w = c.width().unwrap_or(0);
        if used + w >= columns {
            break;
        }
        out.push(c);
        used += w;
    }
    // A sequence of characters may be wider than the sum of its characters: a variation selector may turn a symbol into
    // an emoji. So the width of the whole text is checked as well.
    while width(&out) >= columns {
        out.pop();
    }
    out.push('…');
    Cow::Owned(out)
}

/// The text, followed by spaces up to `columns` columns. A longer text is cut.
pub fn left(text: &str, columns: usize) -> String {
    let text = fit(text, columns);
    format!("{text}{}", " ".repeat(columns - width(&text)))
}

/// The text, preceded by spaces up to `columns` columns. A longer text is cut.
pub fn right(text: &str, columns: usize) -> String {
    let text = fit(text, columns);
    format!("{}{text}", " ".repeat(columns - width(&text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_by_threes() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000), "1,000");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(counted(1, "unit"), "1 unit");
        assert_eq!(counted(2_000, "unit"), "2,000 units");
    }

    #[test]
    fn quantities_keep_three_digits_at_every_border() {
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(1024), "1 KiB");
        assert_eq!(bytes(64 << 20), "64 MiB");
        assert_eq!(bytes((1 << 20) - 1), "1 MiB");
        assert_eq!(bytes(u64::MAX), "16 EiB");
        assert_eq!(span(999), "999 ns");
        assert_eq!(span(1_250), "1.25 µs");
        assert_eq!(span(999_499), "999 µs");
        assert_eq!(span(999_500), "1 ms");
        assert_eq!(span(1_250_000_000), "1.25 s");
        assert_eq!(span(185_000_000_000), "3 min 5 s");
        assert_eq!(span(3_600_000_000_000), "1 h 0 min");
        assert_eq!(rate(0.25), "0.25/s");
        assert_eq!(rate(999.4), "999/s");
        assert_eq!(rate(1204.4), "1,204/s");
        assert_eq!(clock(3_723_000_000_000), "1:02:03");
        assert_eq!(percent(0.9999), "99%");
    }

    #[test]
    fn fitting_counts_columns_not_bytes() {
        assert_eq!(fit("abc", 3), "abc");
        assert_eq!(fit("abcd", 3), "ab…");
        assert_eq!(fit("日本語", 4), "日…");
        assert_eq!(fit("abc", 0), "");
        let hidden = format!("a{}bcdefghijk", "\u{200b}".repeat(100_000));
        for columns in 0..9 {
            for text in [
                "",
                "abc",
                "日本語",
                "e\u{301}e\u{301}e\u{301}",
                &"☁\u{fe0f}".repeat(9),
                &"👩\u{200d}🔬".repeat(9),
                &hidden,
            ] {
                assert_eq!(width(&left(text, columns)), columns, "{text:?} in {columns}");
                assert_eq!(width(&right(text, columns)), columns, "{text:?} in {columns}");
            }
        }
    }
}
