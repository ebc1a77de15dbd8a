//! The log of Jepsen's etcd test: `INFO  jepsen.util - 0 :invoke :cas [4 1]`, with tabs or spaces between the fields.
//!
//! `:fail` says that the operation had no effect. For a compare-and-set it says more: the value differed from the
//! expected one, and the operation returned `false`. (This does not apply if the line has a keyword such as
//! `:timed-out` instead of the pair.) Lines without `jepsen.util` are other messages, and are skipped.

use std::io::BufRead;

use super::edn::{EdnError, Form, Reader};
use super::error::{FormatError, Problem};
use super::events::{Event, Events};
use super::lines::{Lines, text};
use crate::history::History;
use crate::model::Kind;
use crate::operation::{Op, Operation, Status};
use crate::value::Value;

pub(super) fn read(input: impl BufRead, kind: Option<Kind>) -> Result<History, FormatError> {
    let mut lines = Lines::new(input);
    let mut events = Events::new(kind);
    let (mut last, mut is_silent, mut is_log) = (1, true, false);
    while let Some((line, bytes)) = lines.next()? {
        last = line;
        let text = text(line, bytes)?;
        is_silent &= text.is_empty();
        if text.contains("jepsen.util") {
            is_log = true;
            let (event, operation) = parse(text, &mut events).map_err(|message| Problem::Syntax(message).at(line))?;
            events.event(event, operation, line)?;
        }
    }
    if !is_log && !is_silent {
        let message = "no line has an event, such as `INFO  jepsen.util - 0 :invoke :read nil`: this is not such a log";
        return Err(Problem::Syntax(message.into()).at(last));
    }
    events.finish(last)
}

fn parse(text: &str, events: &mut Events) -> Result<(Event, Operation), String> {
    // Tabs or spaces separate the fields. The type is the first field that begins with a colon, and everything after
    // the operation's name is the value.
    let type_at =
        text.match_indices(':').find(|(at, _)| text[..*at].ends_with([' ', '\t'])).map_or(text.len(), |(at, _)| at);
    let (head, fields) = text.split_at(type_at);
    let process = head.split_whitespace().next_back().unwrap_or_default();
    let process = process.parse().map_err(|_| format!("`{process}` is not a process number"))?;
    let (kind, fields) = first_word(fields);
    let (name, value) = first_word(fields);
    let kind = present(kind, "type (:invoke, :ok, :fail or :info)")?;
    let name = present(name, "operation")?;
    let name = name.strip_prefix(':').ok_or_else(|| format!("the operation `{name}` has no colon"))?;
    let value = form(present(value, "value")?)?;
    let op = events.builder().op(name);
    let timed_out = matches!(value, Form::Keyword(_));
    let event = match kind {
        ":invoke" => Event::Call,
        ":ok" => Event::Return(Status::Ok),
        ":fail" if op == Op::CAS && !timed_out => Event::Return(Status::Ok),
        ":fail" => Event::Return(Status::Fail),
        ":info" => Event::Return(Status::Info),
        other => return Err(format!("the type `{other}` is not one of :invoke, :ok, :fail and :info")),
    };
    let value = if timed_out { Value::NULL } else { value.value(events.builder().values())? };
    let output = if kind == ":fail" { Value::FALSE } else { value };
    Ok((event, Operation { output, ..Operation::new(process, op, value) }))
}

/// The first word, and the text after it.
fn first_word(text: &str) -> (&str, &str) {
    let (word, rest) = text.trim().split_once([' ', '\t']).unwrap_or((text.trim(), ""));
    (word, rest.trim())
}

fn present<'t>(field: &'t str, what: &str) -> Result<&'t str, String> {
    if field.is_empty() { Err(format!("no {what}")) } else { Ok(field) }
}

fn form(text: &str) -> Result<Form, String> {
    let mut reader = Reader::new(text);
    match reader.form() {
        Ok(form) if reader.rest().is_empty() => Ok(form),
        Err(EdnError::Wrong(message)) => Err(message),
        _ => Err(format!("`{text}` is not a value")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Result<Vec<String>, String> {
        let history = read(text.as_bytes(), Some(Kind::CasRegister)).map_err(|error| error.to_string())?;
        Ok((0..history.len()).map(|row| format!("{} {}", history.process(row), history.show(row))).collect())
    }

    #[test]
    fn a_log_becomes_operations() {
        let log = "INFO  jepsen.core - starting\n\
                   INFO  jepsen.util - 0\t:invoke\t:read\tnil\n\
                   INFO  jepsen.util - 1\t:invoke\t:cas\t[4 1]\n\
                   INFO  jepsen.util - 1\t:fail\t:cas\t[4 1]\n\
                   INFO  jepsen.util - 0\t:ok\t:read\tnil\n\
                   INFO  jepsen.util - 2\t:invoke\t:cas\t[1 4]\n\
                   INFO  jepsen.util - 1\t:invoke\t:read\tnil\n\
                   INFO  jepsen.util - 1\t:fail\t:read\t:timed-out\n\
                   INFO  jepsen.util - 2\t:info\t:cas\t:timed-out\n\
                   INFO  jepsen.util - 3\t:invoke\t:write\t4\n\
                   INFO  jepsen.util - 4   :invoke :cas    [1 2]\n";
        assert_eq!(
            shown(log).unwrap(),
            [
                "0 read() -> null",
                "1 cas([4,1]) -> false",
                "2 cas([1,4]) -> ?",
                "1 read() failed",
                "3 write(4) -> ?",
                "4 cas([1,2]) -> ?"
            ]
        );
    }

    #[test]
    fn malformed_lines_are_refused_with_their_number() {
        for (log, message) in [
            ("INFO  jepsen.util - x\t:invoke\t:read\tnil", "line 1: `x` is not a process number"),
            ("\nINFO  jepsen.util - 1\t:invoke\t:read", "line 2: no value"),
            (
                "INFO  jepsen.util - 1\t:ok\t:read\t3",
                "line 1: process 1 returned from an operation that it had not called",
            ),
            (
                "INFO  jepsen.util - 1\t:did\t:read\t3",
                "line 1: the type `:did` is not one of :invoke, :ok, :fail and :info",
            ),
            ("INFO  jepsen.util - 1\t:invoke\t:cas\t[1", "line 1: `[1` is not a value"),
            (
                "hello\nworld",
                "line 2: no line has an event, such as `INFO  jepsen.util - 0 :invoke :read nil`: \
                 this is not such a log",
            ),
        ] {
            assert_eq!(shown(log).unwrap_err(), message);
        }
    }
}
