//! `parse`: the [members](crate::json_member) of a JSON object become fields.

use millstream_flow::{Cx, Failure};

use super::Op;
use crate::file::model::ParseFormat;
use crate::json_member::{Members, most_bytes};
use crate::record::Record;

/// Text whose members are read without asking for memory first: what they take is counted after it.
const LITTLE: usize = 16 << 10;

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
    fn run(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure> {
        let made = record.payload.to_make(cx)?;
        let len = record.payload.as_bytes().map_or(made, |bytes| bytes.len() as u64);
        let line = record.line_text().filter(|_| len == 0);
        let text_len = line.map_or(usize::try_from(len).unwrap_or(usize::MAX), <[u8]>::len);
        if made > 0 || text_len > LITTLE {
            cx.reserve((record.bytes() + made).saturating_add(most_bytes(text_len) as u64))?;
        }
        let payload = record.payload.in_memory(made, cx)?;
        let members = match self.format {
            ParseFormat::Json => Members::read(line.unwrap_or(&payload)),
        };
        record.json = members.map_err(|error| Failure::permanent(format!("not a JSON object: {error}")))?;
        Ok(())
    }

    fn idempotent(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::Parse;
    use crate::file::model::ParseFormat;
    use crate::ops::one_stage::run;
    use crate::payload::{Payload, Stream};
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
        assert_eq!(record.json_member("path").as_deref(), Some(&b"a\"\xFFb"[..]));
        assert_eq!(record.json_member("n").as_deref(), Some(&b"12345678901234567890123"[..]), "no digit is lost");
        assert_eq!(record.json_member("x").as_deref(), Some(&b"1.50"[..]));
        assert_eq!(record.json_member("l").as_deref(), Some(&br#"[1, {"a": 2}]"#[..]));
        assert_eq!(record.json_member("t").as_deref(), Some(&b"true"[..]));
        assert_eq!(record.json_member("z").as_deref(), None);
        assert_eq!(record.json_member("other").as_deref(), None);
    }

    #[test]
    fn the_payload_comes_before_the_line() {
        let mut record = Record::line(br#"{"a": "line"}"#.to_vec());
        record.payload = br#"{"a": "payload"}"#.to_vec().into();
        let record = run(Parse::new(ParseFormat::Json), record).unwrap();
        assert_eq!(record.json_member("a").as_deref(), Some(&b"payload"[..]));
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

    #[test]
    fn json_that_nests_deep_is_parsed_without_the_stack() {
        let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        let record = parse(&format!("{{\"a\": {deep}, \"b\": 1}}")).unwrap();
        assert!(record.json_member("a").as_deref() == Some(deep.as_bytes()));
        assert_eq!(record.json_member("b").as_deref(), Some(&b"1"[..]));
    }

    #[test]
    fn a_payload_that_is_not_in_memory_stays_where_it_is() {
        let mut record = Record::line(b"line".to_vec());
        record.payload = Payload::Stream(Stream::of_bytes(br#"{"a": "stream"}"#.to_vec(), 0));
        let record = run(Parse::new(ParseFormat::Json), record).unwrap();
        assert_eq!(record.json_member("a").as_deref(), Some(&b"stream"[..]));
        assert!(record.payload.as_bytes().is_none());
    }
}
