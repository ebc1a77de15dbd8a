//! JSON objects whose numbers lose no precision.

use millstream_command::screen::shown;
use serde_json::Value;

use super::number;

/// An object on one line, with its members in the order in which they were added.
#[derive(Debug, Default)]
pub(super) struct Object {
    members: Vec<String>,
}

impl Object {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// Adds a number with 17 significant digits, or null for a number that is not finite, which JSON cannot express.
    pub(super) fn number(self, name: &str, value: f64) -> Self {
        let text = if value.is_finite() { number::exact(value) } else { "null".to_owned() };
        self.member(name, &text)
    }

    /// Adds a number, or null if it is unknown.
    pub(super) fn maybe(self, name: &str, value: Option<f64>) -> Self {
        self.number(name, value.unwrap_or(f64::NAN))
    }

    pub(super) fn count(self, name: &str, value: impl Into<Option<u64>>) -> Self {
        let text = value.into().map_or_else(|| "null".to_owned(), |count| count.to_string());
        self.member(name, &text)
    }

    pub(super) fn flag(self, name: &str, value: impl Into<Option<bool>>) -> Self {
        let text = value.into().map_or_else(|| "null".to_owned(), |flag| flag.to_string());
        self.member(name, &text)
    }

    pub(super) fn text<'a>(self, name: &str, value: impl Into<Option<&'a str>>) -> Self {
        self.member(name, &shown::json(&value.into().map_or(Value::Null, Value::from).to_string()))
    }

    pub(super) fn object(self, name: &str, value: &Self) -> Self {
        self.member(name, &value.done())
    }

    pub(super) fn list(self, name: &str, values: &[Self]) -> Self {
        let values: Vec<String> = values.iter().map(Self::done).collect();
        self.member(name, &format!("[{}]", values.join(",")))
    }

    /// Adds a member whose text is already JSON.
    pub(super) fn raw(self, name: &str, text: &str) -> Self {
        self.member(name, text)
    }

    /// Returns the object's text.
    pub(super) fn done(&self) -> String {
        format!("{{{}}}", self.members.join(","))
    }

    fn member(mut self, name: &str, text: &str) -> Self {
        self.members.push(format!("{}:{text}", Value::from(name)));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let inner = Object::new().number("low", 0.1).number("high", f64::INFINITY);
        let text = Object::new()
            .number("level", -6.907_755_278_982_137)
            .maybe("rate", None)
            .count("trials", 7)
            .count("limit", None)
            .flag("stop", true)
            .text("quoted", "a \"b\"\n")
            .text("nothing", None)
            .object("interval", &inner)
            .list("list", &[Object::new(), Object::new().count("n", 1)])
            .done();
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["level"].as_f64(), Some(-6.907_755_278_982_137));
        assert_eq!(value["interval"]["low"], 0.1);
        assert_eq!(value["trials"], 7);
        assert_eq!(value["stop"], true);
        assert_eq!(value["quoted"], "a \"b\"\n");
        assert_eq!(value["list"][1]["n"], 1);
        for null in [&value["rate"], &value["limit"], &value["nothing"], &value["interval"]["high"]] {
            assert!(null.is_null());
        }
    }
}
