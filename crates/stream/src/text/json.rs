//! JSON. Each line's value overwrites that of the previous line. If both have the same shape, no memory is allocated.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::value::{MAX_TEXT, Value, give_back};

/// Parses a line of JSON, and overwrites `value` with the result.
pub(super) fn read(text: &[u8], value: &mut Value) -> Result<(), String> {
    read_within(MAX_TEXT, text, value)
}

fn read_within(bytes: usize, text: &[u8], value: &mut Value) -> Result<(), String> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let mut room = Room { bytes, is_exceeded: false };
    let read = Into { value, room: &mut room }.deserialize(&mut reader).and_then(|()| reader.end());
    read.map_err(|error| if room.is_exceeded { too_large(bytes, &error) } else { not_json(&error) })
}

/// The memory that the values of a line may still use. It is limited because values may take far more memory than their text: the
/// values of `[{},{},…]` take eighty times as much.
struct Room {
    bytes: usize,
    is_exceeded: bool,
}

impl Room {
    /// The number of values for which the smallest list has memory.
    const FIRST_VALUES: usize = 4;

    fn take<E: Error>(&mut self, bytes: usize) -> Result<(), E> {
        match self.bytes.checked_sub(bytes) {
            Some(left) => {
                self.bytes = left;
                Ok(())
            }
            None => {
                self.is_exceeded = true;
                Err(E::custom("too large"))
            }
        }
    }

    /// Takes the memory for a list's next value. `number` is the value's index in the list.
    fn take_for_value<T, E: Error>(&mut self, number: usize) -> Result<(), E> {
        match number {
            0 => self.take(Self::FIRST_VALUES * size_of::<T>()),
            1..Self::FIRST_VALUES => Ok(()),
            _ => self.take(size_of::<T>()),
        }
    }
}

#[cold]
fn too_large(bytes: usize, error: &serde_json::Error) -> String {
    format!(
        "the values up to column {} take more than {bytes} bytes of memory: each takes {}, or {} with a name, plus the \
         length of its text and name; expected less in one line: `jq -c '.[]'` writes each value of a list in a line of its \
         own, and `jq -c '{{a, b}}'` writes only these fields",
        error.column(),
        size_of::<Value>(),
        size_of::<(String, Value)>()
    )
}

/// Returns the message of an error with its column but without its line, because the caller adds the line of the input.
#[cold]
fn not_json(error: &serde_json::Error) -> String {
    let (message, column) = (error.to_string(), error.column());
    let place = format!(" at line {} column {column}", error.line());
    format!(
        "not JSON at column {column}: {}; expected one JSON value in each line, as `jq -c .` writes them",
        message.strip_suffix(&place).unwrap_or(&message)
    )
}

/// Overwrites a value with the next value in the text.
struct Into<'a> {
    value: &'a mut Value,
    room: &'a mut Room,
}

impl<'de> DeserializeSeed<'de> for Into<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Into<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        *self.value = Value::Empty;
        Ok(())
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<(), E> {
        *self.value = Value::Truth(truth);
        Ok(())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        *self.value = Value::Whole(number);
        Ok(())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        *self.value = i64::try_from(number).map_or(Value::Number(number as f64), Value::Whole);
        Ok(())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        *self.value = Value::Number(number);
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.room.take(text.len())?;
        self.value.text().extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        let Self { value, room } = self;
        let list = value.list();
        let mut length = 0;
        loop {
            room.take_for_value::<Value, _>(length)?;
            if length == list.len() {
                list.push(Value::Empty);
            }
            if values.next_element_seed(Into { value: &mut list[length], room })?.is_none() {
                break;
            }
            length += 1;
        }
        list.truncate(length);
        give_back(list);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        let Self { value, room } = self;
        let fields = value.fields();
        let mut length = 0;
        loop {
            room.take_for_value::<(String, Value), _>(length)?;
            if length == fields.len() {
                fields.push((String::new(), Value::Empty));
            }
            let (name, value) = &mut fields[length];
            if values.next_key_seed(Name { name, room })?.is_none() {
                break;
            }
            values.next_value_seed(Into { value, room })?;
            length += 1;
        }
        fields.truncate(length);
        give_back(fields);
        in_order(fields);
        Ok(())
    }
}

/// Overwrites a name with the next name in the text.
struct Name<'a> {
    name: &'a mut String,
    room: &'a mut Room,
}

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<(), E> {
        self.room.take(name.len())?;
        name.clone_into(self.name);
        Ok(())
    }
}

/// Sorts fields by name, so that equal objects are equal values. If several fields have the same name, only the last is kept.
fn in_order(fields: &mut Vec<(String, Value)>) {
    if fields.is_sorted_by(|(a, _), (b, _)| a < b) {
        return;
    }
    fields.sort_by(|(a, _), (b, _)| a.cmp(b));
    fields.dedup_by(|later, kept| {
        let same = later.0 == kept.0;
        if same {
            std::mem::swap(later, kept);
        }
        same
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_replaces_any_value_and_its_fields_are_in_order() {
        let texts = [
            r#"{"b": [1, "x", null], "a": -0.5, "c": {"d": true}}"#,
            r#"{"a": 1, "a": [], "0": 1e300}"#,
            r#"[[], {}, "\u00e9\n"]"#,
            "7",
        ];
        for over in texts {
            for text in texts {
                let mut value = Value::Empty;
                read(over.as_bytes(), &mut value).unwrap();
                read(text.as_bytes(), &mut value).unwrap();
                let mut printed = Vec::new();
                Value::Fields(vec![("it".to_owned(), value)]).print(&mut printed);
                let expected = serde_json::json!({"it": serde_json::from_str::<serde_json::Value>(text).unwrap()});
                let printed: serde_json::Value = serde_json::from_slice(&printed).unwrap();
                assert_eq!(printed, expected, "{text} over {over}");
            }
        }
        let mut value = Value::Empty;
        read(br#"{"a": 1, "0": 18446744073709551615, "a": 3}"#, &mut value).unwrap();
        let fields = [("0", Value::Number(18_446_744_073_709_551_615.0)), ("a", Value::Whole(3))];
        assert_eq!(value, Value::Fields(fields.map(|(name, value)| (name.to_owned(), value)).to_vec()));
        for wrong in ["", "{", "{\"a\":1} 2", "nul", "\"\\ud800\"", "{\"a\" 1}"] {
            assert!(read(wrong.as_bytes(), &mut value).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_short_line_gives_back_the_memory_of_a_long_one() {
        let mut value = Value::Empty;
        read(format!("[{}0]", "0,".repeat(100_000)).as_bytes(), &mut value).unwrap();
        read(b"[1, 2]", &mut value).unwrap();
        assert!(matches!(&value, Value::List(list) if list.len() == 2 && list.capacity() < 10));
        read(format!("{{{}\"a\": 0}}", "\"a\": 0,".repeat(100_000)).as_bytes(), &mut value).unwrap();
        read(br#"{"a": 1}"#, &mut value).unwrap();
        assert!(matches!(&value, Value::Fields(fields) if fields.len() == 1 && fields.capacity() < 10));
    }

    #[test]
    fn the_memory_of_values_is_limited_whatever_the_line() {
        let (slot, field) = (size_of::<Value>(), size_of::<(String, Value)>());
        let list = |value: &str, count: usize| format!("[{}]", vec![value; count].join(","));
        let fields = |count: usize| format!("{{{}}}", vec!["\"ab\":0"; count].join(","));
        let long = "x".repeat(100);
        // A list already has memory for one more value than it contains.
        for (text, bytes) in [
            ("7".to_owned(), 0),
            ("[]".to_owned(), 4 * slot),
            (list("0", 3), 4 * slot),
            (list("0", 4), 5 * slot),
            (list("0", 900), 901 * slot),
            (list("[]", 900), 901 * slot + 900 * 4 * slot),
            (list("{}", 900), 901 * slot + 900 * 4 * field),
            (list(&format!("\"{long}\""), 900), 901 * slot + 900 * 100),
            (fields(900), 901 * field + 900 * 2),
            (format!("{{\"{long}\":\"{long}\"}}"), 4 * field + 200),
        ] {
            let mut value = Value::Empty;
            read_within(bytes, text.as_bytes(), &mut value).unwrap();
            // The values of the previous line are not counted for this line.
            read_within(bytes, text.as_bytes(), &mut value).unwrap();
            if bytes > 0 {
                let error = read_within(bytes - 1, text.as_bytes(), &mut value).unwrap_err();
                assert!(error.contains(&format!("take more than {} bytes of memory", bytes - 1)), "{error}");
            }
        }
    }
}
