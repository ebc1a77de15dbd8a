//! Templates: text with `{fields}` of a unit in it.
//!
//! `{path}` stands for a field, `{{` and `}}` for braces. Two forms refine a field: `{json:path}` renders it as a JSON string,
//! quotes included, and `{blake3[..2]}` renders its first two bytes. A rendered template is bytes, not text, because a path
//! need not be UTF-8.
//!
//! `{param.x}` and `{input}` are the same for every unit of a run. [`Template::bind`] replaces them by text before the
//! run starts, so a missing value is an error of the flow and never of a unit.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use crate::json_bytes;

use super::suggest;

/// Something for which a unit or the run has a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Field {
    /// `{path}`: the file's path, as the walk or the argument gave it.
    Path,
    /// `{name}`: the path's last component; for a URL, the last component of its path, or `index.html` if the path ends
    /// with a slash.
    Name,
    /// `{stem}`: the name without its extension.
    Stem,
    /// `{ext}`: the name's extension without the dot; empty when there is none.
    Ext,
    /// `{dir}`: the path without its last component; `.` when nothing is left.
    Dir,
    /// `{rel}`: the path relative to the walk's root.
    Rel,
    /// `{size}`: the size in bytes, decimal: that of the file, or that of the payload if the unit is not a file. Later
    /// changes of the payload do not change it.
    Size,
    /// `{mode}`: the permissions of the file, octal.
    Mode,
    /// `{line}`: the line, without its ending.
    Line,
    /// `{items}`: the items of a group, each an argument of its own where a program takes them.
    Items,
    /// `{url}`: the line when it is a URL, without its credentials.
    Url,
    /// `{host}`: host and port of the line when it is a URL; while a redirect is followed, host and port of its target.
    Host,
    /// `{part}`: the unit's number, from 1, among the pieces of the unit from which it was split.
    Part,
    /// `{parent.NAME}`: a field of the unit from which this one was split.
    Parent(Box<Field>),
    /// `{copy.STAGE.FIELD}`: for a unit that was gathered from its copies, a field of the copy that went to STAGE.
    Copy(String, Box<Field>),
    /// `{count}`: the number of units from which this one was gathered.
    Count,
    /// `{key}`: the value that the units of the group have in common.
    Key,
    /// `{blake3}`: the hash computed by a `blake3` stage, 64 hexadecimal digits.
    Blake3,
    /// `{sha256}`: the hash computed by a `sha256` stage, 64 hexadecimal digits.
    Sha256,
    /// `{shard}`: the first two digits of `{blake3}`.
    Shard,
    /// `{input}`: the first INPUT of the command line.
    Input,
    /// `{param.NAME}`: a parameter of the flow.
    Param(String),
    /// `{set.NAME}`: the value that a `set` stage has given the unit under this name.
    Set(String),
    /// `{json.NAME}`: a member of the object that a `parse` stage read; `{json.NAME.NAME}`: a member of an object
    /// within that object.
    Json(String),
}

/// The fields without a dot, in the order in which help lists them.
const PLAIN: [(&str, Field); 19] = [
    ("path", Field::Path),
    ("name", Field::Name),
    ("stem", Field::Stem),
    ("ext", Field::Ext),
    ("dir", Field::Dir),
    ("rel", Field::Rel),
    ("size", Field::Size),
    ("mode", Field::Mode),
    ("line", Field::Line),
    ("items", Field::Items),
    ("url", Field::Url),
    ("host", Field::Host),
    ("part", Field::Part),
    ("count", Field::Count),
    ("key", Field::Key),
    ("blake3", Field::Blake3),
    ("sha256", Field::Sha256),
    ("shard", Field::Shard),
    ("input", Field::Input),
];

impl Field {
    /// Whether the field is a part of a unit's text. A group of items has no single value for such a field.
    pub fn is_of_one_item(&self) -> bool {
        matches!(
            self,
            Self::Path
                | Self::Name
                | Self::Stem
                | Self::Ext
                | Self::Dir
                | Self::Rel
                | Self::Line
                | Self::Url
                | Self::Host
                | Self::Mode
        )
    }

    /// Whether the field derives from the text that identifies a unit.
    pub fn is_of_text(&self) -> bool {
        self.is_of_one_item() && *self != Self::Mode
    }

    /// The name of the member or set field, without prefixes such as `parent.`, if this is such a field.
    pub fn member(&self) -> Option<&str> {
        match self {
            Self::Json(name) | Self::Set(name) => Some(name),
            Self::Parent(field) | Self::Copy(_, field) => field.member(),
            _ => None,
        }
    }

    /// The same field with another [name of a member](Self::member).
    pub fn with_member(&self, name: &str) -> Self {
        match self {
            Self::Json(_) => Self::Json(name.to_owned()),
            Self::Set(_) => Self::Set(name.to_owned()),
            Self::Parent(field) => Self::Parent(Box::new(field.with_member(name))),
            Self::Copy(stage, field) => Self::Copy(stage.clone(), Box::new(field.with_member(name))),
            other => other.clone(),
        }
    }

    /// The field called `name`.
    fn parse(name: &str) -> Result<Self, String> {
        if let Some((_, field)) = PLAIN.iter().find(|(plain, _)| *plain == name) {
            return Ok(field.clone());
        }
        match name.split_once('.') {
            Some(("param", rest)) if !rest.is_empty() => Ok(Self::Param(rest.to_owned())),
            Some(("json", rest)) if !rest.is_empty() => Ok(Self::Json(rest.to_owned())),
            Some(("parent", rest)) if !rest.is_empty() => Self::parse(rest).map(|field| Self::Parent(Box::new(field))),
            Some(("copy", rest)) if rest.split_once('.').is_some_and(|(stage, _)| !stage.is_empty()) => {
                let (stage, field) = rest.split_once('.').expect("the guard has found a dot");
                Self::parse(field).map(|field| Self::Copy(stage.to_owned(), Box::new(field)))
            }
            Some(("set", rest)) if !rest.is_empty() => Ok(Self::Set(rest.to_owned())),
            dotted => {
                let known = PLAIN.map(|(plain, _)| plain);
                let near = match dotted {
                    // The columns of a table are members, called `{json.COLUMN}`.
                    Some(("csv" | "tsv", column)) if !column.is_empty() => Some(format!("json.{column}")),
                    Some((family, rest)) if !rest.is_empty() => {
                        suggest::closest(family, ["param", "json", "set", "parent", "copy"])
                            .map(|near| format!("{near}.{rest}"))
                    }
                    _ => suggest::closest(name, known).map(str::to_owned),
                };
                Err(near.map_or_else(
                    || {
                        let known = known.join(", ");
                        format!(
                            "fields are {known}, param.NAME, json.NAME, set.NAME, parent.FIELD and copy.STAGE.FIELD; other braces are doubled: `{{{{{name}}}}}`"
                        )
                    },
                    |near| format!("did you mean `{{{near}}}`?"),
                ))
            }
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Param(name) => write!(f, "param.{name}"),
            Self::Json(name) => write!(f, "json.{name}"),
            Self::Set(name) => write!(f, "set.{name}"),
            Self::Parent(field) => write!(f, "parent.{field}"),
            Self::Copy(stage, field) => write!(f, "copy.{stage}.{field}"),
            plain => {
                let name = PLAIN.iter().find(|(_, field)| field == plain).map_or("", |(name, _)| name);
                f.write_str(name)
            }
        }
    }
}

/// Something that has values for fields: a unit's record.
pub trait Fields {
    /// The field's value, or `None` when this unit has none (no `blake3` stage has run, the line is not a URL, …).
    fn field(&self, field: &Field) -> Option<Cow<'_, [u8]>>;

    /// The names for which `{json.NAME}` has a value in this unit, as a list for messages.
    fn member_names(&self) -> Option<String> {
        None
    }
}

/// A parsed template; see the [module](self).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(Vec<u8>),
    Field(Placeholder),
}

/// One `{…}`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Placeholder {
    field: Field,
    /// `{json:…}`.
    json: bool,
    /// `{…[..N]}`.
    prefix: Option<usize>,
    /// The position of the field in the template's text, braces included.
    range: Range<usize>,
}

/// The reason why a text is not a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TemplateError {
    /// The position of the problem, in bytes of the template's text.
    pub range: Range<usize>,
    /// The problem.
    pub message: String,
    /// The remedy.
    pub help: String,
}

/// The reason why a template could not be rendered for a unit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the unit has no value for `{{{field}}}`{}", known.as_ref().map_or_else(String::new, |known| format!("; it has {known}")))]
pub struct RenderError {
    /// The field without a value.
    pub field: Field,
    /// The members or columns that the unit does have, if the missing field is a member or a column.
    pub known: Option<String>,
}

impl RenderError {
    #[cold]
    fn of(field: &Field, fields: &dyn Fields) -> Self {
        let known = if matches!(field, Field::Json(_)) { fields.member_names() } else { None };
        Self { field: field.clone(), known }
    }
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// An unknown field, an empty or unclosed `{`, or a `}` that closes nothing.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut pieces = Vec::new();
        let mut literal = Vec::new();
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            let plain = rest.find(['{', '}']).unwrap_or(rest.len());
            literal.extend_from_slice(&rest.as_bytes()[..plain]);
            at += plain;
            let rest = &text[at..];
            if rest.starts_with("{{") || rest.starts_with("}}") {
                literal.push(rest.as_bytes()[0]);
                at += 2;
            } else if let Some(inner) = rest.strip_prefix('{') {
                let close = match inner.find(['{', '}']).map(|end| (end, inner.as_bytes()[end])) {
                    Some((close, b'}')) => close,
                    next => {
                        let name = next.map_or(inner, |(end, _)| &inner[..end]);
                        let message = if next.is_some() && !is_name(name) {
                            "this `{` opens no field"
                        } else {
                            "this `{` is never closed"
                        };
                        return Err(TemplateError {
                            range: at..at + 1,
                            message: message.to_owned(),
                            help: "double the braces that enclose no field: write `{{` and `}}`".to_owned(),
                        });
                    }
                };
                let range = at..at + close + 2;
                let is_variable = text[..at].ends_with('$');
                at = range.end;
                if !literal.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut literal)));
                }
                pieces.push(Piece::Field(Placeholder::parse(&inner[..close], range, is_variable)?));
            } else if rest.starts_with('}') {
                return Err(TemplateError {
                    range: at..at + 1,
                    message: "this `}` closes nothing".to_owned(),
                    help: "double the braces that enclose no field: write `{{` and `}}`".to_owned(),
                });
            }
        }
        if !literal.is_empty() {
            pieces.push(Piece::Text(literal));
        }
        Ok(Self { pieces })
    }

    /// A template of one field and nothing else.
    pub fn of(field: Field) -> Self {
        let placeholder = Placeholder { field, json: false, prefix: None, range: 0..0 };
        Self { pieces: vec![Piece::Field(placeholder)] }
    }

    /// The fields that the template uses, each with its position in the template's text.
    pub fn fields(&self) -> impl Iterator<Item = (&Field, Range<usize>)> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Field(placeholder) => Some((&placeholder.field, placeholder.range.clone())),
            Piece::Text(_) => None,
        })
    }

    /// Whether the template is exactly this field, so that a caller may handle the field specially, for example fill in
    /// all INPUTs instead of the first.
    pub fn is_only(&self, field: &Field) -> bool {
        self.only() == Some(field)
    }

    /// The field, if the template is a single unrefined field and nothing else.
    pub fn only(&self) -> Option<&Field> {
        match self.pieces.as_slice() {
            [Piece::Field(only)] if !only.json && only.prefix.is_none() => Some(&only.field),
            _ => None,
        }
    }

    /// The template's text, if it is the same for every unit, that is, if the template consists of text and bound
    /// fields only.
    pub fn constant(&self) -> Option<&[u8]> {
        match self.pieces.as_slice() {
            [] => Some(b""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// Fills in the fields that `params` and `input` have values for; other fields remain.
    pub fn bind(&mut self, params: &BTreeMap<String, String>, input: Option<&[u8]>) {
        let mut bound = Vec::with_capacity(self.pieces.len());
        for piece in self.pieces.drain(..) {
            let text = match piece {
                Piece::Text(text) => Ok(text),
                Piece::Field(placeholder) => {
                    let value = match &placeholder.field {
                        Field::Param(name) => params.get(name).map(String::as_bytes),
                        Field::Input => input,
                        _ => None,
                    };
                    value.map(|value| placeholder.render(value)).ok_or(placeholder)
                }
            };
            match (text, bound.last_mut()) {
                (Ok(text), Some(Piece::Text(before))) => before.extend(text),
                (Ok(text), _) => bound.push(Piece::Text(text)),
                (Err(placeholder), _) => bound.push(Piece::Field(placeholder)),
            }
        }
        self.pieces = bound;
    }

    /// The bytes for one unit.
    ///
    /// # Errors
    /// The unit has no value for a field.
    pub fn render(&self, fields: &dyn Fields) -> Result<Vec<u8>, RenderError> {
        let mut rendered = Vec::new();
        self.render_into(fields, &mut rendered)?;
        Ok(rendered)
    }

    /// The bytes for one unit; fields without a value stay as they are written in the template.
    pub fn render_known(&self, fields: &dyn Fields) -> Vec<u8> {
        let mut rendered = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => rendered.extend_from_slice(text),
                Piece::Field(placeholder) => match fields.field(&placeholder.field) {
                    Some(value) => placeholder.render_into(&value, &mut rendered),
                    None => rendered.extend_from_slice(placeholder.to_string().as_bytes()),
                },
            }
        }
        rendered
    }

    /// Appends the bytes for one unit to `out`, so that a caller can reuse its buffer.
    ///
    /// # Errors
    /// The unit has no value for a field; `out` then holds the bytes before that field.
    pub fn render_into(&self, fields: &dyn Fields, out: &mut Vec<u8>) -> Result<(), RenderError> {
        self.render_marked(fields, out, |_, _| {})
    }

    /// Like [`Template::render_into`], but also tells `mark` which bytes of `out` come from each field: a caller that
    /// makes a path must know which parts are the flow's own text and which are data.
    ///
    /// # Errors
    /// The unit has no value for a field; `out` then holds the bytes before that field.
    pub fn render_marked(
        &self,
        fields: &dyn Fields,
        out: &mut Vec<u8>,
        mut mark: impl FnMut(&Field, Range<usize>),
    ) -> Result<(), RenderError> {
        let len = |piece: &Piece| if let Piece::Text(text) = piece { text.len() } else { 0 };
        let mut texts: usize = self.pieces.iter().map(len).sum();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => {
                    out.extend_from_slice(text);
                    texts -= text.len();
                }
                Piece::Field(placeholder) => {
                    let value =
                        fields.field(&placeholder.field).ok_or_else(|| RenderError::of(&placeholder.field, fields))?;
                    // The texts after the field are included, so a template with one field, as most have, needs no
                    // second allocation.
                    out.reserve(texts + value.len());
                    let start = out.len();
                    placeholder.render_into(&value, out);
                    mark(&placeholder.field, start..out.len());
                }
            }
        }
        Ok(())
    }
}

impl Placeholder {
    /// Parses the text between braces; `range` includes the braces. `is_variable` says that the braces follow a `$`, as
    /// in a variable of the shell.
    fn parse(inner: &str, range: Range<usize>, is_variable: bool) -> Result<Self, TemplateError> {
        let error = |message: String, help: String| TemplateError { range: range.clone(), message, help };
        let (json, rest) = inner.strip_prefix("json:").map_or((false, inner), |rest| (true, rest));
        let (name, prefix) = match rest.split_once("[..") {
            None => (rest, None),
            Some((name, length)) => {
                let length = length.strip_suffix(']').and_then(|digits| digits.parse().ok()).ok_or_else(|| {
                    error(
                        format!("`{{{inner}}}` is not a field with a length"),
                        "the first N bytes of a field are written `{field[..N]}`".to_owned(),
                    )
                })?;
                (name, Some(length))
            }
        };
        if name.is_empty() {
            return Err(error(
                "a field needs a name".to_owned(),
                "write a field such as `{path}` or `{line}`, or `{{}}` for the braces themselves".to_owned(),
            ));
        }
        let field = Field::parse(name).map_err(|help| {
            if !is_name(name) {
                let help = format!("double the braces that enclose no field: `{{{{{inner}}}}}`");
                return error(format!("`{{{inner}}}` is not a field"), help);
            }
            let help = if is_variable {
                format!("for a variable of the shell, double the braces: `${{{{{inner}}}}}`; {help}")
            } else {
                help
            };
            error(format!("no field is called `{name}`"), help)
        })?;
        Ok(Self { field, json, prefix, range })
    }

    fn render(&self, value: &[u8]) -> Vec<u8> {
        let mut rendered = Vec::with_capacity(value.len());
        self.render_into(value, &mut rendered);
        rendered
    }

    fn render_into(&self, value: &[u8], out: &mut Vec<u8>) {
        let value = self.prefix.map_or(value, |length| &value[..length.min(value.len())]);
        if self.json {
            json_bytes::write_string(value, out);
        } else {
            out.extend_from_slice(value);
        }
    }
}

/// Whether a field could have this name. Any other text in braces belongs to another language, such as JSON.
fn is_name(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

impl fmt::Display for Template {
    /// The template's text; bound fields show as text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => {
                    f.write_str(&String::from_utf8_lossy(text).replace('{', "{{").replace('}', "}}"))?;
                }
                Piece::Field(placeholder) => write!(f, "{placeholder}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, json, prefix, .. } = self;
        f.write_str(if *json { "{json:" } else { "{" })?;
        write!(f, "{field}")?;
        if let Some(length) = prefix {
            write!(f, "[..{length}]")?;
        }
        f.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::collections::BTreeMap;

    use super::{Field, Fields, Template};

    struct Unit;

    impl Fields for Unit {
        fn field(&self, field: &Field) -> Option<Cow<'_, [u8]>> {
            match field {
                Field::Path => Some(Cow::Borrowed(b"a/\xFF\".x")),
                Field::Blake3 => Some(Cow::Borrowed(b"abcdef")),
                Field::Json(name) if name == "a.b" => Some(Cow::Borrowed(b"member")),
                _ => None,
            }
        }
    }

    fn render(text: &str) -> Vec<u8> {
        Template::parse(text).unwrap().render(&Unit).unwrap()
    }

    #[test]
    fn fields_and_text_alternate() {
        assert_eq!(render("<{path}>{blake3}"), b"<a/\xFF\".x>abcdef");
        assert_eq!(render("{{}}{{{blake3}}}"), b"{}{abcdef}");
        assert_eq!(render("{json.a.b}"), b"member");
        assert_eq!(render(""), b"");
        assert_eq!(render("{json:path}"), b"\"a/\\udcff\\\".x\"");
        assert_eq!(render("{blake3[..2]}/{blake3[..99]}{json:blake3[..1]}"), b"ab/abcdef\"a\"");
    }

    #[test]
    fn mistakes_are_pointed_at() {
        for (text, range, word) in [
            ("a{path", 1..2, "never closed"),
            ("{path{name}", 0..1, "never closed"),
            ("a}b", 1..2, "closes nothing"),
            ("x{}", 1..3, "needs a name"),
            ("{json:}", 0..7, "needs a name"),
            ("é{pth}", 2..7, "no field"),
            ("{param.}", 0..8, "no field"),
            ("{path[..x]}", 0..11, "length"),
            ("{path[..2}", 0..10, "length"),
        ] {
            let error = Template::parse(text).unwrap_err();
            assert_eq!(error.range, range, "{text}");
            assert!(error.message.contains(word), "{text}: {}", error.message);
        }
        assert!(Template::parse("{pth}").unwrap_err().help.contains("`{path}`"));
    }

    #[test]
    fn a_field_without_a_value_is_named() {
        let error = Template::parse("{sha256}").unwrap().render(&Unit).unwrap_err();
        assert_eq!(error.to_string(), "the unit has no value for `{sha256}`");
    }

    #[test]
    fn binding_leaves_only_the_units_fields() {
        let params = BTreeMap::from([("out".to_owned(), "o{}".to_owned())]);
        let mut template = Template::parse("{input}/{param.out}/{json:param.out}/{path}").unwrap();
        template.bind(&params, None);
        assert_eq!(template.to_string(), "{input}/o{{}}/\"o{{}}\"/{path}");
        template.bind(&params, Some(b"in"));
        assert_eq!(template.to_string(), "in/o{{}}/\"o{{}}\"/{path}");
        assert_eq!(template.constant(), None);
        let mut constant = Template::parse("{input}/x").unwrap();
        constant.bind(&params, Some(b"in"));
        assert_eq!(constant.constant(), Some(&b"in/x"[..]));
    }

    #[test]
    fn the_text_shown_is_read_back() {
        for text in ["", "a{{b}}", "{path}-{json:json.x}{blake3[..2]}", "{param.x}{input}{shard}{rel}"] {
            let template = Template::parse(text).unwrap();
            assert_eq!(template.to_string(), text);
        }
    }

    #[test]
    fn only_a_bare_field_is_only_that_field() {
        let is_only = |text: &str| Template::parse(text).unwrap().is_only(&Field::Input);
        assert!(is_only("{input}"));
        assert!(!is_only("{input}/"));
        assert!(!is_only("{json:input}"));
        assert!(!is_only("{input[..3]}"));
        assert!(!is_only("{path}"));
    }
}
