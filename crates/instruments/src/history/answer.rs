//! The verdict, as text and as JSON.

use std::fmt::Write as _;
use std::time::Duration;

use millstream_command::screen::{shown as visible, text};
use millstream_history::consistency::{sequential, sequentially_consistent_beside};
use millstream_history::{
    CheckError, Counterexample, History, Limit, Model, Op, Options, Progress, Status, Value, Verdict,
};
use serde_json::{Value as Json, json};

use super::error::{FAILS, HOLDS, NOTHING, UNKNOWN};

/// A verdict and its subject.
pub(super) struct Answer<'a> {
    pub(super) history: &'a History,
    pub(super) model: &'a Model,
    pub(super) verdict: &'a Verdict,
    /// Whether there was nothing to check.
    pub(super) nothing: bool,
    pub(super) took: Duration,
    /// Present if they were requested.
    pub(super) others: Option<Others>,
}

/// The verdicts on a stronger and on a weaker condition than linearizability.
pub(super) struct Others {
    /// The error names two rows that overlap.
    sequential: Result<(), (u32, u32)>,
    /// `None`: a limit was reached.
    consistent: Option<bool>,
}

impl Others {
    /// `options` are the options of the verdict, with the time limit reduced by the time that the verdict took.
    pub(super) fn of(
        verdict: &Verdict,
        history: &History,
        model: &Model,
        options: &Options,
    ) -> Result<Self, CheckError> {
        let options = Options { explain: false, ..options.clone() };
        let consistent = sequentially_consistent_beside(verdict, history, model, &options)?.holds();
        Ok(Others { sequential: sequential(history), consistent })
    }
}

impl Answer<'_> {
    pub(super) fn status(&self) -> u8 {
        match self.verdict {
            Verdict::Holds(_) if self.nothing => NOTHING,
            Verdict::Holds(_) => HOLDS,
            Verdict::Fails(_) => FAILS,
            Verdict::Unknown(_) => UNKNOWN,
        }
    }

    fn word(&self) -> &'static str {
        match self.verdict {
            Verdict::Holds(_) if self.nothing => "nothing to check",
            Verdict::Holds(_) => "linearizable",
            Verdict::Fails(_) => "not linearizable",
            Verdict::Unknown(_) => "unknown",
        }
    }

    /// Returns the verdict as text for a person.
    pub(super) fn text(&self) -> String {
        let mut out = format!("{}\n", self.word());
        match self.verdict {
            Verdict::Holds(_) if self.nothing => {
                out.push_str(match self.history.is_empty() {
                    true => "\nThere are no operations: was anything recorded?\n\n",
                    false => "\nNo operation has returned: was the recording cut short?\n\n",
                });
            }
            Verdict::Holds(_) => {}
            Verdict::Fails(found) => self.fails(&mut out, found),
            Verdict::Unknown(progress) => unknown(&mut out, progress),
        }
        if let Some(Others { sequential, consistent }) = &self.others {
            let overlap = sequential.err().map(|(a, b)| format!("no: rows {a} and {b} overlap"));
            let _ = writeln!(out, "\nsequential               {}", overlap.as_deref().unwrap_or("yes"));
            let _ = writeln!(out, "linearizable             {}", yes(self.verdict.holds()));
            let _ = writeln!(out, "sequentially consistent  {}\n", yes(*consistent));
        }
        let _ = writeln!(
            out,
            "{} by {}, as {} {}; decided in {}",
            text::counted(self.history.len() as u64, "operation"),
            processes(self.history),
            text::article(self.model.kind.name()),
            self.model,
            text::span(u64::try_from(self.took.as_nanos()).unwrap_or(u64::MAX)),
        );
        out
    }

    fn fails(&self, out: &mut String, found: &Counterexample) {
        let _ = writeln!(out, "\n{}", visible::line(&found.reason));
        if let Some(start) = &found.start {
            let _ = writeln!(out, "Before: {start}");
        }
        let shown = |row: u32| text::printable(&self.history.show(row as usize).to_string()).into_owned();
        let widest =
            found.operations.iter().map(|&row| text::width(&shown(row))).max().unwrap_or(0).max("operation".len());
        let _ = writeln!(
            out,
            "\n{:>9}  {:>7}  {}  {:>14}  {:>14}",
            "row",
            "process",
            text::left("operation", widest),
            "called",
            "returned"
        );
        for &row in &found.operations {
            let row_number = row as usize;
            let returned = self.history.returned_at(row_number).map_or("never".to_owned(), |at| at.to_string());
            let _ = writeln!(
                out,
                "{row:>9}  {:>7}  {}  {:>14}  {returned:>14}",
                self.history.process(row_number),
                text::left(&shown(row), widest),
                self.history.call(row_number),
            );
        }
        if let Some(prefix) = found.prefix {
            let _ = writeln!(
                out,
                "\nIn order up to time {}, when {} had returned; the next return, of {} (row {}), cannot be explained.",
                prefix.until,
                text::counted(prefix.operations as u64, "operation"),
                shown(prefix.culprit),
                prefix.culprit
            );
        }
        if let Some(value) = self.unwritten(found) {
            let (value, kind) = (self.history.values().show(value), self.model.kind);
            let _ = writeln!(
                out,
                "\nNo operation writes {value}. If it is the initial value, say so: --spec '{kind}:{value}'"
            );
        }
        out.push('\n');
    }

    /// Returns a value that a read of the counter-example returned and no operation wrote: perhaps the object's initial value.
    fn unwritten(&self, found: &Counterexample) -> Option<Value> {
        let history = self.history;
        if !self.model.initial.is_null() || !self.model.kind.operations().contains(&Op::WRITE) {
            return None;
        }
        let written = |row: usize| match history.op(row) {
            Op::CAS => history.values().as_pair(history.input(row)).map(|[_, new]| new),
            _ => Some(history.input(row)),
        };
        let answers = found.operations.iter().map(|&row| row as usize).filter(|&row| history.op(row) == Op::READ);
        let answers = answers.filter(|&row| history.status(row) == Status::Ok).map(|row| history.output(row));
        let is_initial = |value: &Value| {
            let spec = format!("{}:{}", self.model.kind, history.values().show(*value));
            spec.parse::<Model>().is_ok_and(|model| model.initial == *value && !value.is_null())
        };
        answers.filter(is_initial).find(|&value| (0..history.len()).all(|row| written(row) != Some(value)))
    }

    /// Returns the verdict as JSON, on one line.
    pub(super) fn json(&self) -> String {
        let mut json = json!({
            "verdict": self.word(),
            "spec": self.model.to_string(),
            "operations": self.history.len(),
            "processes": self.history.processes().len(),
            "seconds": self.took.as_secs_f64(),
        });
        if let Some(Others { sequential, consistent }) = &self.others {
            json["sequential"] = json!(sequential.is_ok());
            json["sequentially_consistent"] = json!(consistent);
        }
        match self.verdict {
            Verdict::Holds(witness) => json["order"] = json!(witness.order),
            Verdict::Fails(found) => {
                json["reason"] = json!(found.reason);
                json["subject"] = json!(found.subject);
                json["start"] = json!(found.start);
                json["counterexample"] = found.operations.iter().map(|&row| self.operation(row)).collect();
                json["prefix"] = found.prefix.map_or(Json::Null, |prefix| {
                    json!({
                        "until": prefix.until,
                        "operations": prefix.operations,
                        "culprit": self.operation(prefix.culprit),
                    })
                });
            }
            Verdict::Unknown(progress) => {
                json["limit"] = json!(limit(progress.limit));
                json["decided"] = json!(progress.decided);
                json["total"] = json!(progress.total);
                json["configurations"] = json!(progress.configurations);
            }
        }
        visible::json(&format!("{json}\n")).into_owned()
    }

    fn operation(&self, row: u32) -> Json {
        let number = row as usize;
        json!({
            "row": row,
            "process": self.history.process(number),
            "operation": self.history.show(number).to_string(),
            "call": self.history.call(number),
            "return": self.history.returned_at(number),
            "status": match self.history.status(number) {
                Status::Ok => "ok",
                Status::Fail => "fail",
                Status::Info => "info",
            },
        })
    }
}

fn yes(holds: Option<bool>) -> &'static str {
    holds.map_or("unknown", |holds| if holds { "yes" } else { "no" })
}

fn processes(history: &History) -> String {
    let count = history.processes().len();
    if count == 1 { "1 process".to_owned() } else { format!("{} processes", text::count(count as u64)) }
}

fn limit(limit: Limit) -> &'static str {
    match limit {
        Limit::Memory => "memory",
        Limit::Time => "time",
        Limit::Concurrency => "concurrent operations",
    }
}

fn unknown(out: &mut String, progress: &Progress) {
    let more = match progress.limit {
        Limit::Memory => "give it more with --memory, or partition the history by key",
        Limit::Time => "give it longer with --time, or partition the history by key",
        Limit::Concurrency => "partition the history by key",
    };
    let _ = writeln!(
        out,
        "\nThe limit of {} was reached when the best attempt had explained {} of {}, after {}; {more}.\n",
        limit(progress.limit),
        text::count(progress.decided as u64),
        text::counted(progress.total as u64, "return"),
        text::counted(progress.configurations, "configuration"),
    );
}
