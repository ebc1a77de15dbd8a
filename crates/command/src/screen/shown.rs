//! Makes text from other sources visible: names, arguments, contents of files, messages of other programs.
//!
//! Some characters control a terminal and are not shown; others are invisible, or reorder the text around them. All
//! these characters are called *hidden*, and are shown by their numbers: `\u{9b}`.
//!
//! | text | shown by |
//! | --- | --- |
//! | a name or another piece of a line | [`printable`] |
//! | a path | [`path`]: quoted for a shell if necessary |
//! | a whole message with pieces of unknown origin | [`line`](fn@line) |
//! | several lines | [`lines`] |
//! | lines that may have colours | [`page`] |
//! | JSON | [`json`] |
//!
//! All text that the command prints passes through [`line`](fn@line) or [`page`] in [`out`](super::out), even if its
//! pieces were converted before.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Whether the character controls a terminal, is invisible, or reorders the text around it. Joiners and variation
/// selectors of the basic plane do not count, because scripts and emoji need them.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
            | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// The text with each hidden character as `\u{…}`. If the text itself already contains such a sequence, the backslash
/// becomes `\u{5c}`, so that two different texts are always shown differently.
pub fn printable(text: &str) -> Cow<'_, str> {
    replaced(text, |c, rest| is_hidden(c) || c == '\\' && rest.starts_with("u{"), by_number)
}

/// A message as one line. Pieces that were converted before stay as they are.
pub fn line(text: &str) -> Cow<'_, str> {
    replaced(text, |c, _| is_hidden(c), by_number)
}

/// Lines with their tabs and line ends. All other hidden characters are shown by their numbers.
pub fn lines(text: &str) -> Cow<'_, str> {
    replaced(text, |c, _| is_hidden(c) && c != '\n' && c != '\t', by_number)
}

/// Lines with their tabs, line ends and colours. All other hidden characters are shown by their numbers.
pub fn page(text: &str) -> Cow<'_, str> {
    let mut of_colour = 0;
    let is_wanted = |c, rest: &str| {
        if of_colour > 0 {
            of_colour -= 1;
            return false;
        }
        of_colour = if c == '\x1b' { colour(rest).unwrap_or(0) } else { 0 };
        of_colour == 0 && is_hidden(c) && c != '\n' && c != '\t'
    };
    replaced(text, is_wanted, by_number)
}

/// JSON with the same meaning and without hidden characters in its strings. `text` is JSON that has no hidden characters
/// outside strings except line ends.
pub fn json(text: &str) -> Cow<'_, str> {
    replaced(
        text,
        |c, _| is_hidden(c) && c != '\n',
        |out, c| {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        },
    )
}

fn by_number(out: &mut String, c: char) {
    let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
}

/// The text in which `write` replaces each character that `is_wanted` selects. `is_wanted` also gets the text after the
/// character.
fn replaced(
    text: &str,
    mut is_wanted: impl FnMut(char, &str) -> bool,
    write: impl Fn(&mut String, char),
) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'\\') {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let mut done = 0;
    for (at, c) in text.char_indices() {
        let next = at + c.len_utf8();
        if is_wanted(c, &text[next..]) {
            out.push_str(&text[done..at]);
            write(&mut out, c);
            done = next;
        }
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

/// The length of a sequence that sets a colour or a weight, without the escape character; `None` if there is no such
/// sequence. `rest` is the text after the escape character.
fn colour(rest: &str) -> Option<usize> {
    const MAX_NUMBERS: usize = 24;
    let numbers = rest.strip_prefix('[')?;
    let end = numbers.bytes().position(|byte| !matches!(byte, b'0'..=b'9' | b';'))?;
    (numbers.as_bytes()[end] == b'm' && end <= MAX_NUMBERS).then_some(end + 2)
}

/// The path as it is, or quoted for a shell if it has characters that cannot be read or copied: `$'caf\xe9'`.
pub fn path(path: &Path) -> ShownPath<'_> {
    ShownPath(path)
}

/// See [`path`].
#[derive(Debug, Clone, Copy)]
pub struct ShownPath<'a>(&'a Path);

impl fmt::Display for ShownPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.to_str() {
            Some(plain) if !plain.starts_with("$'") && !plain.chars().any(is_hidden) => return f.write_str(plain),
            _ => {}
        }
        f.write_str("$'")?;
        for chunk in self.0.as_os_str().as_bytes().utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '\n' => f.write_str("\\n")?,
                    '\t' => f.write_str("\\t")?,
                    '\r' => f.write_str("\\r")?,
                    '\'' | '\\' => write!(f, "\\{c}")?,
                    c if c.is_ascii_control() => write!(f, "\\x{:02x}", u32::from(c))?,
                    c if is_hidden(c) && u32::from(c) <= 0xffff => write!(f, "\\u{:04x}", u32::from(c))?,
                    c if is_hidden(c) => write!(f, "\\U{:08x}", u32::from(c))?,
                    c => f.write_char(c)?,
                }
            }
            chunk.invalid().iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))?;
        }
        f.write_str("'")
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::{OsStr, OsString};
    use std::os::unix::ffi::OsStringExt;
    use std::process::Command;

    use super::*;

    /// One of each kind of character that must not reach a terminal.
    const HIDDEN: &str = "\0\x07\x08\t\n\r\x1b\x7f\u{80}\u{85}\u{9b}\u{9d}\u{ad}\u{61c}\u{200b}\u{200e}\u{200f}\u{2028}\u{2029}\
                          \u{202a}\u{202e}\u{2060}\u{2066}\u{2069}\u{feff}\u{fff9}\u{e0041}";

    #[test]
    fn every_hidden_character_is_shown_by_its_number() {
        for c in HIDDEN.chars() {
            let text = format!("a{c}b");
            let number = format!("a\\u{{{:x}}}b", u32::from(c));
            assert_eq!(printable(&text), number);
            assert_eq!(line(&text), number);
            if !matches!(c, '\n' | '\t') {
                assert_eq!(page(&text), number);
            }
        }
    }

    #[test]
    fn text_that_can_be_read_is_left_alone() {
        for text in ["", "zstd", "C:\\new", "naïve 日本語", "می\u{200c}خواهم", "👩\u{200d}💻 ❤\u{fe0f}", "e\u{301}"]
        {
            assert!(matches!(printable(text), Cow::Borrowed(_)), "{text}");
            assert!(matches!(line(text), Cow::Borrowed(_)), "{text}");
            assert_eq!(path(Path::new(text)).to_string(), text);
        }
    }

    #[test]
    fn no_two_texts_are_shown_alike() {
        let texts = ["\u{9b}", "\\u{9b}", "\\\u{9b}", "\\\\u{9b}", "\\u{5c}u{9b}", "\u{5c}u\u{7b}9b"];
        for a in texts {
            for b in texts {
                assert_eq!(printable(a) == printable(b), a == b, "{a:?} {b:?}");
            }
        }
        // Text that was converted before stays as it is.
        assert_eq!(line(&printable("\\u{9b}")), printable("\\u{9b}"));
    }

    #[test]
    fn a_page_keeps_its_lines_and_colours_and_no_other_escapes() {
        let kept = "\x1b[1mone\x1b[0m\n\t\x1b[38;5;9mtwo m\x1b[0m\n";
        assert_eq!(page(kept), kept);
        for (text, shown) in [
            ("\x1b[2J", "\\u{1b}[2J"),
            ("\x1b]0;title\x07m", "\\u{1b}]0;title\\u{7}m"),
            ("\x1b[31", "\\u{1b}[31"),
            ("\x1b[\x1b[1m", "\\u{1b}[\x1b[1m"),
            ("\x1b[1m\u{9b}2J", "\x1b[1m\\u{9b}2J"),
        ] {
            assert_eq!(page(text), shown);
        }
    }

    #[test]
    fn json_means_the_same() {
        let value = serde_json::json!({ HIDDEN: ["\u{e0041}\\u{9b}", HIDDEN] });
        for text in [value.to_string(), format!("{value:#}")] {
            let shown = json(&text);
            assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
            assert!(!shown.chars().any(|c| is_hidden(c) && c != '\n'), "{shown:?}");
        }
    }

    #[test]
    fn a_shell_reads_a_shown_path_as_the_path() {
        let mut names: Vec<OsString> =
            HIDDEN.chars().filter(|c| *c != '\0').map(|c| format!("a{c}'\\0b").into()).collect();
        names.extend([OsString::from_vec(b"caf\xe9 \xff0".to_vec()), "$'plain'".into()]);
        let bash = |shown: &str| {
            let script = format!("printf %s {shown}");
            Command::new("bash").args(["-c", &script]).env("LC_ALL", "C.UTF-8").output()
        };
        for name in names {
            let shown = path(Path::new(&name)).to_string();
            assert!(!shown.chars().any(is_hidden), "{shown:?}");
            // On a machine without bash, there is nothing to compare.
            if let Ok(read) = bash(&shown) {
                assert_eq!(OsStr::from_bytes(&read.stdout), name, "{shown}");
            }
        }
    }
}
