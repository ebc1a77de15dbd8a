//! The conditions of `filter`.

use regex::bytes::Regex;

use crate::file::template::Template;

/// `when` of the `filter` op.
#[derive(Debug, Clone)]
pub enum Condition {
    /// `{ exists = "PATH" }`: a file or folder of this name exists.
    Exists(Template),
    /// `{ missing = "PATH" }`: no file or folder of this name exists.
    Missing(Template),
    /// `{ has = "{json.ms}" }`: the unit has a value for every field in the text.
    Has(Template),
    /// `{ stale = "PATH", than = "PATH" }`: the first file is missing, or is older than the second.
    Stale {
        /// The file that may be missing or older.
        target: Template,
        /// The file from which `target` is made.
        than: Template,
    },
    /// `{ number = "TEXT", at_least = 1, below = 10 }`: the text is a number within all bounds.
    Number {
        /// The number.
        number: Template,
        /// The bounds; at least one.
        bounds: Vec<(Bound, Template)>,
    },
    /// `{ date = "TEXT", at_least = "2026-01-31", below = "2026-02-28T12:00:00Z" }`: the text is a date within all bounds.
    Date {
        /// The date.
        date: Template,
        /// The bounds; at least one.
        bounds: Vec<(Bound, Template)>,
    },
    /// `{ content = "PATH" }`: a regular file of this name exists and has the payload's content.
    Content {
        /// The file.
        path: Template,
        /// Whether the file is decompressed before the comparison.
        zstd: bool,
    },
    /// `{ text = "{ext}", equals = "rs" }` and the like.
    Text {
        /// The tested text.
        text: Template,
        /// The comparison.
        test: TextTest,
    },
    /// `{ size = "1KiB..1MiB" }`: the unit's size in bytes; the lower end is included, the upper is not.
    Size {
        /// At least this many bytes.
        at_least: u64,
        /// Fewer than this many bytes; no upper end if absent.
        below: Option<u64>,
    },
    /// `{ not = { … } }`.
    Not(Box<Condition>),
    /// `{ all = [{ … }, …] }`.
    All(Vec<Condition>),
    /// `{ any = [{ … }, …] }`.
    Any(Vec<Condition>),
}

/// A bound of a [`Condition::Number`] or a [`Condition::Date`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    /// `equals`.
    Equals,
    /// `at_least`.
    AtLeast,
    /// `above`.
    Above,
    /// `at_most`.
    AtMost,
    /// `below`.
    Below,
}

/// The comparison of a [`Condition::Text`]: by bytes, case-sensitive.
#[derive(Debug, Clone)]
pub enum TextTest {
    /// `matches`: anywhere in the text, unless the expression is anchored.
    Matches(Regex),
    /// `equals`.
    Equals(Template),
    /// `one_of`.
    OneOf(Vec<Template>),
    /// `contains`.
    Contains(Template),
    /// `starts_with`.
    StartsWith(Template),
    /// `ends_with`.
    EndsWith(Template),
}
