//! The lexer: splits a program's text into tokens.

use std::ops::Range;

use super::problem::Problem;

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Name(String),
    Number(u64),
    /// A number with a decimal point, as in the text.
    Decimal(String),
    Text(String),
    /// `(`, `==`, …
    Sign(&'static str),
    End,
}

/// The signs. A sign comes before any shorter sign that is a prefix of it: `==` before `=`.
const SIGNS: [&str; 20] =
    ["==", "!=", "<=", ">=", "=", "<", ">", "(", ")", "[", "]", ",", ";", ".", "+", "-", "*", "/", "%", "!"];

/// Splits a text into tokens with their spans. The last token marks the end of the text.
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, Range<usize>)>, Problem> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let begin = at;
        if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        }
        let token = if first.is_ascii_digit() {
            at += rest.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(rest.len());
            let fraction = text[at..].strip_prefix('.').map_or("", |behind| {
                &behind[..behind.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(behind.len())]
            });
            let too_large = |end: usize| Problem::new("a number does not fit into 64 bits", begin..end, "too large");
            if fraction.starts_with(|first: char| first.is_ascii_digit()) {
                at += 1 + fraction.len();
                let decimal = text[begin..at].replace('_', "");
                if !decimal.parse().is_ok_and(f64::is_finite) {
                    return Err(too_large(at));
                }
                Token::Decimal(decimal)
            } else {
                Token::Number(text[begin..at].replace('_', "").parse().map_err(|_| too_large(at))?)
            }
        } else if first.is_alphabetic() || first == '_' {
            at += rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            Token::Name(text[begin..at].to_owned())
        } else if first == '"' {
            let (content, length) = quoted(rest)
                .ok_or_else(|| Problem::new("a text has no end; expected `\"`", begin..text.len(), "begins here"))?;
            at += length;
            Token::Text(content)
        } else if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
            at += sign.len();
            Token::Sign(sign)
        } else {
            let end = at + first.len_utf8();
            return Err(Problem::new(format!("`{first}` is not part of a program"), at..end, "here"));
        };
        tokens.push((token, begin..at));
    }
    tokens.push((Token::End, text.len()..text.len()));
    Ok(tokens)
}

/// Returns the content of a quoted text, and its length with the quotes. A backslash escapes the next character; `\n`
/// and `\t` have their usual meaning.
fn quoted(text: &str) -> Option<(String, usize)> {
    let mut content = String::new();
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((content, at + 1)),
            '\\' => content.push(match letters.next()?.1 {
                'n' => '\n',
                't' => '\t',
                other => other,
            }),
            other => content.push(other),
        }
    }
    None
}
