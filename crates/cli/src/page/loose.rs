//! Values of a file that another program may have written: a text, a number, or an object with a few known members. Any
//! other value is skipped without a message and takes no memory.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// See the [module](self).
#[derive(Debug, Default, PartialEq)]
pub(super) struct Loose {
    pub(super) text: Option<String>,
    pub(super) number: Option<f64>,
    /// The member `name` of an object. The fields below are such members as well.
    pub(super) name: Option<String>,
    pub(super) end: Option<String>,
    pub(super) millstream_events: Option<f64>,
}

impl Loose {
    fn of(number: f64) -> Self {
        Loose { number: Some(number), ..Loose::default() }
    }

    /// A text or a number, as a key.
    pub(super) fn key(&self) -> String {
        self.text.clone().or_else(|| self.number.map(|number| number.to_string())).unwrap_or_default()
    }
}

impl<'de> Deserialize<'de> for Loose {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Any)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Loose;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Loose, E> {
        Ok(Loose { text: Some(text.to_owned()), ..Loose::default() })
    }

    fn visit_u64<E>(self, number: u64) -> Result<Loose, E> {
        Ok(Loose::of(number as f64))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Loose, E> {
        Ok(Loose::of(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Loose, E> {
        Ok(Loose::of(number))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Loose, E> {
        Ok(Loose::default())
    }

    fn visit_unit<E>(self) -> Result<Loose, E> {
        Ok(Loose::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Loose, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Loose::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Loose, A::Error> {
        let mut loose = Loose::default();
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "name" => loose.name = map.next_value::<Loose>()?.text,
                "end" => loose.end = map.next_value::<Loose>()?.text,
                "millstream_events" => loose.millstream_events = map.next_value::<Loose>()?.number,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(loose)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_value_is_read_and_most_are_skipped() {
        let read = |text: &str| serde_json::from_str::<Loose>(text).unwrap();
        assert_eq!((read("\"a\"").key(), read("-7").key(), read("1.5").key()), ("a".into(), "-7".into(), "1.5".into()));
        for skipped in ["null", "true", "[1,[2]]", "{\"x\":{\"name\":\"y\"}}", "{\"name\":7}"] {
            assert_eq!(read(skipped), Loose::default(), "{skipped}");
        }
        let object = read(r#"{"x":[1],"end":"retired","name":"n","millstream_events":1}"#);
        assert_eq!((object.end.as_deref(), object.name.as_deref()), (Some("retired"), Some("n")));
        assert_eq!(object.millstream_events, Some(1.0));
    }
}
