//! The members of a JSON object, and those of the objects within it.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::json_bytes::JsonBytes;

/// A member that has a value; `null` is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// A string's text (bytes that were not UTF-8 come back, see [`json_bytes`](crate::json_bytes)); of anything else its
    /// JSON, digit for digit as it was written.
    pub value: Vec<u8>,
    /// Whether the value is JSON, and no string's text.
    pub is_json: bool,
}

/// The members of the object in `text`, in its order.
///
/// # Errors
/// The text is no JSON object.
pub fn read(text: &[u8]) -> Result<Vec<Member>, serde_json::Error> {
    serde_json::from_slice::<Members>(text).map(|members| members.0)
}

/// The value of the member called `path`, the last one where the name occurs twice. Where there is none, `a.b` is the
/// member `b` of the object `a`.
pub fn find<'a>(members: &'a [Member], path: &str) -> Option<Cow<'a, [u8]>> {
    let named = |name: &str| members.iter().rev().find(|member| member.name == name);
    if let Some(member) = named(path) {
        return Some(Cow::Borrowed(&member.value));
    }
    path.match_indices('.').find_map(|(dot, _)| {
        let outer = named(&path[..dot]).filter(|outer| outer.is_json)?;
        let inner = read(&outer.value).ok()?;
        find(&inner, &path[dot + 1..]).map(|value| Cow::Owned(value.into_owned()))
    })
}

struct Members(Vec<Member>);

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
                    let (value, is_json) = match value.get() {
                        "null" => continue,
                        text if text.starts_with('"') => {
                            (serde_json::from_str::<JsonBytes>(text).map_err(serde::de::Error::custom)?.0, false)
                        }
                        text => (text.as_bytes().to_vec(), true),
                    };
                    members.push(Member { name, value, is_json });
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

#[cfg(test)]
mod tests {
    use super::{find, read};

    #[test]
    fn members_of_inner_objects_are_found() {
        let text = r#"{"user": {"id": 7, "name": "\ud83d\ude00", "a.b": {"c": 1.50}}, "x.y": 1, "s": "{\"id\": 2}", "l": [1]}"#;
        let members = read(text.as_bytes()).unwrap();
        let found = |path| find(&members, path).map(|value| String::from_utf8(value.into_owned()).unwrap());
        for (path, value) in [("user.id", "7"), ("user.name", "😀"), ("user.a.b.c", "1.50"), ("x.y", "1"), ("l", "[1]")]
        {
            assert_eq!(found(path).as_deref(), Some(value), "{path}");
        }
        for path in ["user.none", "user.id.x", "s.id", "l.0", "none.x", "user.", ".user", "."] {
            assert_eq!(found(path), None, "{path}");
        }
    }
}
