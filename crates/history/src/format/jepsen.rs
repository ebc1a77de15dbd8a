//! Jepsen's `history.edn`: an event per line, or one vector of events.
//!
//! `{:process 0, :type :invoke, :f :cas, :value [1 2], :time 3, :index 0}`: `:invoke` is a call, `:ok` a return,
//! `:fail` an operation that certainly had no effect, `:info` one whose outcome is unknown. The values of Jepsen's
//! independent keys (`#jepsen.independent.Tuple [key value]`) are split into key and value. Some logs print these
//! tuples as plain vectors `[key value]`, which look like any other vector; the user then selects the format
//! [`JepsenIndependent`](super::Format::JepsenIndependent). Events of processes without a number (`:nemesis`) are left
//! out.
//!
//! The logs of porcupine's key-value tests have this form, with a field `:key` and the operations `:get`, `:put` and
//! `:append`. Knossos writes the answer of a read at its call, too: `:type :invoke, :f :read, :value 4`.

use std::io::BufRead;

use super::edn::{EdnError, Form, Reader};
use super::error::{FormatError, Problem};
use super::events::{Event, Events};
use super::lines::{Lines, text};
use crate::history::History;
use crate::model::Kind;
use crate::operation::{Operation, Status};
use crate::value::Value;

/// The maximum length of a form. It needs a limit because the parser restarts at the beginning of the form with each
/// further line.
const MAX_FORM: usize = 1 << 16;

/// How a log marks the keys of independent objects.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keys {
    /// A tag or a field marks the key, if there is one.
    Tagged,
    /// Every value is a vector of the key and the value.
    InPairs,
}

pub(super) fn read(input: impl BufRead, kind: Option<Kind>, keys: Keys) -> Result<History, FormatError> {
    let mut lines = Lines::new(input);
    let mut events = Events::new(kind);
    // The text of forms that have begun and not ended, and the line on which the text begins.
    let mut begun = (String::new(), 1);
    // Whether the events are in one vector. The first bracket decides this.
    let mut vector = Vector::NotSeen;
    let mut last = 1;
    while let Some((line, bytes)) = lines.next()? {
        last = line;
        let rest = text(line, bytes)?;
        if begun.0.is_empty() {
            begun.1 = line;
        }
        begun.0.push_str(rest);
        begun.0.push('\n');
        let left =
            forms(&begun.0, &mut vector, |form| event(&form, keys, &mut events, line)).map_err(|stop| match stop {
                Stop::Syntax(message) => Problem::Syntax(message).at(line),
                Stop::Event(error) => error,
            })?;
        let read = begun.0.len() - left;
        begun.0.drain(..read);
        if begun.0.len() > MAX_FORM {
            let message = format!("a form does not end within {MAX_FORM} bytes");
            return Err(Problem::Syntax(message).at(begun.1));
        }
    }
    if !begun.0.is_empty() || vector == Vector::Open {
        return Err(Problem::Syntax("the file ends within a form".into()).at(begun.1.min(last)));
    }
    events.finish(last)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Vector {
    NotSeen,
    Open,
    Closed,
}

enum Stop {
    Syntax(String),
    Event(FormatError),
}

impl From<String> for Stop {
    fn from(message: String) -> Stop {
        Stop::Syntax(message)
    }
}

/// Consumes the complete forms of the text, and returns the number of remaining bytes.
fn forms(
    text: &str,
    vector: &mut Vector,
    mut take: impl FnMut(Form) -> Result<(), FormatError>,
) -> Result<usize, Stop> {
    let mut left = text;
    loop {
        let mut reader = Reader::new(left);
        let rest = reader.rest();
        match (rest.chars().next(), *vector) {
            (None, _) => return Ok(0),
            (_, Vector::Closed) => return Err("there is text after the end of the history".to_owned().into()),
            (Some('[' | '('), Vector::NotSeen) => (*vector, left) = (Vector::Open, &rest[1..]),
            (Some(']' | ')'), Vector::Open) => (*vector, left) = (Vector::Closed, &rest[1..]),
            _ => match reader.form() {
                Ok(form) => {
                    take(form).map_err(Stop::Event)?;
                    left = reader.rest();
                }
                Err(EdnError::Incomplete) => return Ok(left.len()),
                Err(EdnError::Wrong(message)) => return Err(message.into()),
            },
        }
    }
}

/// One event's map.
fn event(form: &Form, keys: Keys, events: &mut Events, line: u64) -> Result<(), FormatError> {
    let form = if let Form::Tagged(_, form) = form { form } else { form };
    let syntax = |message: String| Problem::Syntax(message).at(line);
    let field = |name: &str| form.field(name).ok_or_else(|| syntax(format!("an event without :{name}")));
    let process = match field("process")? {
        Form::Int(process) => {
            u32::try_from(*process).map_err(|_| syntax(format!("process {process} is out of range")))?
        }
        // The nemesis, or another process without a number.
        _ => return Ok(()),
    };
    let Form::Keyword(kind) = field("type")? else { return Err(syntax(":type is not a keyword".into())) };
    let kind = match kind.as_str() {
        "invoke" => Event::Call,
        "ok" => Event::Return(Status::Ok),
        "fail" => Event::Return(Status::Fail),
        "info" => Event::Return(Status::Info),
        other => return Err(syntax(format!(":type is :{other}, but must be :invoke, :ok, :fail or :info"))),
    };
    let Form::Keyword(name) = field("f")? else { return Err(syntax(":f is not a keyword".into())) };
    let pair = |pair: &Form| match pair {
        Form::List(pair) if pair.len() == 2 => Ok((Some(pair[0].clone()), pair[1].clone())),
        _ => Err(syntax("the value of an independent object must be a vector of the key and the value".into())),
    };
    // At an unsuccessful return, the value may be an error message instead of a pair.
    let read = !matches!(kind, Event::Return(Status::Fail | Status::Info));
    let (key, value) = match (form.field("key"), form.field("value").unwrap_or(&Form::Nil)) {
        (None, Form::Tagged(tag, tuple)) if tag == "jepsen.independent.Tuple" => pair(tuple)?,
        (None, value) if keys == Keys::InPairs && read => pair(value)?,
        (key, value) => (key.cloned(), value.clone()),
    };
    let is_store = events.kind() == Some(Kind::KeyValue);
    let builder = events.builder();
    let op = builder.op(match name.as_str() {
        "put" => "write",
        "get" if is_store => "read",
        name => name,
    });
    let values = builder.values();
    let value = if read { value.value(values).map_err(syntax)? } else { Value::NULL };
    let key = key.map(|key| key.value(values).map_err(syntax)).transpose()?.filter(|key| !key.is_null());
    events.event(kind, Operation { key, output: value, ..Operation::new(process, op, value) }, line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Result<Vec<String>, String> {
        shown_with(Keys::Tagged, text)
    }

    fn shown_with(keys: Keys, text: &str) -> Result<Vec<String>, String> {
        let history = read(text.as_bytes(), None, keys).map_err(|error| error.to_string())?;
        Ok((0..history.len()).map(|row| format!("{} {}", history.process(row), history.show(row))).collect())
    }

    #[test]
    fn events_become_operations() {
        let lines = "{:process 0, :type :invoke, :f :read, :value nil, :time 5, :index 0}\n\
                     {:process :nemesis, :type :info, :f :start}\n\
                     {:process 1, :type :invoke, :f :cas, :value [1 2]}\n\n\
                     {:process 0, :type :ok, :f :read,\n :value 3}\n\
                     {:process 1, :type :ok, :f :cas, :value [1 2]}\n\
                     {:process 2, :type :invoke, :f :write, :value 5} {:process 3, :type :invoke, :f :write, :value 6}\n\
                     {:process 2, :type :info, :f :write, :value 5, :error :timeout}\n\
                     {:process 3, :type :fail, :f :write, :value 6}\n";
        let operations = ["0 read() -> 3", "1 cas([1,2]) -> true", "2 write(5) -> ?", "3 write(6) failed"];
        assert_eq!(shown(lines).unwrap(), operations);
        assert_eq!(shown(&format!("[{lines}]")).unwrap(), operations);
    }

    #[test]
    fn a_store_has_get_put_and_append_by_key() {
        let lines = "{:process 4, :type :invoke, :f :put, :key \"k\", :value \"x\"}\n\
                     {:process 5, :type :invoke, :f :append, :key \"k\", :value \"y\"}\n\
                     {:process 4, :type :ok, :f :put, :key \"k\", :value \"x\"}\n\
                     {:process 5, :type :ok, :f :append, :key \"k\", :value \"y\"}\n\
                     {:process 5, :type :invoke, :f :get, :key \"k\", :value nil}\n\
                     {:process 5, :type :ok, :f :get, :key \"k\", :value \"xy\"}\n\
                     {:process 4, :type :invoke, :f :get, :key \"l\", :value nil}\n\
                     {:process 4, :type :ok, :f :get, :key \"l\", :value \"\"}\n";
        let history = read(lines.as_bytes(), Some(Kind::KeyValue), Keys::Tagged).unwrap();
        let shown: Vec<String> = (0..history.len()).map(|row| history.show(row).to_string()).collect();
        assert_eq!(shown, [r#""k".write("x")"#, r#""k".append("y")"#, r#""k".read() -> "xy""#, r#""l".read() -> """#]);
    }

    #[test]
    fn a_call_that_has_its_answer_already_takes_nothing() {
        let lines = "{:process 14, :type :invoke, :f :read, :value 4}\n{:process 14, :type :ok, :f :read, :value 4}\n";
        let shown = |kind| {
            let history = read(lines.as_bytes(), Some(kind), Keys::Tagged).unwrap();
            history.show(0).to_string()
        };
        assert_eq!(shown(Kind::CasRegister), "read() -> 4");
        assert_eq!(shown(Kind::Log), "read(4) -> null", "a log's read takes an index");
    }

    #[test]
    fn independent_keys_are_taken_apart() {
        let lines = "#jepsen.history.Op{:process 0, :type :invoke, :f :write, :value #jepsen.independent.Tuple [7 3]}\n\
                     {:process 0, :type :ok, :f :write, :value #jepsen.independent.Tuple [7 3]}";
        assert_eq!(shown(lines).unwrap(), ["0 7.write(3)"]);
        assert_eq!(shown_with(Keys::InPairs, lines).unwrap(), ["0 7.write(3)"]);
        let plain = lines.replace("#jepsen.independent.Tuple ", "");
        assert_eq!(shown_with(Keys::InPairs, &plain).unwrap(), ["0 7.write(3)"]);
        assert_eq!(shown(&plain).unwrap(), ["0 write([7,3])"]);
        let lost = "{:process 0, :type :invoke, :f :write, :value [7 3]} {:process 0, :type :info, :f :write, :value :timed-out}";
        assert_eq!(shown_with(Keys::InPairs, lost).unwrap(), ["0 7.write(3) -> ?"]);
        let none = plain.replace("[7 3]", "3");
        let message = "line 1: the value of an independent object must be a vector of the key and the value";
        assert_eq!(shown_with(Keys::InPairs, &none).unwrap_err(), message);
    }

    #[test]
    fn contradictions_are_refused_with_their_line() {
        let call = "{:process 0, :type :invoke, :f :read, :value nil}\n";
        assert!(shown(&[call, call].concat()).unwrap_err().starts_with("line 2: process 0 called"));
        assert!(shown("\n{:process 0, :type :ok, :f :read}").unwrap_err().starts_with("line 2: process 0 returned"));
        assert!(shown("{:process 0, :type :invoke,\n").unwrap_err().starts_with("line 1: the file ends"));
        assert!(shown("[{:process 0, :type :invoke, :f :read}").unwrap_err().contains("the file ends"));
        assert!(shown("[] {:process 0}").unwrap_err().contains("after the end"));
        assert!(shown("{:process 0, :type :odd, :f :read}").unwrap_err().contains(":odd"));
        assert!(shown("{:process 0, :type :invoke, :f :write, :value 1.5}").unwrap_err().contains("1.5"));
    }
}
