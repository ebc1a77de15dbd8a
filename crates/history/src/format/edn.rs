//! Clojure's data notation, to the extent that Jepsen prints it: without characters, discarded forms and numeric
//! escapes.

use crate::value::{Value, Values};

/// A form.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Form {
    Nil,
    Bool(bool),
    Int(i128),
    Text(String),
    /// A keyword, without its colon.
    Keyword(String),
    /// A number other than an integer, or a symbol.
    Other(String),
    /// A vector, a list or a set.
    List(Vec<Form>),
    Map(Vec<(Form, Form)>),
    /// `#tag form`.
    Tagged(String, Box<Form>),
}

/// The reason why reading a form failed.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum EdnError {
    /// The text ends within the form.
    Incomplete,
    /// The text is malformed.
    Wrong(String),
}

impl Form {
    /// The value that the map has for a keyword.
    pub(super) fn field(&self, name: &str) -> Option<&Form> {
        let Form::Map(fields) = self else { return None };
        fields.iter().find(|(key, _)| matches!(key, Form::Keyword(keyword) if keyword == name)).map(|(_, value)| value)
    }

    /// Converts the form to an operation's value. A keyword keeps its colon, which distinguishes it from a string.
    pub(super) fn value(&self, values: &mut Values) -> Result<Value, String> {
        Ok(match self {
            Form::Nil => Value::NULL,
            Form::Bool(bool) => Value::from(*bool),
            Form::Int(int) => values.int(*int),
            Form::Text(text) => values.text(text),
            Form::Keyword(name) => values.text(&format!(":{name}")),
            Form::List(forms) => {
                let list: Vec<Value> = forms.iter().map(|form| form.value(values)).collect::<Result<_, _>>()?;
                values.list(&list)
            }
            Form::Tagged(_, form) => form.value(values)?,
            Form::Other(word) => return Err(format!("`{word}` is not an integer")),
            Form::Map(_) => return Err("a map cannot be a value".into()),
        })
    }
}

/// Reads text form by form.
pub(super) struct Reader<'a> {
    rest: &'a str,
}

/// The maximum nesting depth. The parser is recursive, so the depth needs a limit; no history needs more than this.
const MAX_DEPTH: usize = 100;

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Reader { rest: text }
    }

    /// The unread text, from the next form on.
    pub(super) fn rest(&mut self) -> &'a str {
        self.skip();
        self.rest
    }

    /// The next form.
    pub(super) fn form(&mut self) -> Result<Form, EdnError> {
        self.nested(MAX_DEPTH)
    }

    fn nested(&mut self, depth: usize) -> Result<Form, EdnError> {
        if depth == 0 {
            return Err(EdnError::Wrong(format!("nested more than {MAX_DEPTH} deep")));
        }
        self.skip();
        let mut chars = self.rest.chars();
        match chars.next().ok_or(EdnError::Incomplete)? {
            '[' => self.after(1).list(']', depth).map(Form::List),
            '(' => self.after(1).list(')', depth).map(Form::List),
            '{' => self.after(1).map(depth),
            '"' => self.after(1).text(),
            '#' if chars.next() == Some('{') => self.after(2).list('}', depth).map(Form::List),
            '#' => {
                let tag = self.after(1).word().to_owned();
                if tag.is_empty() {
                    return Err(self.nothing("a tag"));
                }
                Ok(Form::Tagged(tag, Box::new(self.nested(depth - 1)?)))
            }
            ':' => {
                let name = self.after(1).word().to_owned();
                if name.is_empty() { Err(self.nothing("a keyword")) } else { Ok(Form::Keyword(name)) }
            }
            _ => {
                let word = self.word();
                if word.is_empty() { Err(self.nothing("a form")) } else { Ok(atom(word)) }
            }
        }
    }

    fn nothing(&self, expected: &str) -> EdnError {
        match self.rest.chars().next() {
            Some(found) => EdnError::Wrong(format!("expected {expected}, found `{found}`")),
            None => EdnError::Incomplete,
        }
    }

    fn after(&mut self, bytes: usize) -> &mut Self {
        self.rest = &self.rest[bytes..];
        self
    }

    /// Skips blanks, commas and comments.
    fn skip(&mut self) {
        loop {
            self.rest = self.rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
            if !self.rest.starts_with(';') {
                return;
            }
            self.rest = self.rest.find('\n').map_or("", |end| &self.rest[end..]);
        }
    }

    fn word(&mut self) -> &'a str {
        let ends = |c: char| c.is_whitespace() || ",;\"()[]{}".contains(c);
        let end = self.rest.find(ends).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }

    fn list(&mut self, close: char, depth: usize) -> Result<Vec<Form>, EdnError> {
        let mut forms = Vec::new();
        loop {
            self.skip();
            if self.rest.starts_with(close) {
                self.after(close.len_utf8());
                return Ok(forms);
            }
            forms.push(self.nested(depth - 1)?);
        }
    }

    fn map(&mut self, depth: usize) -> Result<Form, EdnError> {
        let forms = self.list('}', depth)?;
        if !forms.len().is_multiple_of(2) {
            return Err(EdnError::Wrong("a map has a key without a value".into()));
        }
        let mut forms = forms.into_iter();
        Ok(Form::Map(std::iter::from_fn(|| Some((forms.next()?, forms.next()?))).collect()))
    }

    fn text(&mut self) -> Result<Form, EdnError> {
        let mut text = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.after(at + 1);
                    return Ok(Form::Text(text));
                }
                '\\' => text.push(match chars.next().ok_or(EdnError::Incomplete)?.1 {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    plain @ ('"' | '\\' | '/') => plain,
                    other => return Err(EdnError::Wrong(format!("`\\{other}` is not a valid escape in a string"))),
                }),
                c => text.push(c),
            }
        }
        Err(EdnError::Incomplete)
    }
}

fn atom(word: &str) -> Form {
    match word {
        "nil" => Form::Nil,
        "true" => Form::Bool(true),
        "false" => Form::Bool(false),
        // Clojure appends an `N` to integers of arbitrary size.
        _ => word.trim_end_matches('N').parse().map_or_else(|_| Form::Other(word.to_owned()), Form::Int),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Form, EdnError> {
        Reader::new(text).form()
    }

    #[test]
    fn forms_are_read() {
        let keyword = |name: &str| Form::Keyword(name.into());
        let form = read("; a comment\n{:f :cas, :value [1 -2N], \"k\" #{nil}} rest").unwrap();
        assert_eq!(
            form,
            Form::Map(vec![
                (keyword("f"), keyword("cas")),
                (keyword("value"), Form::List(vec![Form::Int(1), Form::Int(-2)])),
                (Form::Text("k".into()), Form::List(vec![Form::Nil])),
            ])
        );
        assert_eq!(form.field("f"), Some(&keyword("cas")));
        assert_eq!(read(r#""a\"é\n""#), Ok(Form::Text("a\"é\n".into())));
        assert_eq!(read("#inst \"x\""), Ok(Form::Tagged("inst".into(), Box::new(Form::Text("x".into())))));
        for word in ["1.5", "1/2", "symbol"] {
            assert_eq!(read(word), Ok(Form::Other(word.into())));
        }
    }

    #[test]
    fn a_truncated_form_is_incomplete() {
        for text in ["{:a", "[1 2", "\"abc", "\"abc\\", "#tag", "", "("] {
            assert_eq!(read(text), Err(EdnError::Incomplete), "{text}");
        }
    }

    #[test]
    fn malformed_forms_are_refused() {
        for text in ["]", "{:a}", ": a", r#""\q""#, r#""\u0041""#, "[1 }"] {
            assert!(matches!(read(text), Err(EdnError::Wrong(_))), "{text}");
        }
        assert!(matches!(read(&"[".repeat(10_000)), Err(EdnError::Wrong(_))));
        assert!(matches!(read(&"#t ".repeat(10_000)), Err(EdnError::Wrong(_))));
    }
}
