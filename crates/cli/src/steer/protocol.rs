//! Requests and answers, and a reader of lines with a limit on their length.

use std::io::{self, BufRead, Read};

use millstream_flow::{Fibers, Snapshot};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::facts::Facts;
use crate::explain::Explained;

/// The maximum length of a request, including the newline.
pub(crate) const REQUEST_BYTES: usize = 64 * 1024;
/// The maximum length of an answer that a client reads. Even the snapshot of a flow with very many stages is
/// shorter.
pub(crate) const ANSWER_BYTES: u64 = 16 * 1024 * 1024;

/// The names of the requests.
pub(crate) const REQUESTS: [&str; 8] = ["status", "watch", "explain", "fibers", "set", "retry", "drain", "trace"];

/// The request of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Request {
    /// A snapshot of the flow.
    Status,
    /// A snapshot of the flow, and the facts that are not part of the flow.
    Watch {
        /// The maximum number of keys for each resource.
        keys: usize,
    },
    /// The stage of a unit and the cause of its wait, or the holders of a resource.
    Explain {
        /// A unit's number or text, a resource's name, or a key.
        what: String,
    },
    /// The fibers of the run, grouped by the calls in which they wait.
    Fibers {
        /// Whether to include the backtraces of waiting fibers.
        #[serde(default, skip_serializing_if = "is_false")]
        backtraces: bool,
    },
    /// Changes these settings, either all or none.
    Set {
        /// Each setting is `key=value`.
        settings: Vec<String>,
    },
    /// Runs the units of all dead letters again.
    Retry,
    /// Closes admission. The units in flight are finished.
    Drain,
    /// A part of a trace of the newest units. A run begins to record these units at the first request.
    Trace {
        /// The number of a trace, to request another part of that trace; `None` for a new trace.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        number: Option<u64>,
        /// The offset of the part's first byte.
        #[serde(default)]
        from: u64,
    },
}

/// A part of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TracePart {
    /// The number of the trace.
    pub number: u64,
    /// The total number of the trace's bytes.
    pub total: u64,
    /// The bytes of this part, in base64.
    pub bytes: String,
}

/// The answer of the run. It has only the members that belong to the request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// Whether the request was executed.
    pub ok: bool,
    /// For `status` and `watch`: the current state of the flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Box<Snapshot>>,
    /// For `watch`: the facts that are not part of the flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Box<Facts>>,
    /// For `explain`: the explanation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explained: Option<Box<Explained>>,
    /// For `fibers`: all fibers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fibers: Option<Box<Fibers>>,
    /// For `trace`: a part of the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TracePart>,
    /// For `set`: the new and the old value of each setting. For `retry` and `drain`: a description of the action.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Whether the run does not know the request.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unknown: bool,
    /// The reason why the request was not executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// If the request named an unknown setting: the existing settings, with their current values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settable: Vec<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl Answer {
    /// A refusal.
    pub(crate) fn error(message: impl Into<String>) -> Self {
        Self { error: Some(message.into()), ..Self::default() }
    }
}

/// The name of a well-formed request that this version does not know.
pub(crate) fn unknown_request(line: &[u8]) -> Option<String> {
    /// The name of a request; all other members are ignored.
    #[derive(Deserialize)]
    struct Named {
        r#do: String,
    }
    let name = serde_json::from_slice::<Named>(line).ok()?.r#do;
    (!REQUESTS.contains(&name.as_str())).then_some(name)
}

/// Reads one line of at most `most` bytes as JSON; `None` at the end of the stream.
///
/// # Errors
/// The errors of the stream, `UnexpectedEof` for an incomplete line, and `InvalidData` for a line that is too long or
/// is not the expected JSON.
pub(crate) fn read_line<T: DeserializeOwned>(stream: &mut impl BufRead, most: u64) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    if stream.take(most).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    match line.last() {
        Some(b'\n') => read(&line).map(Some),
        _ if line.len() as u64 == most => Err(wrong(format!("a line is longer than {most} bytes"))),
        _ => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the stream ended within a line")),
    }
}

/// Parses a line as JSON.
///
/// # Errors
/// `InvalidData` if the line is not the expected JSON.
pub(crate) fn read<T: DeserializeOwned>(line: &[u8]) -> io::Result<T> {
    serde_json::from_slice(line).map_err(|error| wrong(format!("not understood: {error}")))
}

fn wrong(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// The value as a line of JSON.
///
/// # Panics
/// The value contains a map whose keys are not strings.
pub(crate) fn line(value: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).expect("requests and answers have only string keys and plain values");
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(bytes: &[u8]) -> io::Result<Option<Request>> {
        read_line(&mut &bytes[..], 64)
    }

    #[test]
    fn requests_are_lines() {
        assert_eq!(first(b"{\"do\":\"status\"}\n").unwrap(), Some(Request::Status));
        let set = Request::Set { settings: vec!["inflight=64".into()] };
        let line = line(&set);
        assert_eq!(line, b"{\"do\":\"set\",\"settings\":[\"inflight=64\"]}\n");
        assert_eq!(first(&line).unwrap(), Some(set));
        assert_eq!(first(b"").unwrap(), None);
    }

    #[test]
    fn a_line_that_is_not_a_request_is_an_error_and_never_read_for_ever() {
        assert_eq!(first(b"{\"do\":\"status\"}").unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        for bytes in [&b"\n"[..], b"{}\n", b"\xff\n", b"{\"do\":\"quit\"}\n", &[b' '; 100]] {
            assert_eq!(first(bytes).unwrap_err().kind(), io::ErrorKind::InvalidData, "{bytes:?}");
        }
        let error = first(&[b' '; 100]).unwrap_err().to_string();
        assert!(error.contains("longer than 64"), "{error}");
    }

    #[test]
    fn a_request_of_another_version_is_recognised_by_its_name() {
        assert_eq!(unknown_request(b"{\"do\":\"quit\",\"at\":7}\n").as_deref(), Some("quit"));
        for known in [&b"{\"do\":\"set\"}"[..], b"{\"do\":7}", b"{}", b"[]", b"quit"] {
            assert_eq!(unknown_request(known), None);
        }
    }

    #[test]
    fn absent_members_are_not_written() {
        assert_eq!(line(&Answer::error("no")), b"{\"ok\":false,\"error\":\"no\"}\n");
    }
}
