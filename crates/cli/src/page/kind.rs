//! The kind of a file about a run, determined from its content.

use std::fmt;
use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::Path;

use millstream_command::screen::shown;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::PageError;
use crate::whatif::kind_by_begin;

/// The number of bytes that are read at the beginning of a file to distinguish a trace from JSON.
const LOOK: u64 = 4096;

/// A file that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Trace,
    Events,
    Report,
}

/// The name of a JSON file in messages before its kind is known.
const SOME_JSON: &str = "the JSON";
/// The name of a file of events in messages.
pub(super) const THE_EVENTS: &str = "the file of events";
/// The name of a report in messages.
pub(super) const THE_REPORT: &str = "the report";

/// Determines the kind of a file. A JSON file may have at most `most` bytes, and is read to its end, so a truncated
/// file is reported here.
pub(super) fn of(path: &Path, most: u64) -> Result<Kind, PageError> {
    let name = || shown::path(path).to_string();
    let not_opened = |error| PageError::NotOpened(name(), error);
    let facts = fs::metadata(path).map_err(not_opened)?;
    if !facts.is_file() && !facts.is_dir() {
        return Err(PageError::NoFile(name()));
    }
    let file = File::open(path).map_err(not_opened)?;
    let mut begin = Vec::new();
    (&file).take(LOOK).read_to_end(&mut begin).map_err(not_opened)?;
    if begin.starts_with(b"{\"millstream_trace\"") {
        return Ok(Kind::Trace);
    }
    match begin.trim_ascii_start().first() {
        None if begin.len() < LOOK as usize => return Err(PageError::Empty(name())),
        Some(b'{' | b'[') => {}
        _ => return Err(PageError::Unknown { path: name(), what: kind_by_begin(&begin) }),
    }
    if facts.len() > most {
        return Err(PageError::TooLarge { path: name(), what: SOME_JSON, bytes: facts.len(), most });
    }
    let mut members = Members::default();
    let mut from = serde_json::Deserializer::from_reader(BufReader::new(File::open(path).map_err(not_opened)?));
    let read = members.deserialize(&mut from).and_then(|()| from.end());
    let what = match &members {
        Members { events: true, .. } => THE_EVENTS,
        Members { report: true, .. } => THE_REPORT,
        _ => SOME_JSON,
    };
    match read {
        // A program that was killed may have written an array of events without its end. The events before that are
        // shown.
        Err(error) if error.is_eof() && begin.trim_ascii_start().starts_with(b"[") => {}
        read => read.map_err(|error| PageError::json(path, what, &error))?,
    }
    match members {
        Members { events: true, .. } => Ok(Kind::Events),
        Members { report: true, .. } => Ok(Kind::Report),
        _ => Err(PageError::Foreign { path: name(), what: "JSON without `traceEvents` and `admitted`" }),
    }
}

/// The members of an object that determine the kind of the file. An array is taken for an array of events.
#[derive(Debug, Default)]
struct Members {
    events: bool,
    report: bool,
}

impl<'de> DeserializeSeed<'de> for &mut Members {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Members {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an array")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            self.events |= name == "traceEvents";
            self.report |= name == "admitted";
            map.next_value::<IgnoredAny>()?;
        }
        if self.events && self.report {
            return Err(A::Error::custom("`traceEvents` and `admitted` are in one object"));
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        self.events = true;
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}
