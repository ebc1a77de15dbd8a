//! Requests and answers, and how a line of either is read without trusting its length.

use std::io::{self, BufRead, Read, Write};

use millstream_flow::Snapshot;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The longest request, its newline included.
pub const REQUEST_BYTES: u64 = 64 * 1024;
/// The longest answer a client reads: a snapshot of a flow with very many stages.
pub const ANSWER_BYTES: u64 = 64 * 1024 * 1024;

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// A snapshot of the flow.
    Status,
    /// A change of all these settings or of none.
    Set {
        /// Each `key=value`.
        settings: Vec<String>,
    },
}

/// What the run answers. Members that do not belong to the request are absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Whether the request was carried out.
    pub ok: bool,
    /// To `status`: the flow as it is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Box<Snapshot>>,
    /// To `set`: each setting as it is now and as it was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// After a setting that is unknown: what can be set, as it is now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settable: Vec<String>,
}

impl Answer {
    /// A refusal.
    pub fn error(message: impl Into<String>) -> Self {
        Self { error: Some(message.into()), ..Self::default() }
    }
}

/// Reads one line of at most `most` bytes as JSON; `None` at the end of the stream.
///
/// # Errors
/// Those of the stream; `InvalidData` for a line that is too long or is not what was expected.
pub fn read_line<T: DeserializeOwned>(stream: &mut impl BufRead, most: u64) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    if stream.take(most).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    let wrong = |message: String| io::Error::new(io::ErrorKind::InvalidData, message);
    if line.last() != Some(&b'\n') {
        return Err(wrong(if line.len() as u64 == most {
            format!("a line is longer than {most} bytes")
        } else {
            "the stream ended within a line".to_owned()
        }));
    }
    serde_json::from_slice(&line).map(Some).map_err(|error| wrong(format!("not understood: {error}")))
}

/// Writes one line of JSON.
///
/// # Errors
/// Those of the stream.
pub fn write_line(stream: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    stream.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> io::Result<Option<Request>> {
        read_line(&mut &bytes[..], 64)
    }

    #[test]
    fn requests_are_lines() {
        assert_eq!(read(b"{\"do\":\"status\"}\n").unwrap(), Some(Request::Status));
        let set = Request::Set { settings: vec!["inflight=64".into()] };
        let mut line = Vec::new();
        write_line(&mut line, &set).unwrap();
        assert_eq!(line, b"{\"do\":\"set\",\"settings\":[\"inflight=64\"]}\n");
        assert_eq!(read(&line).unwrap(), Some(set));
        assert_eq!(read(b"").unwrap(), None);
    }

    #[test]
    fn what_is_no_request_is_an_error_and_never_read_for_ever() {
        for bytes in [&b"{\"do\":\"status\"}"[..], b"\n", b"{}\n", b"\xff\n", b"{\"do\":\"quit\"}\n", &[b' '; 100]] {
            assert_eq!(read(bytes).unwrap_err().kind(), io::ErrorKind::InvalidData, "{bytes:?}");
        }
        let error = read(&[b' '; 100]).unwrap_err().to_string();
        assert!(error.contains("longer than 64"), "{error}");
    }

    #[test]
    fn absent_members_are_not_written() {
        let mut line = Vec::new();
        write_line(&mut line, &Answer::error("no")).unwrap();
        assert_eq!(line, b"{\"ok\":false,\"error\":\"no\"}\n");
    }
}
