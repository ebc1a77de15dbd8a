//! Cuts a payload into the elements of a JSON array, or into the values of a sequence such as lines of JSON.

use std::io::{BufReader, Read};

use serde_json::value::RawValue;

use super::{Cut, Torn};
use crate::json_member::Members;

/// The byte order mark, which is skipped at the start of a text.
const BYTE_ORDER_MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// See the [module](self).
pub(super) struct Values<R> {
    bytes: std::io::Bytes<BufReader<R>>,
    /// The first byte of the next value, if it was read already.
    ahead: Option<u8>,
    /// Whether the values are the elements of an array; `None` before the first read.
    in_array: Option<bool>,
    /// The maximum size of a value.
    most: usize,
    any: bool,
    ended: bool,
}

impl<R: Read> Values<R> {
    pub(super) fn new(input: BufReader<R>, most: usize) -> Self {
        Self { bytes: input.bytes(), ahead: None, in_array: None, most, any: false, ended: false }
    }

    fn byte(&mut self) -> Result<Option<u8>, Torn> {
        match self.ahead.take() {
            Some(byte) => Ok(Some(byte)),
            None => Ok(self.bytes.next().transpose()?),
        }
    }

    /// Skips white space and returns the next byte.
    fn solid(&mut self) -> Result<Option<u8>, Torn> {
        loop {
            match self.byte()? {
                Some(b' ' | b'\t' | b'\n' | b'\r') => {}
                byte => return Ok(byte),
            }
        }
    }

    fn read(&mut self) -> Result<Option<Cut>, Torn> {
        let senseless = |message: &str| Err(Torn::Senseless(message.to_owned()));
        let mut first = self.solid()?;
        if self.in_array.is_none() && first == Some(BYTE_ORDER_MARK[0]) {
            for expected in &BYTE_ORDER_MARK[1..] {
                if self.byte()? != Some(*expected) {
                    return senseless("the first value is not JSON");
                }
            }
            first = self.solid()?;
        }
        let in_array = *self.in_array.get_or_insert(first == Some(b'['));
        if in_array && !self.any && first == Some(b'[') {
            first = self.solid()?;
            if first == Some(b']') {
                return self.end();
            }
        } else if in_array && self.any {
            match first {
                Some(b',') => first = self.solid()?,
                Some(b']') => return self.end(),
                Some(_) => return senseless("a `,` or the array's `]` was expected"),
                None => return senseless("the array has no end"),
            }
        }
        let Some(first) = first else {
            return if in_array { senseless("the array has no end") } else { Ok(None) };
        };
        self.any = true;
        let text = self.value(first)?;
        if let Err(error) = serde_json::from_slice::<&RawValue>(&text) {
            return Err(Torn::Senseless(format!("the next value is not JSON: {error}")));
        }
        // Only an object has members.
        let members = if first == b'{' { Members::read(&text) } else { Ok(Members::default()) };
        let members = members.map_err(|error| Torn::Senseless(format!("the next value is not JSON: {error}")))?;
        Ok(Some(Cut { content: text, members, ..Cut::default() }))
    }

    /// Checks that only white space follows the array.
    fn end(&mut self) -> Result<Option<Cut>, Torn> {
        match self.solid()? {
            None => Ok(None),
            Some(_) => Err(Torn::Senseless("there is more after the array's end".to_owned())),
        }
    }

    /// Reads the rest of the value whose first byte is `first`. The caller checks that the value is JSON.
    fn value(&mut self, first: u8) -> Result<Vec<u8>, Torn> {
        let mut text = vec![first];
        let (mut depth, mut in_string, mut escaped) = (usize::from(matches!(first, b'{' | b'[')), first == b'"', false);
        let is_bare = depth == 0 && !in_string;
        loop {
            if depth == 0 && !in_string && !is_bare {
                return Ok(text);
            }
            let Some(byte) = self.byte()? else { return Ok(text) };
            if is_bare && matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b']' | b'[' | b'{' | b'}' | b'"' | b':')
            {
                self.ahead = Some(byte);
                return Ok(text);
            }
            text.push(byte);
            if text.len() > self.most {
                let most = self.most;
                return Err(Torn::Senseless(format!("the next value is longer than {most} bytes, its `max_bytes`")));
            }
            match byte {
                _ if escaped => escaped = false,
                b'\\' if in_string => escaped = true,
                b'"' => in_string = !in_string,
                b'{' | b'[' if !in_string => depth += 1,
                b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
    }
}

impl<R: Read> Iterator for Values<R> {
    type Item = Result<Cut, Torn>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let value = self.read().transpose();
        self.ended = !matches!(value, Some(Ok(_)));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        let cuts = Values::new(BufReader::with_capacity(3, text.as_bytes()), 40);
        cuts.map(|cut| match cut {
            Ok(cut) => String::from_utf8(cut.content).unwrap(),
            Err(Torn::Senseless(message)) => format!("! {message}"),
            Err(Torn::Unread(error)) => panic!("{error}"),
        })
        .collect()
    }

    #[test]
    fn elements_of_an_array() {
        assert_eq!(values(r#" [1, "a,]", {"b": [2]} ,null,[] ] "#), ["1", r#""a,]""#, r#"{"b": [2]}"#, "null", "[]"]);
        assert_eq!(values("[]"), [""; 0]);
        assert_eq!(values(r#"["\"]", 2]"#), [r#""\"]""#, "2"]);
    }

    #[test]
    fn a_sequence_of_values() {
        assert_eq!(values("{\"a\":1}\n{\"a\":2}\n\n3 4"), ["{\"a\":1}", "{\"a\":2}", "3", "4"]);
        assert_eq!(values(""), [""; 0]);
        assert_eq!(values("\u{feff}1 2"), ["1", "2"]);
        assert_eq!(values("1\"x\"[2]"), ["1", "\"x\"", "[2]"]);
    }

    #[test]
    fn the_members_of_an_object_become_fields() {
        let mut cuts = Values::new(BufReader::new(br#"[{"a": "x"}]"#.as_slice()), 100);
        let cut = cuts.next().unwrap().unwrap();
        assert_eq!(cut.members.find("a").as_deref(), Some(b"x".as_slice()));
        assert!(cuts.next().is_none());
    }

    #[test]
    fn what_is_wrong_ends_the_values() {
        for (text, good, wrong) in [
            ("[1 2]", 1, "a `,` or the array's `]`"),
            ("[1,", 1, "the array has no end"),
            ("[1", 1, "the array has no end"),
            ("[1] 2", 1, "there is more after"),
            ("{\"a\":1} {x}", 1, "not JSON"),
            ("[1,]", 1, "not JSON"),
            ("tru", 0, "not JSON"),
            ("[\"0123456789012345678901234567890123456789\"]", 0, "longer than 40 bytes"),
        ] {
            let found = values(text);
            assert!(found.len() == good + 1 && found[good].contains(wrong), "{text}: {found:?}");
        }
    }
}
