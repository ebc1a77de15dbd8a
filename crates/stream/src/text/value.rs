//! The values of text programs.

use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Serialize, Serializer};

use crate::Stored;

/// The maximum length of a text, in bytes.
pub(super) const MAX_TEXT: usize = 64 << 20;

/// The size in bytes from which the unused memory of a text or a list may be released.
const KEPT: usize = 1 << 20;

/// Releases memory that was needed for a large value and is mostly unused now.
#[inline]
pub(super) fn give_back<T>(values: &mut Vec<T>) {
    if values.capacity() > KEPT / size_of::<T>() && values.capacity() / 4 > values.len() {
        values.shrink_to(values.len());
    }
}

/// A value of a text program. `clone_from` reuses the memory of a value of the same kind. If that memory exceeds 1 MiB and most
/// of it is then unused, the unused part is released.
#[derive(Debug, Default, PartialEq)]
pub enum Value {
    /// An empty value.
    #[default]
    Empty,
    /// True or false.
    Truth(bool),
    /// A whole number.
    Whole(i64),
    /// A floating-point number.
    Number(f64),
    /// A line, a field or a record; any bytes.
    Text(Vec<u8>),
    /// Values in order: windows, zipped values, JSON arrays.
    List(Vec<Value>),
    /// Named values: rows of CSV with a header, JSON objects.
    Fields(Vec<(String, Value)>),
}

impl Clone for Value {
    fn clone(&self) -> Self {
        match self {
            Self::Empty => Self::Empty,
            Self::Truth(truth) => Self::Truth(*truth),
            Self::Whole(number) => Self::Whole(*number),
            Self::Number(number) => Self::Number(*number),
            Self::Text(text) => Self::Text(text.clone()),
            Self::List(list) => Self::List(list.clone()),
            Self::Fields(fields) => Self::Fields(fields.clone()),
        }
    }

    fn clone_from(&mut self, from: &Self) {
        match (&mut *self, from) {
            (Self::Text(into), Self::Text(text)) => {
                into.clone_from(text);
                give_back(into);
            }
            (Self::List(into), Self::List(list)) => {
                into.clone_from(list);
                give_back(into);
            }
            (Self::Fields(into), Self::Fields(fields)) => {
                into.clone_from(fields);
                give_back(into);
            }
            (into, from) => *into = from.clone(),
        }
    }
}

// Keys contain no NaN (see `Value::unify`), so each key equals itself.
impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Empty => {}
            Self::Truth(truth) => truth.hash(state),
            Self::Whole(number) => number.hash(state),
            // Equal numbers have equal bits, except for the two zeros.
            Self::Number(number) => (number + 0.0).to_bits().hash(state),
            Self::Text(text) => text.hash(state),
            Self::List(list) => list.hash(state),
            Self::Fields(fields) => fields.hash(state),
        }
    }
}

impl Value {
    /// Turns the value into a key. Equal numbers become the same key. NaN is an error, because it equals no value.
    pub(super) fn unify(&mut self) -> Result<(), String> {
        match self {
            Self::Number(number) if number.is_nan() => Err("a key that is NaN equals no key".to_owned()),
            Self::Number(number) => {
                // Up to 2^53, floats represent whole numbers exactly.
                let whole = *number as i64;
                if whole as f64 == *number && whole.unsigned_abs() <= 1 << 53 {
                    *self = Self::Whole(whole);
                }
                Ok(())
            }
            Self::List(list) => list.iter_mut().try_for_each(Self::unify),
            Self::Fields(fields) => fields.iter_mut().try_for_each(|(_, value)| value.unify()),
            _ => Ok(()),
        }
    }

    /// Returns roughly how many bytes an operator reads or writes for this value.
    #[inline]
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Empty | Self::Truth(_) | Self::Whole(_) | Self::Number(_) => 0,
            Self::Text(text) => text.len(),
            Self::List(_) | Self::Fields(_) => self.bytes_within(),
        }
    }

    fn bytes_within(&self) -> usize {
        match self {
            Self::List(list) => list.iter().map(Self::bytes).sum::<usize>() + size_of_val(&list[..]),
            Self::Fields(fields) => {
                let values = fields.iter().map(|(name, value)| name.len() + value.bytes());
                values.sum::<usize>() + size_of_val(&fields[..])
            }
            plain => plain.bytes(),
        }
    }

    /// Returns the name of the value's kind.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Empty => "an empty value",
            Self::Truth(_) => "a truth value",
            Self::Whole(_) | Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Fields(_) => "a value with fields",
        }
    }

    /// Turns the value into an empty text, reusing the memory of a former text, and returns the text.
    pub(super) fn text(&mut self) -> &mut Vec<u8> {
        if !matches!(self, Self::Text(_)) {
            *self = Self::Text(Vec::new());
        }
        let Self::Text(text) = self else { unreachable!("it was just converted") };
        text.clear();
        give_back(text);
        text
    }

    /// Turns the value into a list, unless it is one already, and returns the list with its values.
    pub(super) fn list(&mut self) -> &mut Vec<Value> {
        if !matches!(self, Self::List(_)) {
            *self = Self::List(Vec::new());
        }
        let Self::List(list) = self else { unreachable!("it was just converted") };
        list
    }

    /// Turns the value into one with fields, unless it is one already, and returns its fields.
    pub(super) fn fields(&mut self) -> &mut Vec<(String, Value)> {
        if !matches!(self, Self::Fields(_)) {
            *self = Self::Fields(Vec::new());
        }
        let Self::Fields(fields) = self else { unreachable!("it was just converted") };
        fields
    }

    /// Appends the printed form of the value. Texts are printed as they are, lists with tabs between their values, and fields as
    /// a JSON object in their order.
    pub fn print(&self, into: &mut Vec<u8>) {
        use std::io::Write as _;
        // Writing to memory does not fail.
        let _ = match self {
            Self::Empty => Ok(()),
            Self::Truth(truth) => write!(into, "{truth}"),
            Self::Whole(number) => write!(into, "{number}"),
            Self::Number(number) => write!(into, "{number}"),
            Self::Text(text) => into.write_all(text),
            Self::List(list) => {
                for (at, value) in list.iter().enumerate() {
                    if at > 0 {
                        into.push(b'\t');
                    }
                    value.print(into);
                }
                Ok(())
            }
            Self::Fields(_) => serde_json::to_writer(into, &Json(self)).map_err(Into::into),
        };
    }
}

/// A value as JSON, with replacement characters for bytes that are not UTF-8.
struct Json<'a>(&'a Value);

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Empty => serializer.serialize_unit(),
            Value::Truth(truth) => serializer.serialize_bool(*truth),
            Value::Whole(number) => serializer.serialize_i64(*number),
            Value::Number(number) => serializer.serialize_f64(*number),
            Value::Text(text) => serializer.serialize_str(&String::from_utf8_lossy(text)),
            Value::List(list) => serializer.collect_seq(list.iter().map(Json)),
            Value::Fields(fields) => serializer.collect_map(fields.iter().map(|(name, value)| (name, Json(value)))),
        }
    }
}

/// Writes the printed form, with replacement characters for bytes that are not UTF-8.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = Vec::new();
        self.print(&mut bytes);
        f.write_str(&String::from_utf8_lossy(&bytes))
    }
}

impl Stored for Value {
    fn store(&self, bytes: &mut Vec<u8>) {
        let text = |bytes: &mut Vec<u8>, text: &[u8]| {
            bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
            bytes.extend_from_slice(text);
        };
        match self {
            Self::Empty => bytes.push(0),
            Self::Truth(truth) => bytes.extend_from_slice(&[1, u8::from(*truth)]),
            Self::Whole(number) => {
                bytes.push(2);
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            Self::Number(number) => {
                bytes.push(3);
                bytes.extend_from_slice(&number.to_le_bytes());
            }
            Self::Text(content) => {
                bytes.push(4);
                text(bytes, content);
            }
            Self::List(list) => {
                bytes.push(5);
                bytes.extend_from_slice(&(list.len() as u64).to_le_bytes());
                list.iter().for_each(|value| value.store(bytes));
            }
            Self::Fields(fields) => {
                bytes.push(6);
                bytes.extend_from_slice(&(fields.len() as u64).to_le_bytes());
                for (name, value) in fields {
                    text(bytes, name.as_bytes());
                    value.store(bytes);
                }
            }
        }
    }

    fn load(&mut self, mut bytes: &[u8]) {
        self.take_from(&mut bytes);
    }
}

impl Value {
    fn take_from(&mut self, bytes: &mut &[u8]) {
        let kind = taken(bytes, 1)[0];
        match kind {
            1 => *self = Self::Truth(taken(bytes, 1)[0] == 1),
            2 => *self = Self::Whole(i64::from_le_bytes(word(bytes))),
            3 => *self = Self::Number(f64::from_le_bytes(word(bytes))),
            4 => {
                let length = length(bytes);
                self.text().extend_from_slice(taken(bytes, length));
            }
            5 => {
                let length = length(bytes);
                let list = self.list();
                list.resize_with(length, Self::default);
                list.iter_mut().for_each(|value| value.take_from(bytes));
            }
            6 => {
                let fields = (0..length(bytes)).map(|_| {
                    let length = length(bytes);
                    let name = String::from_utf8_lossy(taken(bytes, length)).into_owned();
                    let mut value = Self::Empty;
                    value.take_from(bytes);
                    (name, value)
                });
                *self = Self::Fields(fields.collect());
            }
            _ => *self = Self::Empty,
        }
    }
}

fn taken<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = bytes.split_at(count);
    *bytes = rest;
    taken
}

fn word(bytes: &mut &[u8]) -> [u8; 8] {
    taken(bytes, 8).try_into().expect("eight bytes")
}

fn length(bytes: &mut &[u8]) -> usize {
    u64::from_le_bytes(word(bytes)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_value_gives_back_the_memory_of_a_long_one() {
        let (long, short) = (Value::Text(vec![b'x'; 4 * KEPT]), Value::Text(b"x".to_vec()));
        let mut texts = [long.clone(), long.clone(), long];
        texts[0].clone_from(&short);
        texts[1].text().push(b'x');
        texts[2].load(&[4, 1, 0, 0, 0, 0, 0, 0, 0, b'x']);
        for text in texts {
            assert!(matches!(&text, Value::Text(text) if text == b"x" && text.capacity() < KEPT), "{}", text.kind());
        }
        let mut list = Value::List(vec![Value::Empty; KEPT]);
        list.clone_from(&Value::List(vec![Value::Truth(true)]));
        assert!(matches!(&list, Value::List(list) if list.len() == 1 && list.capacity() < 10));
    }

    #[test]
    fn a_stored_value_loads_unchanged_over_any_other_value() {
        let values = [
            Value::Empty,
            Value::Truth(true),
            Value::Whole(i64::MIN),
            Value::Number(-0.5),
            Value::Text(b"\xff\0".to_vec()),
            Value::List(vec![Value::Whole(1), Value::List(vec![]), Value::Text(vec![])]),
            Value::Fields(vec![("a".to_owned(), Value::Whole(1)), (String::new(), Value::Empty)]),
        ];
        for value in &values {
            for over in &values {
                let (mut bytes, mut loaded) = (Vec::new(), over.clone());
                value.store(&mut bytes);
                loaded.load(&bytes);
                assert_eq!(loaded, *value);
                loaded.clone_from(over);
                assert_eq!(loaded, *over);
            }
        }
    }
}
