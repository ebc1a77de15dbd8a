//! Quotes words of a command line for a shell.

use std::fmt::Write as _;

use millstream_command::screen::shown;

/// A word in a form that a shell reads as this word: unchanged if possible, otherwise in quotes.
pub(crate) fn quoted(word: &[u8]) -> String {
    let is_bare = |byte: &u8| byte.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(byte);
    match std::str::from_utf8(word) {
        Ok(text) if !word.is_empty() && word.iter().all(is_bare) => text.to_owned(),
        Ok(text) if !text.chars().any(shown::is_hidden) => format!("'{}'", text.replace('\'', r"'\''")),
        _ => {
            let mut quoted = "$'".to_owned();
            for byte in word {
                let _ = match byte {
                    b'\'' | b'\\' => write!(quoted, "\\{}", char::from(*byte)),
                    b' '..=b'~' => write!(quoted, "{}", char::from(*byte)),
                    other => write!(quoted, "\\x{other:02x}"),
                };
            }
            quoted.push('\'');
            quoted
        }
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_are_quoted_as_far_as_they_need() {
        for (word, line) in [
            (&b"a-1.txt"[..], "a-1.txt"),
            (b"", "''"),
            (b"two words", "'two words'"),
            (b"it's", r"'it'\''s'"),
            (b"$(reboot)", "'$(reboot)'"),
            (b"a\nb", r"$'a\x0ab'"),
            (b"\xffe'", r"$'\xffe\''"),
        ] {
            assert_eq!(quoted(word), line);
        }
    }
}
