//! The members of a JSON object and of the objects within it.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::json_bytes::JsonBytes;

/// The members of an object that have a value other than `null`, in the object's order.
///
/// All members are in one allocation; each consists of the lengths of its name and value, followed by both. If each
/// member had its own allocation, an object of a million small members would take twenty times the size of its text; in
/// this form it takes less than [twice](most_bytes) that size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Members(Vec<u8>);

/// One member.
#[derive(Clone, Copy)]
struct Member<'a> {
    name: &'a [u8],
    /// The text of a string, in which bytes that were not UTF-8 are restored (see [`json_bytes`](crate::json_bytes)).
    /// For any other value, the JSON exactly as it was written.
    value: &'a [u8],
    /// Whether the value is JSON rather than the text of a string.
    is_json: bool,
}

/// The bit in a value's stored length that says that the value is JSON.
const IS_JSON: u32 = 1 << 31;

/// The maximum number of names in a message.
const MAX_NAMES: usize = 20;

/// The maximum size of [`Members`] in bytes, for an object whose text has `text` bytes. A member takes 8 bytes for its
/// two lengths, and for its name and value at most as many bytes as they have in the text. So the worst case is the
/// shortest member, `"":0,`: 5 bytes of text, and 9 bytes here, which is less than twice as many.
pub fn most_bytes(text: usize) -> usize {
    text.saturating_mul(2)
}

impl Members {
    /// The members of the object in `text`.
    ///
    /// # Errors
    /// The text is not a JSON object.
    pub fn read(text: &[u8]) -> Result<Self, serde_json::Error> {
        let mut members = Self::default();
        let mut deserializer = serde_json::Deserializer::from_slice(text);
        deserializer.deserialize_map(Collect { members: &mut members, most: most_bytes(text.len()) })?;
        deserializer.end()?;
        members.0.shrink_to_fit();
        Ok(members)
    }

    /// Members whose values are texts, in the order of `texts`.
    ///
    /// # Errors
    /// A name or a value has 2 GiB or more.
    pub fn of_texts<'a, I>(texts: impl Fn() -> I) -> Result<Self, &'static str>
    where
        I: Iterator<Item = (&'a [u8], &'a [u8])>,
    {
        let lengths = 2 * size_of::<u32>();
        let mut members =
            Self(Vec::with_capacity(texts().map(|(name, value)| lengths + name.len() + value.len()).sum()));
        for (name, value) in texts() {
            members.push(Member { name, value, is_json: false })?;
        }
        Ok(members)
    }

    /// The number of bytes that the members take.
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// The value of the last member called `path`. If no member is called `a.b`, that path means the member `b` of the
    /// object `a`.
    pub fn find(&self, path: &str) -> Option<Cow<'_, [u8]>> {
        let named = |name: &str| self.iter().filter(|member| member.name == name.as_bytes()).last();
        if let Some(member) = named(path) {
            return Some(Cow::Borrowed(member.value));
        }
        path.match_indices('.').find_map(|(dot, _)| {
            let outer = named(&path[..dot]).filter(|outer| outer.is_json)?;
            let inner = Self::read(outer.value).ok()?;
            inner.find(&path[dot + 1..]).map(|value| Cow::Owned(value.into_owned()))
        })
    }

    /// The names of the first members, for messages; `None` if there are no members.
    pub fn names(&self) -> Option<String> {
        let names: Vec<String> =
            self.iter().take(MAX_NAMES + 1).map(|member| String::from_utf8_lossy(member.name).into_owned()).collect();
        match names.get(..MAX_NAMES) {
            Some(first) if names.len() > MAX_NAMES => Some(format!("{}, …", first.join(", "))),
            _ => (!names.is_empty()).then(|| names.join(", ")),
        }
    }

    fn iter(&self) -> impl Iterator<Item = Member<'_>> {
        let mut rest = self.0.as_slice();
        std::iter::from_fn(move || {
            let (name_len, after) = rest.split_first_chunk()?;
            let (value_len, after) = after.split_first_chunk()?;
            let (name_len, value_len) = (u32::from_ne_bytes(*name_len), u32::from_ne_bytes(*value_len));
            let (name, after) = after.split_at(name_len as usize);
            let (value, after) = after.split_at((value_len & !IS_JSON) as usize);
            rest = after;
            Some(Member { name, value, is_json: value_len & IS_JSON != 0 })
        })
    }

    /// Appends a member.
    ///
    /// # Errors
    /// The name or the value is too long for the number that stores its length.
    fn push(&mut self, member: Member<'_>) -> Result<(), &'static str> {
        let length = |part: &[u8]| u32::try_from(part.len()).ok().filter(|length| length & IS_JSON == 0);
        let (Some(name), Some(value)) = (length(member.name), length(member.value)) else {
            return Err("a member of 2 GiB or more");
        };
        self.0.extend_from_slice(&name.to_ne_bytes());
        self.0.extend_from_slice(&(value | if member.is_json { IS_JSON } else { 0 }).to_ne_bytes());
        self.0.extend_from_slice(member.name);
        self.0.extend_from_slice(member.value);
        Ok(())
    }
}

/// Reads an object, and appends its members to `members`.
struct Collect<'a> {
    members: &'a mut Members,
    most: usize,
}

impl<'de> Visitor<'de> for Collect<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        // Memory for the worst case is reserved before the first member is read, so nothing is copied while the members
        // grow. Pages of the reservation that are never written take no memory.
        self.members.0.try_reserve_exact(self.most).map_err(serde::de::Error::custom)?;
        while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
            let text = value.get();
            let pushed = match text {
                "null" => continue,
                _ if text.starts_with('"') && !text.contains('\\') => {
                    let value = &text.as_bytes()[1..text.len() - 1];
                    self.members.push(Member { name: name.as_bytes(), value, is_json: false })
                }
                _ if text.starts_with('"') => {
                    let value = serde_json::from_str::<JsonBytes>(text).map_err(serde::de::Error::custom)?.0;
                    self.members.push(Member { name: name.as_bytes(), value: &value, is_json: false })
                }
                _ => self.members.push(Member { name: name.as_bytes(), value: text.as_bytes(), is_json: true }),
            };
            pushed.map_err(serde::de::Error::custom)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Members, most_bytes};

    #[test]
    fn members_of_inner_objects_are_found() {
        let text = r#"{"user": {"id": 7, "name": "\ud83d\ude00", "a.b": {"c": 1.50}}, "x.y": 1, "s": "{\"id\": 2}", "l": [1]}"#;
        let members = Members::read(text.as_bytes()).unwrap();
        let found = |path| members.find(path).map(|value| String::from_utf8(value.into_owned()).unwrap());
        for (path, value) in [("user.id", "7"), ("user.name", "😀"), ("user.a.b.c", "1.50"), ("x.y", "1"), ("l", "[1]")]
        {
            assert_eq!(found(path).as_deref(), Some(value), "{path}");
        }
        for path in ["user.none", "user.id.x", "s.id", "l.0", "none.x", "user.", ".user", "."] {
            assert_eq!(found(path), None, "{path}");
        }
    }

    #[test]
    fn a_message_has_the_first_names() {
        let names = |count: usize| {
            let members: Vec<String> = (0..count).map(|n| format!("\"c{n}\":{n}")).collect();
            Members::read(format!("{{{}}}", members.join(",")).as_bytes()).unwrap().names()
        };
        assert_eq!((names(0), names(2).as_deref()), (None, Some("c0, c1")));
        assert!(names(20).unwrap().ends_with(", c19") && names(21).unwrap().ends_with(", c19, …"));
    }

    #[test]
    fn the_last_member_of_a_name_counts() {
        let members = Members::read(br#"{"a": 1, "b": 2, "a": "three"}"#).unwrap();
        assert_eq!(members.find("a").as_deref(), Some(&b"three"[..]));
    }

    #[test]
    fn members_never_take_more_than_is_said() {
        let shortest = r#""":0,"#.repeat(1000);
        let escaped = r#""\n\u00e9":"\ud83d\ude00","#.repeat(1000);
        for inner in ["", r#""a":1,"#, r#""":"","#, r#""":{},"#, &shortest, &escaped] {
            let text = format!("{{{}}}", inner.trim_end_matches(','));
            let members = Members::read(text.as_bytes()).unwrap();
            assert!(members.bytes() <= most_bytes(text.len()), "{} bytes of {text:.40}", members.bytes());
        }
    }
}
