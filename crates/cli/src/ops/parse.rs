//! `parse`: the members of a JSON object become fields.
//!
//! A member that is a string is its text (and bytes that were not UTF-8 come back, see
//! [`json_bytes`](crate::json_bytes)); any other is its JSON, digit for digit as it was written. `null` is a member
//! without a value.

use std::borrow::Cow;
use std::fmt;

use millstream_flow::{Cx, Failure};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::Op;
use crate::file::model::ParseFormat;
use crate::json_bytes::JsonBytes;
use crate::record::Record;

/// See the [module](self).
pub(super) struct Parse {
    format: ParseFormat,
}

impl Parse {
    pub(super) fn new(format: ParseFormat) -> Self {
        Self { format }
    }
}

impl Op for Parse {
    fn run(&self, record: &mut Record, _cx: &mut Cx<'_>) -> Result<(), Failure> {
        let text = match record.line_text() {
            Some(line) if record.payload.is_empty() => line,
            _ => &record.payload,
        };
        let members = match self.format {
            ParseFormat::Json => serde_json::from_slice::<Members>(text),
        };
        record.json = members.map_err(|error| Failure::permanent(format!("not a JSON object: {error}")))?.0;
        Ok(())
    }

    fn idempotent(&self) -> bool {
        true
    }
}

/// An object's members in its order.
struct Members(Vec<(String, Vec<u8>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                    if let Some(value) = value_bytes(value).map_err(serde::de::Error::custom)? {
                        members.push((name, value.into_owned()));
                    }
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

fn value_bytes(value: &RawValue) -> Result<Option<Cow<'_, [u8]>>, serde_json::Error> {
    match value.get() {
        "null" => Ok(None),
        text if text.starts_with('"') => Ok(Some(Cow::Owned(serde_json::from_str::<JsonBytes>(text)?.0))),
        text => Ok(Some(Cow::Borrowed(text.as_bytes()))),
    }
}

#[cfg(test)]
mod tests {
    use super::Parse;
    use crate::file::model::ParseFormat;
    use crate::ops::one_stage::run;
    use crate::record::Record;

    fn parse(text: &str) -> Result<Record, String> {
        run(Parse::new(ParseFormat::Json), Record::line(text.into()))
    }

    #[test]
    fn members_are_fields() {
        let record = parse(
            r#"{"path": "a\"\udcffb", "n": 12345678901234567890123, "x": 1.50, "l": [1, {"a": 2}],
                "t": true, "z": null}"#,
        )
        .unwrap();
        assert_eq!(record.json_member("path"), Some(&b"a\"\xFFb"[..]));
        assert_eq!(record.json_member("n"), Some(&b"12345678901234567890123"[..]), "no digit is lost");
        assert_eq!(record.json_member("x"), Some(&b"1.50"[..]));
        assert_eq!(record.json_member("l"), Some(&br#"[1, {"a": 2}]"#[..]));
        assert_eq!(record.json_member("t"), Some(&b"true"[..]));
        assert_eq!(record.json_member("z"), None);
        assert_eq!(record.json_member("other"), None);
    }

    #[test]
    fn the_payload_comes_before_the_line() {
        let mut record = Record::line(br#"{"a": "line"}"#.to_vec());
        record.payload = br#"{"a": "payload"}"#.to_vec();
        let record = run(Parse::new(ParseFormat::Json), record).unwrap();
        assert_eq!(record.json_member("a"), Some(&b"payload"[..]));
    }

    #[test]
    fn what_is_no_object_says_where() {
        for text in ["", "[1]", "{\"a\": }", "{\"a\": 1} x", "plain", "{\"a\": \"\u{1}\"}"] {
            let error = parse(text).unwrap_err();
            assert!(error.starts_with("not a JSON object: ") && error.contains("column"), "{text}: {error}");
        }
        let deep = "[".repeat(200_000);
        assert!(parse(&format!("{{\"a\": {deep}")).is_err());
    }
}
