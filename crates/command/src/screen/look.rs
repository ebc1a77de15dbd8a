//! The capabilities of the terminal or file to which output goes: size, colours, and characters beyond ASCII.

use std::env;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

/// Styles of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// A heading or a name.
    Strong,
    /// Less important text.
    Faint,
    /// Text about a success.
    Good,
    /// Text that needs attention.
    Bad,
}

/// The capabilities of a terminal or a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// The number of columns in a line.
    pub columns: usize,
    /// The number of lines that can be seen at once.
    pub rows: usize,
    /// Whether text may be coloured.
    pub color: bool,
    /// Whether characters beyond ASCII can be shown.
    pub unicode: bool,
}

impl Look {
    /// A plain text file with 100 columns, without colours, in UTF-8.
    pub const FILE: Self = Self { columns: 100, rows: usize::MAX, color: false, unicode: true };

    /// The current capabilities of the stream's terminal; `None` if the stream is not a terminal, or if the terminal
    /// can only print (`TERM=dumb`).
    fn of_terminal(stream: &(impl IsTerminal + AsFd)) -> Option<Self> {
        let term = env::var_os("TERM").unwrap_or_default();
        if !stream.is_terminal() || term.is_empty() || term == "dumb" {
            return None;
        }
        let size = rustix::termios::tcgetwinsize(stream).ok();
        // A terminal that does not know its size, such as a serial line, reports 0 × 0.
        let known = |n: u16, otherwise: usize| if n == 0 { otherwise } else { usize::from(n) };
        Some(Self {
            columns: size.map_or(80, |s| known(s.ws_col, 80)),
            rows: size.map_or(24, |s| known(s.ws_row, 24)),
            color: env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
            unicode: speaks_unicode(["LC_ALL", "LC_CTYPE", "LANG"].map(|name| env::var(name).ok())),
        })
    }

    /// The capabilities of standard error, if it is a terminal.
    #[expect(clippy::disallowed_methods, reason = "nothing is written")]
    pub fn of_stderr() -> Option<Self> {
        Self::of_terminal(&io::stderr())
    }

    /// The capabilities of standard output, if it is a terminal.
    #[expect(clippy::disallowed_methods, reason = "nothing is written")]
    pub fn of_stdout() -> Option<Self> {
        Self::of_terminal(&io::stdout())
    }

    /// The text in a colour, or unchanged if colours are not allowed.
    pub fn paint(self, paint: Paint, text: &str) -> String {
        if !self.color || text.is_empty() {
            return text.to_owned();
        }
        let code = match paint {
            Paint::Strong => "1",
            Paint::Faint => "2",
            Paint::Good => "32",
            Paint::Bad => "31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// A bar of `columns` characters. `share` is the filled part, from 0 to 1.
    pub fn bar(self, share: f64, columns: usize) -> String {
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        if !self.unicode {
            let full = (share * columns as f64).floor() as usize;
            return format!("{}{}", "#".repeat(full), "-".repeat(columns - full));
        }
        const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
        let eighths = (share * columns as f64 * 8.0).floor() as usize;
        let (full, part) = (eighths / 8, EIGHTHS[eighths % 8]);
        let empty = columns - full - usize::from(!part.is_empty());
        format!("{}{part}{}", "█".repeat(full), self.paint(Paint::Faint, &"·".repeat(empty)))
    }

    /// The separator between two parts of a line.
    pub fn separator(self) -> &'static str {
        if self.unicode { " · " } else { ", " }
    }
}

/// Whether the locale uses UTF-8. `settings` are the values of `LC_ALL`, `LC_CTYPE` and `LANG`; the first that is set
/// determines the locale. If none is set, UTF-8 is assumed, because unset locales are common and terminals without
/// UTF-8 are rare.
fn speaks_unicode(settings: [Option<String>; 3]) -> bool {
    let Some(locale) = settings.into_iter().flatten().find(|v| !v.is_empty()) else { return true };
    let locale = locale.to_ascii_lowercase();
    match locale.split_once('.') {
        Some((_, charset)) => charset.starts_with("utf-8") || charset.starts_with("utf8"),
        None => locale != "c" && locale != "posix",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::text::width;

    #[test]
    fn the_first_locale_that_is_set_decides() {
        let of = |values: [&str; 3]| speaks_unicode(values.map(|v| (v != "unset").then(|| v.to_owned())));
        assert!(of(["unset", "unset", "unset"]));
        assert!(of(["unset", "", "de_DE.UTF-8"]));
        assert!(of(["C.utf8", "unset", "C"]));
        assert!(!of(["C", "unset", "de_DE.UTF-8"]));
        assert!(!of(["unset", "unset", "de_DE.ISO-8859-1"]));
    }

    #[test]
    fn a_bar_keeps_its_width_and_fills_only_when_all_is_done() {
        let plain = Look { unicode: false, ..Look::FILE };
        for look in [plain, Look::FILE] {
            for i in 0..=1000 {
                assert_eq!(width(&look.bar(f64::from(i) / 1000.0, 10)), 10);
            }
            assert_eq!(width(&look.bar(f64::NAN, 10)), 10);
            assert_ne!(look.bar(0.999, 10), look.bar(1.0, 10));
        }
        assert_eq!(plain.bar(0.5, 10), "#####-----");
    }

    #[test]
    fn without_colour_nothing_is_escaped() {
        assert_eq!(Look::FILE.paint(Paint::Bad, "x"), "x");
        assert_eq!(Look { color: true, ..Look::FILE }.paint(Paint::Bad, "x"), "\x1b[31mx\x1b[0m");
    }
}
