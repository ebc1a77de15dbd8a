//! `parse`: the [members](crate::json_member) of a JSON object, or the named groups of a regular expression, become
//! fields.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use millstream_flow::{Cx, Failure};
use regex::bytes::{CaptureLocations, Regex};

use super::Op;
use crate::file::model::ParseFormat;
use crate::json_member::{Members, most_bytes};
use crate::record::Record;

/// The longest text whose members are read without a prior grant of memory. Memory for these members is granted
/// afterwards.
const LITTLE: usize = 16 << 10;

/// The number of bytes of a text that a failure's message shows.
const SHOWN: usize = 80;

/// See the [module](self).
pub(super) struct Parse {
    /// The expression, if the text is not JSON.
    expression: Option<Expression>,
}

/// A regular expression with named groups.
struct Expression {
    /// Distinguishes this expression from the others of the process.
    id: u64,
    regex: Regex,
    /// The named groups, with their numbers.
    names: Vec<(Vec<u8>, usize)>,
}

thread_local! {
    /// The expression that the thread matched last, with its id and with memory for the next match. Each thread has its
    /// own copy of the expression, so a match needs no lock.
    static LAST: RefCell<Option<(u64, Regex, CaptureLocations)>> = const { RefCell::new(None) };
}

impl Parse {
    pub(super) fn new(format: &ParseFormat) -> Self {
        let expression = match format {
            ParseFormat::Json => None,
            ParseFormat::Regex(expression) => Some(Expression::new(expression)),
        };
        Self { expression }
    }

    /// The maximum number of bytes that the members of a text occupy.
    fn most_bytes(&self, text: usize) -> usize {
        match &self.expression {
            None => most_bytes(text),
            // Groups may nest, so each may cover the whole text.
            Some(expression) => text.saturating_mul(expression.regex.captures_len()),
        }
    }
}

impl Op for Parse {
    fn run(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure> {
        let made = record.payload.to_make(cx)?;
        let len = record.payload.as_bytes().map_or(made, |bytes| bytes.len() as u64);
        let line = record.line_text().filter(|_| len == 0);
        let text_len = line.map_or(usize::try_from(len).unwrap_or(usize::MAX), <[u8]>::len);
        if made > 0 || text_len > LITTLE {
            cx.reserve((record.bytes() + made).saturating_add(self.most_bytes(text_len) as u64))?;
        }
        let payload = record.payload.in_memory(made, cx)?;
        let text = line.unwrap_or(&payload);
        record.json = match &self.expression {
            None => Members::read(text).map_err(|error| format!("not a JSON object: {error}")),
            Some(expression) => expression.groups(text),
        }
        .map_err(Failure::permanent)?;
        Ok(())
    }

    fn idempotent(&self) -> bool {
        true
    }
}

impl Expression {
    fn new(expression: &str) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let regex = Regex::new(expression).expect("the parser has understood it");
        let names = regex.capture_names().enumerate();
        let names = names.filter_map(|(group, name)| Some((name?.as_bytes().to_vec(), group))).collect();
        // Relaxed: the numbers only have to differ.
        Self { id: NEXT.fetch_add(1, Ordering::Relaxed), regex, names }
    }

    /// The texts that the named groups matched. A group that takes no part in the match is omitted.
    fn groups(&self, text: &[u8]) -> Result<Members, String> {
        LAST.with_borrow_mut(|last| {
            let (_, regex, found) = match last {
                Some(last) if last.0 == self.id => last,
                last => last.insert((self.id, self.regex.clone(), self.regex.capture_locations())),
            };
            if regex.captures_read(found, text).is_none() {
                let start = String::from_utf8_lossy(&text[..text.len().min(SHOWN)]);
                return Err(format!("`expression` matches nothing in {start:?}"));
            }
            let values = || {
                self.names.iter().filter_map(|(name, group)| {
                    found.get(*group).map(|(start, end)| (name.as_slice(), &text[start..end]))
                })
            };
            Members::of_texts(values).map_err(str::to_owned)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Parse;
    use crate::file::model::ParseFormat;
    use crate::ops::one_stage::run;
    use crate::payload::Stream;
    use crate::record::Record;

    fn parse(text: &str) -> Result<Record, String> {
        run(Parse::new(&ParseFormat::Json), Record::line(text.into()))
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
        let record = run(Parse::new(&ParseFormat::Json), record).unwrap();
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
    fn what_named_groups_match_are_fields() {
        let format = ParseFormat::Regex(r"^(?<host>\S+) (?:\[(?<time>[^]]*)\] )?(?<status>\d+)".into());
        let parsed = |line: &[u8]| run(Parse::new(&format), Record::line(line.to_vec()));
        let record = parsed("hé [now] 200 12".as_bytes()).unwrap();
        for (name, value) in
            [("host", Some("hé".as_bytes())), ("time", Some(b"now")), ("status", Some(b"200")), ("x", None)]
        {
            assert_eq!(record.json_member(name).as_deref(), value, "{name}");
        }
        assert_eq!(parsed(b"h 404").unwrap().json_member("time"), None);
        assert_eq!(parsed(b"no number").unwrap_err(), "`expression` matches nothing in \"no number\"");
    }

    #[test]
    fn json_that_nests_deep_is_parsed_without_the_stack() {
        let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
        let record = parse(&format!("{{\"a\": {deep}, \"b\": 1}}")).unwrap();
        assert!(record.json_member("a").as_deref() == Some(deep.as_bytes()));
        assert_eq!(record.json_member("b").as_deref(), Some(&b"1"[..]));
    }

    #[test]
    fn a_payload_that_is_not_in_memory_stays_outside() {
        let mut record = Record::line(b"line".to_vec());
        record.payload = Stream::of_bytes(br#"{"a": "stream"}"#.to_vec(), 0).into();
        let record = run(Parse::new(&ParseFormat::Json), record).unwrap();
        assert_eq!(record.json_member("a").as_deref(), Some(&b"stream"[..]));
        assert!(record.payload.as_bytes().is_none());
    }
}
