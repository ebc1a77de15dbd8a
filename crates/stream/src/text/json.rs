//! JSON, read in place of the value before it: lines of one shape reuse its memory.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::value::Value;

/// Reads a JSON text of one line in place of a value.
pub(super) fn read(text: &[u8], value: &mut Value) -> Result<(), String> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    Into(value).deserialize(&mut reader).and_then(|()| reader.end()).map_err(|error| not_json(&error))
}

/// Returns the message of an error, with its column alone: the line is that of the input.
#[cold]
fn not_json(error: &serde_json::Error) -> String {
    let (message, column) = (error.to_string(), error.column());
    let place = format!(" at line {} column {column}", error.line());
    format!(
        "not JSON at column {column}: {}; expected one JSON value in each line, as `jq -c .` writes them",
        message.strip_suffix(&place).unwrap_or(&message)
    )
}

/// A value to replace.
struct Into<'a>(&'a mut Value);

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
        *self.0 = Value::Empty;
        Ok(())
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<(), E> {
        *self.0 = Value::Truth(truth);
        Ok(())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        *self.0 = Value::Whole(number);
        Ok(())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        *self.0 = i64::try_from(number).map_or(Value::Number(number as f64), Value::Whole);
        Ok(())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        *self.0 = Value::Number(number);
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.0.text().extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        let list = self.0.list();
        let mut length = 0;
        loop {
            if length == list.len() {
                list.push(Value::Empty);
            }
            if values.next_element_seed(Into(&mut list[length]))?.is_none() {
                break;
            }
            length += 1;
        }
        list.truncate(length);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        let fields = self.0.fields();
        let mut length = 0;
        loop {
            if length == fields.len() {
                fields.push((String::new(), Value::Empty));
            }
            let (name, value) = &mut fields[length];
            if values.next_key_seed(Name(name))?.is_none() {
                break;
            }
            values.next_value_seed(Into(value))?;
            length += 1;
        }
        fields.truncate(length);
        in_order(fields);
        Ok(())
    }
}

/// A name to replace.
struct Name<'a>(&'a mut String);

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
        name.clone_into(self.0);
        Ok(())
    }
}

/// Sorts fields by name, so that equal objects are equal values. Of fields with one name, the last counts.
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
}
