//! Typed access to TOML that reports missing, unknown and wrong values.
//!
//! A [`Section`] is a table whose keys are read by name; a key that was not read by the end is unknown. An [`Entry`] is
//! one value; each of its methods returns the value as one type, or notes a [`Problem`] and returns `None`. So a parser
//! that uses them continues after an error, and one run reports all mistakes of a file.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use millstream_command::{size, time};
use toml_edit::{ArrayOfTables, Item, Key, TableLike, Value};

use super::error::Problem;
use super::literal;
use super::suggest;
use super::template::{Field, Template};

/// A parameter that the flow declares. Its value may be wrong: templates with the parameter are then not reported as
/// further mistakes.
pub(super) struct Param {
    /// The position of the parameter's name in the text.
    pub(super) span: Range<usize>,
    /// Whether a template uses it.
    pub(super) used: Cell<bool>,
}

/// The text being read, and the problems found in it.
pub(super) struct Reading<'t> {
    text: &'t str,
    /// `[params]`, filled in before any template is read.
    pub(super) declared: BTreeMap<String, Param>,
    /// The value of each parameter, unless that value is wrong.
    pub(super) params: BTreeMap<String, String>,
    problems: RefCell<Vec<Problem>>,
    fields: RefCell<Vec<(Field, Range<usize>)>>,
}

impl<'t> Reading<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            declared: BTreeMap::new(),
            params: BTreeMap::new(),
            problems: RefCell::default(),
            fields: RefCell::default(),
        }
    }

    /// The fields, other than parameters, of all templates read since the last call.
    pub(super) fn take_fields(&self) -> Vec<(Field, Range<usize>)> {
        self.fields.take()
    }

    pub(super) fn report(&self, problem: Problem) {
        self.problems.borrow_mut().push(problem);
    }

    /// Whether no problem has been found so far.
    pub(super) fn is_right(&self) -> bool {
        self.problems.borrow().is_empty()
    }

    pub(super) fn into_problems(self) -> Vec<Problem> {
        self.problems.into_inner()
    }
}

/// A table.
pub(super) struct Section<'a> {
    pub(super) reading: &'a Reading<'a>,
    table: &'a dyn TableLike,
    /// The name in errors: "the flow", "stage `get`".
    pub(super) what: String,
    /// The position that an error shows if a key is missing.
    pub(super) span: Range<usize>,
    known: Vec<&'static str>,
    /// Unknown keys that were reported already, as misspellings of a missing key.
    reported: Vec<String>,
}

impl<'a> Section<'a> {
    pub(super) fn new(reading: &'a Reading<'a>, table: &'a dyn TableLike, what: String, span: Range<usize>) -> Self {
        Self { reading, table, what, span, known: Vec::new(), reported: Vec::new() }
    }

    /// The value of `key`, which becomes a known key of this table.
    pub(super) fn get(&mut self, key: &'static str) -> Option<Entry<'a>> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        let (key, item) = self.table.get_key_value(key)?;
        Entry::of_item(self.reading, key, item)
    }

    /// The value of `key`. Its absence is reported, with `example` as the help.
    pub(super) fn require(&mut self, key: &'static str, example: &str) -> Option<Entry<'a>> {
        let entry = self.get(key);
        if entry.is_none() {
            let mistyped = self.entries().into_iter().find(|given| {
                !self.known.contains(&given.name.as_str()) && suggest::closest(&given.name, [key]).is_some()
            });
            match mistyped {
                // A misspelled key is one mistake: it is not reported as both a missing and an unknown key.
                Some(mistyped) => {
                    self.unknown(&mistyped, &format!("did you mean `{key}`?"));
                    self.reported.push(mistyped.name);
                }
                None => {
                    let problem =
                        Problem::new(format!("{} has no `{key}`", self.what)).at(self.span.clone(), "needs it");
                    self.reading.report(problem.help(format!("add `{example}`")));
                }
            }
        }
        entry
    }

    /// The value of `key` as `read` returns it, or `default` if the key is absent. `None` means that the value is
    /// wrong.
    pub(super) fn or<T>(
        &mut self,
        key: &'static str,
        default: T,
        read: impl FnOnce(&Entry<'a>) -> Option<T>,
    ) -> Option<T> {
        self.get(key).map_or(Some(default), |entry| read(&entry))
    }

    /// The value of `key` as `read` returns it. The outer `None` means that the value is wrong, the inner `None` that
    /// the key is absent.
    pub(super) fn optional<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&Entry<'a>) -> Option<T>,
    ) -> Option<Option<T>> {
        self.or(key, None, |entry| read(entry).map(Some))
    }

    /// All entries, for a table whose keys the author of the file chooses.
    pub(super) fn entries(&self) -> Vec<Entry<'a>> {
        self.keys()
            .filter_map(|name| self.table.get_key_value(name))
            .filter_map(|(key, item)| Entry::of_item(self.reading, key, item))
            .collect()
    }

    fn keys(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let table = self.table;
        table.iter().map(|(key, _)| key)
    }

    fn unknown(&self, entry: &Entry<'_>, help: &str) {
        let problem = Problem::new(format!("{} has no key `{}`", self.what, entry.name))
            .at(entry.key_span.clone(), "unknown key");
        self.reading.report(problem.help(help));
    }

    /// Reports the keys that were not read.
    pub(super) fn finish(self) {
        for entry in self.entries() {
            if self.known.contains(&entry.name.as_str()) || self.reported.contains(&entry.name) {
                continue;
            }
            self.unknown(
                &entry,
                &match suggest::closest(&entry.name, self.known.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("its keys are {}", self.known.join(", ")),
                },
            );
        }
    }
}

/// A value, with its name in messages.
#[derive(Clone)]
pub(super) struct Entry<'a> {
    pub(super) reading: &'a Reading<'a>,
    /// The key; for an element of an array, the array's key.
    pub(super) name: String,
    pub(super) key_span: Range<usize>,
    pub(super) span: Range<usize>,
    node: Node<'a>,
}

#[derive(Clone, Copy)]
enum Node<'a> {
    Value(&'a Value),
    Table(&'a dyn TableLike),
    Tables(&'a ArrayOfTables),
}

impl fmt::Display for Node<'_> {
    /// The kind of value, with its article.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Value(Value::String(_)) => "a string",
            Self::Value(Value::Integer(_)) => "an integer",
            Self::Value(Value::Float(_)) => "a number with a fraction",
            Self::Value(Value::Boolean(_)) => "a boolean",
            Self::Value(Value::Datetime(_)) => "a date",
            Self::Value(Value::Array(_)) => "an array",
            Self::Value(Value::InlineTable(_)) | Self::Table(_) => "a table",
            Self::Tables(_) => "an array of tables",
        })
    }
}

/// A string with its position.
pub(super) struct Text {
    pub(super) value: String,
    pub(super) span: Range<usize>,
}

impl<'a> Entry<'a> {
    fn of_item(reading: &'a Reading<'a>, key: &Key, item: &'a Item) -> Option<Self> {
        let node = match item {
            Item::None => return None,
            Item::Value(value) => Node::Value(value),
            Item::Table(table) => Node::Table(table),
            Item::ArrayOfTables(tables) => Node::Tables(tables),
        };
        let key_span = key.span().or_else(|| item.span()).unwrap_or(0..0);
        let span = item.span().unwrap_or_else(|| key_span.clone());
        Some(Self { reading, name: key.get().to_owned(), key_span, span, node })
    }

    /// Notes that the value has the wrong type.
    fn wrong(&self, expected: &str) {
        let problem = Problem::new(format!("`{}` takes {expected}, not {}", self.name, self.node));
        self.reading.report(problem.at(self.span.clone(), format!("this is {}", self.node)));
    }

    /// Notes that the value has the right type but makes no sense.
    pub(super) fn senseless(&self, message: impl Into<String>, label: &str) {
        self.reading.report(Problem::new(message).at(self.span.clone(), label));
    }

    /// Returns what was parsed from this string, or notes the parser's message.
    pub(super) fn understood<T>(&self, result: Result<T, String>) -> Option<T> {
        result.map_err(|message| self.senseless(format!("`{}`: {message}", self.name), "here")).ok()
    }

    /// The value, if it is a string. Any other value gives `None`, and no problem is reported.
    pub(super) fn as_text(&self) -> Option<&'a str> {
        match self.node {
            Node::Value(value) => value.as_str(),
            _ => None,
        }
    }

    /// The value, if it is an integer. Any other value gives `None`, and no problem is reported.
    pub(super) fn as_integer(&self) -> Option<i64> {
        match self.node {
            Node::Value(value) => value.as_integer(),
            _ => None,
        }
    }

    /// The value, if it is a boolean. Any other value gives `None`, and no problem is reported.
    pub(super) fn as_flag(&self) -> Option<bool> {
        match self.node {
            Node::Value(value) => value.as_bool(),
            _ => None,
        }
    }

    /// The text of the value, if it is a date. Any other value gives `None`, and no problem is reported.
    pub(super) fn as_date(&self) -> Option<String> {
        match self.node {
            Node::Value(Value::Datetime(date)) => Some(date.value().to_string()),
            _ => None,
        }
    }

    /// Whether the value is a table, either inline or under a heading.
    pub(super) fn is_table(&self) -> bool {
        self.table().is_some()
    }

    /// Whether the value is an array of values.
    pub(super) fn is_array(&self) -> bool {
        matches!(self.node, Node::Value(Value::Array(_)))
    }

    pub(super) fn text(&self, expected: &str) -> Option<Text> {
        match self.as_text() {
            Some(value) => Some(Text { value: value.to_owned(), span: self.span.clone() }),
            None => {
                self.wrong(expected);
                None
            }
        }
    }

    /// A name: a string that is not empty and has no control characters, so that messages and screens can show it as it
    /// is.
    pub(super) fn identifier(&self) -> Option<Text> {
        let text = self.text("a name in quotes")?;
        if text.value.is_empty() || text.value.chars().any(char::is_control) {
            self.senseless(format!("`{}` is empty or has control characters in it", self.name), "not a name");
            return None;
        }
        Some(text)
    }

    pub(super) fn boolean(&self) -> Option<bool> {
        match self.node {
            Node::Value(Value::Boolean(value)) => Some(*value.value()),
            _ => {
                self.wrong("`true` or `false`");
                None
            }
        }
    }

    /// A whole number within `bounds`.
    pub(super) fn integer(&self, bounds: RangeInclusive<i64>) -> Option<i64> {
        let Some(value) = self.as_integer() else {
            self.wrong("a whole number");
            return None;
        };
        self.within(value, bounds)
    }

    /// Checks a whole number's bounds. A zero where at least one is needed is the usual mistake and has a message of
    /// its own.
    fn within(&self, value: i64, bounds: RangeInclusive<i64>) -> Option<i64> {
        if bounds.contains(&value) {
            return Some(value);
        }
        if value == 0 && *bounds.start() == 1 {
            self.senseless(format!("`{}` is zero, so nothing could ever pass", self.name), "at least 1");
        } else if value < *bounds.start() {
            self.senseless(format!("`{}` is {value}; the least is {}", self.name, bounds.start()), "too small");
        } else {
            self.senseless(format!("`{}` is {value}; the most is {}", self.name, bounds.end()), "too large");
        }
        None
    }

    /// A count of at least one.
    pub(super) fn count(&self) -> Option<u64> {
        // The upper end keeps sums of counts within 64 bits.
        self.integer(1..=1 << 40).map(i64::unsigned_abs)
    }

    /// A size: a string such as `"64MiB"`, or a number of bytes.
    pub(super) fn bytes(&self) -> Option<u64> {
        match (self.as_text(), self.as_integer()) {
            (Some(text), _) => self.understood(size::parse(text)),
            (_, Some(bytes)) => self.within(bytes, 0..=i64::MAX).map(i64::unsigned_abs),
            _ => {
                self.wrong("a size such as \"64MiB\"");
                None
            }
        }
    }

    /// A size of at least one byte.
    pub(super) fn bytes_cap(&self) -> Option<u64> {
        let bytes = self.bytes()?;
        if let Some(digits) = self.as_text().filter(|text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()))
        {
            let message = format!("`{}` is \"{digits}\", which has no unit", self.name);
            let problem = Problem::new(message).at(self.span.clone(), "of what?");
            self.reading.report(problem.help(format!("write \"{digits}MiB\", or \"{digits}B\" for bytes")));
            return None;
        }
        if bytes == 0 {
            self.senseless(format!("`{}` is zero, so nothing could ever pass", self.name), "at least 1 byte");
            return None;
        }
        Some(bytes)
    }

    pub(super) fn duration(&self) -> Option<Duration> {
        self.parsed("a time such as \"30s\"", time::parse)
    }

    pub(super) fn duration_range(&self) -> Option<Range<Duration>> {
        self.parsed("a time or a range such as \"100ms..5s\"", time::parse_range)
    }

    pub(super) fn rate(&self) -> Option<f64> {
        self.parsed("a rate such as \"50/s\"", time::parse_rate)
    }

    /// A string that `parse` understands.
    pub(super) fn parsed<T>(&self, expected: &str, parse: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        let text = self.text(expected)?;
        self.understood(parse(&text.value))
    }

    /// One word of a fixed list.
    pub(super) fn choice<T: Clone>(&self, choices: &[(&str, T)]) -> Option<T> {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let listed = words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(" or ");
        let text = self.text(&listed)?;
        let found = choices.iter().find(|(word, _)| *word == text.value);
        if found.is_none() {
            let help = suggest::closest(&text.value, words)
                .map_or_else(|| format!("it takes {listed}"), |near| format!("did you mean \"{near}\"?"));
            let problem =
                Problem::new(format!("`{}` cannot be \"{}\"", self.name, text.value)).at(text.span, "unknown");
            self.reading.report(problem.help(help));
        }
        found.map(|(_, value)| value.clone())
    }

    /// A template, with the flow's parameters filled in.
    pub(super) fn template(&self) -> Option<Template> {
        let text = self.text("a string")?;
        self.reading.template(&text.value, 0, &text.span)
    }

    /// Whether `template`, which was read from this entry, has no field that differs from unit to unit. Such a field is
    /// reported, with the reason `why`.
    pub(super) fn same_for_all_units(&self, template: &Template, why: &str) -> bool {
        let Some((field, _)) = template.fields().find(|(field, _)| **field != Field::Input) else { return true };
        let problem = Problem::new(format!("`{}` cannot use `{{{field}}}`, which belongs to a unit: {why}", self.name));
        self.reading.report(
            problem.at(self.span.clone(), "the same for all units").help("use only {input} and {param.NAME} here"),
        );
        false
    }

    /// A string, number or boolean as text.
    pub(super) fn scalar(&self) -> Option<String> {
        match self.node {
            Node::Value(Value::String(text)) => Some(text.value().clone()),
            Node::Value(Value::Integer(number)) => Some(number.value().to_string()),
            Node::Value(Value::Float(number)) => Some(number.value().to_string()),
            Node::Value(Value::Boolean(flag)) => Some(flag.value().to_string()),
            _ => {
                self.wrong("a string, a number or a boolean");
                None
            }
        }
    }

    /// A template that names a file, and so cannot be empty.
    pub(super) fn path_template(&self) -> Option<Template> {
        let template = self.template()?;
        if template.constant() == Some(b"") {
            self.senseless(format!("`{}` is empty, and a file needs a name", self.name), "empty");
            return None;
        }
        Some(template)
    }

    fn table(&self) -> Option<&'a dyn TableLike> {
        match self.node {
            Node::Table(table) => Some(table),
            Node::Value(Value::InlineTable(table)) => Some(table),
            _ => None,
        }
    }

    /// A table, called `what` in errors.
    pub(super) fn section(&self, what: impl Into<String>, expected: &str) -> Option<Section<'a>> {
        let Some(table) = self.table() else {
            self.wrong(expected);
            return None;
        };
        Some(Section::new(self.reading, table, what.into(), self.key_span.clone()))
    }

    /// The elements of an array.
    pub(super) fn elements(&self, expected: &str) -> Option<Vec<Entry<'a>>> {
        let element = |node, span: Option<Range<usize>>| {
            let span = span.unwrap_or_else(|| self.span.clone());
            Entry { reading: self.reading, name: self.name.clone(), key_span: span.clone(), span, node }
        };
        match self.node {
            Node::Value(Value::Array(array)) => {
                Some(array.iter().map(|value| element(Node::Value(value), value.span())).collect())
            }
            Node::Tables(tables) => {
                Some(tables.iter().map(|table| element(Node::Table(table), table.span())).collect())
            }
            _ => {
                self.wrong(expected);
                None
            }
        }
    }
}

impl Reading<'_> {
    /// Reads a template and fills in the parameters. The template begins at byte `from` of `string`; `span` is the
    /// position of the string in the text, quotes included.
    pub(super) fn template(&self, string: &str, from: usize, span: &Range<usize>) -> Option<Template> {
        let place = |range: Range<usize>| self.within_string(string, span, &(range.start + from..range.end + from));
        let mut template = match Template::parse(&string[from..]) {
            Ok(template) => template,
            Err(error) => {
                self.report(Problem::new(error.message).at(place(error.range), "here").help(error.help));
                return None;
            }
        };
        let mut known = true;
        for (field, range) in template.fields() {
            let at = place(range);
            let Field::Param(name) = field else {
                self.fields.borrow_mut().push((field.clone(), at));
                continue;
            };
            if let Some(param) = self.declared.get(name) {
                param.used.set(true);
                known &= self.params.contains_key(name);
            } else {
                known = false;
                let help = match suggest::closest(name, self.declared.keys().map(String::as_str)) {
                    Some(near) => format!("did you mean `{{param.{near}}}`?"),
                    None => format!("declare it with a default: `{name} = \"…\"` under [params]"),
                };
                self.report(
                    Problem::new(format!("the flow has no parameter `{name}`")).at(at, "unknown parameter").help(help),
                );
            }
        }
        template.bind(&self.params, None);
        known.then_some(template)
    }

    /// Converts `range`, a part of a string's value, to its position in the text. Returns the position of the whole
    /// string if that of the part cannot be determined.
    pub(super) fn within_string(&self, value: &str, span: &Range<usize>, range: &Range<usize>) -> Range<usize> {
        let raw = self.text.get(span.clone()).unwrap_or("");
        literal::place(raw, value, range).map_or_else(|| span.clone(), |at| span.start + at.start..span.start + at.end)
    }
}
