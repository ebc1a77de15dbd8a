//! The page of a file of events: strips that show when stages and workers ran.
//!
//! `run --events FILE` writes trace events, as browsers and many other programs do. The spans (events of phase `X`) of
//! another program are shown as well, by their names and threads; its other events are only counted.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use millstream_command::screen::xml::escape;
use millstream_command::screen::{shown, text};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Value, json};

use super::kind::THE_EVENTS;
use super::lanes::{Lane, Span, json as lanes_json, lanes, range};
use super::loose::Loose;
use super::{PageError, Shown};

/// The maximum moment or duration, in microseconds: three thousand years.
const MAX_TIME: f64 = 1e17;

/// The version of Millstream's own events.
const VERSION: f64 = 1.0;

/// Reads a file of events.
pub(super) fn shown(path: &Path) -> Result<Shown, PageError> {
    let name = || shown::path(path).to_string();
    let file = File::open(path).map_err(|error| PageError::NotOpened(name(), error))?;
    let events = Events::read(BufReader::new(file)).map_err(|error| PageError::json(path, THE_EVENTS, &error))?;
    let is_ours = events.is_ours();
    if events.format.is_some() && !is_ours {
        return Err(PageError::Foreign { path: name(), what: "events of a later version of Millstream" });
    }
    if !is_ours && events.spans.is_empty() {
        let what = "trace events of another program, without a span (an event of phase `X` with `ts` and `dur`)";
        return Err(PageError::Foreign { path: name(), what });
    }
    let (data, plain) = events.page(&name());
    Ok(Shown { data: shown::json(&data.to_string()).into_owned(), plain, sliders: None })
}

/// The events of a file.
#[derive(Debug, Default)]
struct Events {
    /// The version of the events, if a run of Millstream wrote them.
    format: Option<f64>,
    /// Whether the events are a member of an object. The end of the object then shows that they are complete.
    in_object: bool,
    spans: Vec<Span>,
    names: Names,
    threads: Names,
    /// The names of threads, by their numbers.
    called: HashMap<u32, String>,
    process: Option<String>,
    left_out: u64,
}

/// Texts, each with a number.
#[derive(Debug, Default)]
struct Names {
    numbers: HashMap<String, u32>,
    texts: Vec<String>,
}

impl Names {
    fn number(&mut self, text: String) -> u32 {
        if let Some(number) = self.numbers.get(&text) {
            return *number;
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.clone());
        self.numbers.insert(text, number);
        number
    }
}

/// One event. Its other members are skipped.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event {
    ph: Loose,
    name: Loose,
    pid: Loose,
    tid: Loose,
    ts: Loose,
    dur: Loose,
    args: Loose,
}

impl Events {
    fn read(from: impl io::Read) -> Result<Self, serde_json::Error> {
        let mut events = Events::default();
        let mut from = serde_json::Deserializer::from_reader(from);
        match events.deserialize(&mut from) {
            // A program that was killed may have written an array of events without its end. The events before that are
            // shown.
            Err(error) if error.is_eof() && !events.in_object && !events.spans.is_empty() => {}
            read => read.and_then(|()| from.end())?,
        }
        if !events.is_ours() {
            // `failed` was read from the events' arguments, which have another meaning in the events of another
            // program.
            events.spans.iter_mut().for_each(|span| span.failed = false);
        }
        Ok(events)
    }

    /// Whether a run of Millstream wrote the events.
    fn is_ours(&self) -> bool {
        self.format == Some(VERSION)
    }

    fn take(&mut self, event: Event) {
        let Event { ph, name, pid, tid, ts, dur, args } = event;
        let thread = |events: &mut Self| events.threads.number(format!("{} {}", pid.key(), tid.key()));
        match (ph.text.as_deref(), ts.number, dur.number) {
            (Some("M"), ..) => match (name.text.as_deref(), args.name) {
                (Some("thread_name"), Some(called)) => {
                    let thread = thread(self);
                    self.called.insert(thread, called);
                }
                (Some("process_name"), Some(process)) => self.process = Some(process),
                _ => {}
            },
            (Some("X"), Some(from), Some(dur)) if from.abs() <= MAX_TIME && (0.0..=MAX_TIME).contains(&dur) => {
                let thread = thread(self);
                let failed = args.end.is_some_and(|end| end.starts_with("failed"));
                let name = self.names.number(name.key());
                self.spans.push(Span { from, to: from + dur, name, thread, failed });
            }
            _ => self.left_out += 1,
        }
    }

    /// The data and the plain markup of the page.
    fn page(mut self, file: &str) -> (Value, String) {
        let wall_s = range(&self.spans).map_or(0.0, |(from, to)| (to - from) / 1e6);
        let units = self.spans.len() as u64;
        let called = |(number, key): (usize, &String)| {
            self.called.get(&(number as u32)).cloned().unwrap_or_else(|| format!("thread {key}"))
        };
        let threads: Vec<String> = self.threads.texts.iter().enumerate().map(called).collect();
        let is_ours = self.is_ours();
        let (by_name, other_names) = lanes(&mut self.spans, |span| span.name, &self.names.texts);
        let (by_thread, other_threads) = lanes(&mut self.spans, |span| span.thread, &threads);
        let flow = self.process.unwrap_or_else(|| file.to_owned());
        let mut facts = Vec::new();
        if is_ours {
            facts.push(
                "a file of events shows what ran when; a trace (`run --trace FILE`) also shows what units waited for"
                    .to_owned(),
            );
        } else {
            facts.push("another program wrote this file: its spans are shown by their names".to_owned());
        }
        let mut beyond = |others: usize, noun: &str| {
            if others > 0 {
                facts.push(format!("those {} with the least time are one lane", text::counted(others as u64, noun)));
            }
        };
        beyond(other_names, if is_ours { "stage" } else { "name" });
        beyond(other_threads, "thread");
        if self.left_out > 0 {
            facts.push(format!("{} of another kind than spans are not shown", text::counted(self.left_out, "event")));
        }
        let plain = plain(&flow, wall_s, &by_name);
        let data = json!({
            "timeline": {
                "name": flow, "file": file, "is_ours": is_ours, "wall_s": wall_s, "spans": units, "facts": facts,
                "stages": lanes_json(&by_name), "threads": lanes_json(&by_thread),
            },
        });
        (data, plain)
    }
}

/// The lanes as text.
fn plain(flow: &str, wall_s: f64, lanes: &[Lane]) -> String {
    let line = |lane: &Lane| {
        let (name, spans) = (text::printable(&lane.name), text::count(lane.spans));
        format!("{name}: {spans} spans, {} in all, {} failed\n", text::seconds(lane.busy_s), text::count(lane.failed))
    };
    let lanes: String = lanes.iter().map(line).collect();
    format!("<pre>{}</pre>", escape(&format!("{} in {}\n{lanes}", text::printable(flow), text::seconds(wall_s))))
}

impl<'de> DeserializeSeed<'de> for &mut Events {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Events {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of events")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.in_object = true;
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "traceEvents" => map.next_value_seed(&mut *self)?,
                "otherData" => self.format = map.next_value::<Loose>()?.millstream_events,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(event) = seq.next_element::<Event>()? {
            self.take(event);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Events, String> {
        Events::read(text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn spans_of_another_program_are_read_and_the_rest_is_counted() {
        let events = read(
            r#"[{"ph":"X","name":"paint","ts":5,"dur":2.5,"pid":"a","tid":7,"args":[1]},
                {"ph":"X","name":"layout","ts":-1e300,"dur":1},{"ph":"X","ts":1,"dur":-4},{"ph":"B","ts":1},{"ph":7},
                {"ph":"M","name":"thread_name","pid":"a","tid":7,"args":{"name":"<b>main</b>"}},{"ph":"M"}]"#,
        )
        .unwrap();
        assert_eq!((events.spans.len(), events.left_out, events.is_ours()), (1, 4, false));
        let (data, plain) = events.page("f.json");
        assert_eq!(data["timeline"]["threads"][0]["name"], "<b>main</b>");
        assert_eq!(data["timeline"]["stages"][0]["strip"][0], 1.0);
        assert!(plain.contains("paint: 1 spans"), "{plain}");
    }

    #[test]
    fn an_array_of_another_program_may_lack_its_end_and_its_arguments_mean_nothing() {
        let events =
            read("[\n{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":2,\"args\":{\"end\":\"failed to paint\"}},\n")
                .unwrap();
        assert_eq!((events.spans.len(), events.spans[0].failed), (1, false));
    }

    #[test]
    fn names_are_text_in_the_markup_for_readers_without_scripts() {
        let events = read(r#"[{"ph":"X","name":"<img src=x>","ts":0,"dur":1}]"#).unwrap();
        let (_, plain) = events.page("f<i>.json");
        assert!(!plain.contains("<img") && !plain.contains("<i>") && plain.contains("&lt;img"), "{plain}");
    }

    #[test]
    fn a_value_that_is_not_an_event_is_reported_with_its_position() {
        for (text, why) in [
            ("[1]", "invalid type: integer `1`, expected struct Event at line 1"),
            ("{\"traceEvents\":7}", "expected an array of events"),
            ("[{\"ph\":\"X\"}", "EOF"),
            ("{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":2}", "EOF"),
            ("[] []", "trailing characters"),
            ("[{\"ts\":1e999}]", "number out of range"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!(read(&format!("[{{\"args\":{}", "[".repeat(100_000))).is_err());
    }
}
