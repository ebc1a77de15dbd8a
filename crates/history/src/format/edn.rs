//! Clojure's data notation, to the extent that histories use it.

use crate::value::{Value, Values};

/// A form.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Form {
    Nil,
    Bool(bool),
    Int(i128),
    /// A number other than an integer.
    Other(String),
    Text(String),
    /// Without its colon.
    Keyword(String),
    Symbol(String),
    /// A vector, a list or a set.
    List(Vec<Form>),
    Map(Vec<(Form, Form)>),
    /// `#tag form`.
    Tagged(String, Box<Form>),
}

/// The reason why no form could be read.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum EdnError {
    /// The text ends within the form.
    Incomplete,
    /// The text is malformed.
    Wrong(String),
}

impl Form {
    /// The map's value of a keyword.
    pub(super) fn field(&self, name: &str) -> Option<&Form> {
        let Form::Map(fields) = self else { return None };
        fields.iter().find(|(key, _)| matches!(key, Form::Keyword(keyword) if keyword == name)).map(|(_, value)| value)
    }

    /// The form as an operation's value. Keywords keep their colon, which tells them from texts.
    pub(super) fn value(&self, values: &mut Values) -> Result<Value, String> {
        Ok(match self {
            Form::Nil => Value::NULL,
            Form::Bool(bool) => Value::from(*bool),
            Form::Int(int) => values.int(*int),
            Form::Text(text) | Form::Symbol(text) => values.text(text),
            Form::Keyword(name) => values.text(&format!(":{name}")),
            Form::List(forms) => {
                let list: Vec<Value> = forms.iter().map(|form| form.value(values)).collect::<Result<_, _>>()?;
                values.list(&list)
            }
            Form::Tagged(_, form) => form.value(values)?,
            Form::Other(number) => return Err(format!("`{number}` is no integer")),
            Form::Map(_) => return Err("a map cannot be a value".into()),
        })
    }
}

/// A text that is read form by form.
pub(super) struct Reader<'a> {
    rest: &'a str,
}

/// The maximum nesting depth: no history needs more, and the parser's stack grows with its input's depth.
const MAX_DEPTH: usize = 100;

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Reader { rest: text }
    }

    /// The unread text.
    pub(super) fn unread(&self) -> &'a str {
        self.rest
    }

    /// The unread text, from the next form on.
    pub(super) fn rest(&mut self) -> Result<&'a str, EdnError> {
        self.skip(MAX_DEPTH)?;
        Ok(self.rest)
    }

    /// The next form.
    pub(super) fn form(&mut self) -> Result<Form, EdnError> {
        self.nested(MAX_DEPTH)
    }

    fn nested(&mut self, depth: usize) -> Result<Form, EdnError> {
        if depth == 0 {
            return Err(EdnError::Wrong(format!("nested more than {MAX_DEPTH} deep")));
        }
        self.skip(depth)?;
        let mut chars = self.rest.chars();
        match chars.next().ok_or(EdnError::Incomplete)? {
            '[' => self.after(1).list(']', depth).map(Form::List),
            '(' => self.after(1).list(')', depth).map(Form::List),
            '{' => self.after(1).map(depth),
            '"' => self.after(1).text(),
            '\\' => self.character(),
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

    /// Skips blanks, commas, comments and discarded forms.
    fn skip(&mut self, depth: usize) -> Result<(), EdnError> {
        loop {
            self.rest = self.rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
            if self.rest.starts_with(';') {
                self.rest = self.rest.find('\n').map_or("", |end| &self.rest[end..]);
            } else if self.rest.starts_with("#_") {
                self.after(2).nested(depth - 1)?;
            } else {
                return Ok(());
            }
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
            self.skip(depth)?;
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
            return Err(EdnError::Wrong("a map has a key without value".into()));
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
                    'u' => {
                        let digits: String = chars.by_ref().take(4).map(|(_, digit)| digit).collect();
                        let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                        code.ok_or_else(|| EdnError::Wrong(format!("`\\u{digits}` is no character")))?
                    }
                    plain @ ('"' | '\\' | '/') => plain,
                    other => return Err(EdnError::Wrong(format!("`\\{other}` means nothing in a text"))),
                }),
                c => text.push(c),
            }
        }
        Err(EdnError::Incomplete)
    }

    fn character(&mut self) -> Result<Form, EdnError> {
        let first = self.after(1).rest.chars().next().ok_or(EdnError::Incomplete)?;
        let rest = self.after(first.len_utf8()).word();
        Ok(Form::Text(format!("{first}{rest}")))
    }
}

fn atom(word: &str) -> Form {
    match word {
        "nil" => return Form::Nil,
        "true" => return Form::Bool(true),
        "false" => return Form::Bool(false),
        _ => {}
    }
    let number = word.starts_with(|c: char| c.is_ascii_digit())
        || word.len() > 1 && word.starts_with(['-', '+']) && word[1..].starts_with(|c: char| c.is_ascii_digit());
    if !number {
        return Form::Symbol(word.to_owned());
    }
    // Clojure marks integers of any size with an N.
    word.trim_end_matches('N').parse().map_or_else(|_| Form::Other(word.to_owned()), Form::Int)
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
        let form = read("; a comment\n#_skipped {:f :cas, :value [1 -2N], \"k\" #{nil}} rest").unwrap();
        assert_eq!(
            form,
            Form::Map(vec![
                (keyword("f"), keyword("cas")),
                (keyword("value"), Form::List(vec![Form::Int(1), Form::Int(-2)])),
                (Form::Text("k".into()), Form::List(vec![Form::Nil])),
            ])
        );
        assert_eq!(form.field("f"), Some(&keyword("cas")));
        assert_eq!(read(r#""a\"\u0041\n""#), Ok(Form::Text("a\"A\n".into())));
        assert_eq!(read("#inst \"x\""), Ok(Form::Tagged("inst".into(), Box::new(Form::Text("x".into())))));
        assert_eq!(read("1.5"), Ok(Form::Other("1.5".into())));
    }

    #[test]
    fn a_truncated_form_is_incomplete() {
        for text in ["{:a", "[1 2", "\"abc", "\"abc\\", "#tag", "", "(", "\\"] {
            assert_eq!(read(text), Err(EdnError::Incomplete), "{text}");
        }
    }

    #[test]
    fn malformed_forms_are_refused() {
        for text in ["]", "{:a}", ": a", r#""\q""#, r#""\uD800""#, "[1 }"] {
            assert!(matches!(read(text), Err(EdnError::Wrong(_))), "{text}");
        }
        assert!(matches!(read(&"[".repeat(10_000)), Err(EdnError::Wrong(_))));
        assert!(matches!(read(&"#_".repeat(10_000)), Err(EdnError::Wrong(_))));
    }
}
