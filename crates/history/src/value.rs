//! Values of operations: their inputs and outputs.
//!
//! A checker compares values millions of times, and only for equality, so a [`Value`] is one word. An integer of 63
//! bits is stored in the word itself. Any other value (null, a boolean, a string, a list, a larger integer) is stored
//! once in the history's table, and the word is its index there.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use indexmap::{Equivalent, IndexSet};

use crate::quoted::Quoted;

/// A value in one word. Within one history, two values are equal if and only if their words are.
///
/// `Ord` sorts integers numerically, and all other values in the order of their first appearance.
///
/// ```
/// use millstream_history::Value;
///
/// assert_eq!(Value::int(17).as_int(), Some(17));
/// assert!(Value::NULL.is_null());
/// assert_eq!(Value::from(true), Value::TRUE);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(i64);

const ODD: i64 = 1;

impl Value {
    /// Null: no input, no output, or the answer of an empty container.
    pub const NULL: Value = Value::entry(0);
    /// False.
    pub const FALSE: Value = Value::entry(1);
    /// True.
    pub const TRUE: Value = Value::entry(2);
    /// The empty string: the initial value of a store of strings.
    pub const EMPTY_TEXT: Value = Value::entry(3);

    /// The largest integer that fits into the word.
    pub const INT_MAX: i64 = i64::MAX >> 1;
    /// The smallest integer that fits into the word.
    pub const INT_MIN: i64 = i64::MIN >> 1;

    const fn entry(index: usize) -> Value {
        Value((index as i64) << 1 | ODD)
    }

    fn index(self) -> Option<usize> {
        (self.0 & ODD == ODD).then_some((self.0 >> 1) as usize)
    }

    /// An integer.
    ///
    /// # Panics
    /// Outside [`INT_MIN`](Self::INT_MIN)`..=`[`INT_MAX`](Self::INT_MAX). [`Values::int`] accepts any integer.
    #[inline]
    pub const fn int(int: i64) -> Value {
        assert!(int >= Value::INT_MIN && int <= Value::INT_MAX, "the integer needs more than 63 bits: use Values::int");
        Value(int << 1)
    }

    /// The integer, if it is stored in the word.
    #[inline]
    pub const fn as_int(self) -> Option<i64> {
        if self.0 & ODD == 0 { Some(self.0 >> 1) } else { None }
    }

    /// Whether the value is null.
    #[inline]
    pub fn is_null(self) -> bool {
        self == Value::NULL
    }

    /// The word. Equal values of one history have equal words, so the word can be hashed.
    #[inline]
    pub(crate) const fn bits(self) -> u64 {
        self.0.cast_unsigned()
    }
}

impl From<i32> for Value {
    #[inline]
    fn from(int: i32) -> Value {
        Value(i64::from(int) << 1)
    }
}

impl From<u32> for Value {
    #[inline]
    fn from(int: u32) -> Value {
        Value(i64::from(int) << 1)
    }
}

impl From<bool> for Value {
    #[inline]
    fn from(bool: bool) -> Value {
        if bool { Value::TRUE } else { Value::FALSE }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (*self, self.as_int(), self.index()) {
            (Value::NULL, ..) => f.write_str("null"),
            (Value::FALSE, ..) => f.write_str("false"),
            (Value::TRUE, ..) => f.write_str("true"),
            (Value::EMPTY_TEXT, ..) => f.write_str("\"\""),
            (_, Some(int), _) => write!(f, "{int}"),
            (.., index) => write!(f, "value#{}", index.unwrap_or_default()),
        }
    }
}

/// The meaning of a [`Value`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Datum<'a> {
    /// Null.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i128),
    /// Text.
    Text(&'a str),
    /// A list of values of the same history.
    List(&'a [Value]),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Null,
    Bool(bool),
    Int(i128),
    Text(Box<str>),
    List(Box<[Value]>),
}

impl Entry {
    fn datum(&self) -> Datum<'_> {
        match self {
            Entry::Null => Datum::Null,
            Entry::Bool(bool) => Datum::Bool(*bool),
            Entry::Int(int) => Datum::Int(*int),
            Entry::Text(text) => Datum::Text(text),
            Entry::List(list) => Datum::List(list),
        }
    }
}

impl From<Datum<'_>> for Entry {
    fn from(datum: Datum<'_>) -> Entry {
        match datum {
            Datum::Null => Entry::Null,
            Datum::Bool(bool) => Entry::Bool(bool),
            Datum::Int(int) => Entry::Int(int),
            Datum::Text(text) => Entry::Text(text.into()),
            Datum::List(list) => Entry::List(list.into()),
        }
    }
}

impl Hash for Entry {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.datum().hash(state);
    }
}

impl Equivalent<Entry> for Datum<'_> {
    fn equivalent(&self, entry: &Entry) -> bool {
        *self == entry.datum()
    }
}

/// The values of a history that do not fit into a word, each stored once.
#[derive(Clone, Debug)]
pub struct Values {
    entries: IndexSet<Entry>,
}

impl Default for Values {
    fn default() -> Self {
        // In the order of the constants of `Value`.
        let entries = [Entry::Null, Entry::Bool(false), Entry::Bool(true), Entry::Text("".into())];
        Values { entries: entries.into_iter().collect() }
    }
}

impl Values {
    /// A table of only those values that every history has.
    pub fn new() -> Self {
        Values::default()
    }

    /// The value of an integer of any size, which is added to the table if necessary.
    pub fn int(&mut self, int: impl Into<i128>) -> Value {
        let int = int.into();
        match i64::try_from(int) {
            Ok(small @ Value::INT_MIN..=Value::INT_MAX) => Value::int(small),
            _ => self.enter(Datum::Int(int)),
        }
    }

    /// The value of a string, which is added to the table if necessary.
    pub fn text(&mut self, text: &str) -> Value {
        self.enter(Datum::Text(text))
    }

    /// The value of a list, such as the two values of a compare-and-set; the list is added to the table if necessary.
    pub fn list(&mut self, list: &[Value]) -> Value {
        self.enter(Datum::List(list))
    }

    fn enter(&mut self, datum: Datum<'_>) -> Value {
        let index = match self.entries.get_index_of(&datum) {
            Some(index) => index,
            None => self.entries.insert_full(datum.into()).0,
        };
        Value::entry(index)
    }

    /// Adds the values of another table.
    #[cfg(feature = "formats")]
    pub(crate) fn absorb(&mut self, other: &Values) -> Translation {
        let known = Values::default().entries.len();
        let mut translation = Translation { known, entries: Vec::new() };
        // Entries precede the lists that contain them, so one pass suffices.
        for entry in other.entries.iter().skip(known) {
            let here = match entry.datum() {
                Datum::List(list) => {
                    let list: Vec<Value> = list.iter().map(|&value| translation.of(value)).collect();
                    self.list(&list)
                }
                datum => self.enter(datum),
            };
            translation.entries.push(here);
        }
        translation
    }

    /// The meaning of a value.
    ///
    /// # Panics
    /// If the value belongs to another history and has no entry here.
    pub fn get(&self, value: Value) -> Datum<'_> {
        match value.index() {
            None => Datum::Int(i128::from(value.0 >> 1)),
            Some(index) => self.entries[index].datum(),
        }
    }

    /// The list's values, if it is a list.
    pub fn as_list(&self, value: Value) -> Option<&[Value]> {
        match self.get(value) {
            Datum::List(list) => Some(list),
            _ => None,
        }
    }

    /// The list's two values, if it is a list of two.
    pub fn as_pair(&self, value: Value) -> Option<[Value; 2]> {
        self.as_list(value)?.try_into().ok()
    }

    /// Compares by meaning: null, then booleans, integers by size, strings by their bytes, lists by their values.
    pub(crate) fn compare(&self, a: Value, b: Value) -> Ordering {
        match (a.as_int(), b.as_int()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => self.compare_data(self.get(a), self.get(b)),
        }
    }

    fn compare_data(&self, a: Datum<'_>, b: Datum<'_>) -> Ordering {
        match (a, b) {
            (Datum::Bool(a), Datum::Bool(b)) => a.cmp(&b),
            (Datum::Int(a), Datum::Int(b)) => a.cmp(&b),
            (Datum::Text(a), Datum::Text(b)) => a.cmp(b),
            (Datum::List(a), Datum::List(b)) => {
                let differing = a.iter().zip(b).map(|(&a, &b)| self.compare(a, b)).find(|order| order.is_ne());
                differing.unwrap_or_else(|| a.len().cmp(&b.len()))
            }
            (a, b) => rank(a).cmp(&rank(b)),
        }
    }

    /// Formats the value as JSON.
    pub fn show(&self, value: Value) -> impl fmt::Display + '_ {
        Shown { values: self, value }
    }
}

/// Translates the values of one table into those of another.
#[cfg(feature = "formats")]
pub(crate) struct Translation {
    /// The number of entries that are the same in every table.
    known: usize,
    /// The translations of the other entries.
    entries: Vec<Value>,
}

#[cfg(feature = "formats")]
impl Translation {
    #[inline]
    pub(crate) fn of(&self, value: Value) -> Value {
        let own = value.index().and_then(|index| index.checked_sub(self.known));
        own.map_or(value, |index| self.entries[index])
    }
}

fn rank(datum: Datum<'_>) -> u8 {
    match datum {
        Datum::Null => 0,
        Datum::Bool(_) => 1,
        Datum::Int(_) => 2,
        Datum::Text(_) => 3,
        Datum::List(_) => 4,
    }
}

struct Shown<'a> {
    values: &'a Values,
    value: Value,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.values.get(self.value) {
            Datum::Null => f.write_str("null"),
            Datum::Bool(bool) => write!(f, "{bool}"),
            Datum::Int(int) => write!(f, "{int}"),
            Datum::Text(text) => Quoted(text).fmt(f),
            Datum::List(list) => {
                f.write_str("[")?;
                for (i, &value) in list.iter().enumerate() {
                    if i > 0 {
                        f.write_str(",")?;
                    }
                    self.values.show(value).fmt(f)?;
                }
                f.write_str("]")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_equal_words() {
        let mut values = Values::new();
        let a = values.text("a");
        let pair = values.list(&[a, Value::int(-3)]);
        let large = values.int(u64::MAX);
        assert_eq!(values.text("a"), a);
        assert_eq!(values.list(&[a, Value::int(-3)]), pair);
        assert_eq!(values.int(u64::MAX), large);
        assert_eq!(values.int(7), Value::int(7));
        assert_eq!(values.text(""), Value::EMPTY_TEXT);
        assert_ne!(values.text("b"), a);
        assert_eq!(values.get(large), Datum::Int(i128::from(u64::MAX)));
        assert_eq!(values.as_pair(pair), Some([a, Value::int(-3)]));
    }

    #[test]
    fn values_show_as_json_writes_them() {
        let mut values = Values::new();
        let text = values.text("a \"quoted\" one");
        let list = values.list(&[Value::NULL, Value::TRUE, Value::int(Value::INT_MIN), text]);
        assert_eq!(values.show(list).to_string(), format!(r#"[null,true,{},"a \"quoted\" one"]"#, Value::INT_MIN));
    }

    #[test]
    fn order_goes_by_meaning() {
        let mut values = Values::new();
        let (z, a) = (values.text("z"), values.text("a"));
        let large = values.int(i64::MAX);
        let long = values.list(&[a, z]);
        let short = values.list(&[a]);
        let rising = [Value::NULL, Value::FALSE, Value::TRUE, Value::int(-1), Value::int(5), large, a, z, short, long];
        for pair in rising.windows(2) {
            assert_eq!(values.compare(pair[0], pair[1]), Ordering::Less, "{pair:?}");
        }
    }
}
