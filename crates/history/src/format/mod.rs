//! Histories in files: JSON lines, Jepsen's EDN, and the text logs of Jepsen's etcd test that are part of porcupine.
//!
//! JSON lines have an operation per line:
//!
//! ```json
//! {"process":3,"op":"enqueue","in":17,"out":null,"call":1200,"return":1875}
//! ```
//!
//! | field | meaning |
//! | --- | --- |
//! | `process` | the calling process: a number; one operation at a time |
//! | `op` | the operation's name |
//! | `in`, `out` | input and output: null (or absent), booleans, integers, strings, lists |
//! | `call`, `return` | times in any unit; `return` null or absent: the operation has not returned |
//! | `key` | the object, in a history of several objects |
//! | `status` | `"ok"`; `"fail"`: certainly without effect; `"info"`: outcome unknown |
//!
//! Only an operation that has returned can have an `out` other than null or the status `"ok"`. Without `return`, both
//! are errors.
//!
//! A line `{"skew":52}` says that the clocks of the processes differ by at most 52, in the unit of the times. If an
//! operation returned less than 52 before another was called, either of the two may have come first. A recording has
//! such a line; if there are several, the largest number counts.
//!
//! The other formats have an event per line, and an event's time is its position. Files are read as a stream, and only
//! the history is stored. Several threads parse a long file of JSON lines in blocks, so an error in a pipe that stays
//! open may be reported a block or two late.

mod blocks;
mod edn;
mod error;
mod etcd;
mod events;
mod jepsen;
mod json;
mod lines;

use std::fmt;
use std::io::{BufRead, Cursor, Read};
use std::str::FromStr;

pub use error::{FormatError, Problem, UnknownFormat};
pub use json::write_json;

use self::jepsen::Keys;
use crate::history::History;
use crate::model::Model;

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// JSON lines: an object per operation.
    Json,
    /// Jepsen's `history.edn`.
    Jepsen,
    /// Jepsen's `history.edn` for independent objects, where each value is a plain vector `[key value]`.
    JepsenIndependent,
    /// The log of Jepsen's etcd test.
    Etcd,
}

impl Format {
    /// All formats.
    pub const ALL: &'static [Format] = &[Format::Json, Format::Jepsen, Format::JepsenIndependent, Format::Etcd];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Json => "json",
            Format::Jepsen => "jepsen",
            Format::JepsenIndependent => "jepsen-independent",
            Format::Etcd => "etcd",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let known = Format::ALL.iter().copied().find(|format| format.name() == name);
        known.ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

/// The byte-order mark that some editors write at the start of UTF-8 text.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// The format of a file that begins with these bytes, if the bytes show it.
///
/// ```
/// use millstream_history::format::{Format, guess};
///
/// assert_eq!(guess(b"{\"process\":0,"), Some(Format::Json));
/// assert_eq!(guess(b"[{:process 0, "), Some(Format::Jepsen));
/// assert_eq!(guess(b"INFO  jepsen.util - 0\t:invoke"), Some(Format::Etcd));
/// ```
pub fn guess(start: &[u8]) -> Option<Format> {
    let start = start.strip_prefix(BOM).unwrap_or(start).trim_ascii_start();
    match start.first()? {
        b'{' if start[1..].trim_ascii_start().starts_with(b"\"") => Some(Format::Json),
        b'{' | b'[' | b'(' | b'#' | b';' => Some(Format::Jepsen),
        _ => start.windows(11).any(|word| word == b"jepsen.util").then_some(Format::Etcd),
    }
}

/// Reads a history. If a model is given, an operation that the model does not have is an error at its line.
///
/// # Errors
/// If the file cannot be read, is malformed or truncated, or contradicts itself; the error names the line.
///
/// ```
/// use millstream_history::format::{Format, read};
///
/// let file = r#"{"process":3,"op":"enqueue","in":17,"call":1200,"return":1875}"#;
/// let history = read(file.as_bytes(), Format::Json, None)?;
/// assert_eq!(history.show(0).to_string(), "enqueue(17)");
///
/// let error = read(&b"{\"process\":3,\"op\":\"enqueue\",\"call\":12,\"return\":7}"[..], Format::Json, None).unwrap_err();
/// assert_eq!(error.to_string(), "line 1: the operation returned at 7, before it was called at 12");
/// # Ok::<(), millstream_history::format::FormatError>(())
/// ```
pub fn read(mut input: impl BufRead, format: Format, model: Option<&Model>) -> Result<History, FormatError> {
    let mut start = Vec::with_capacity(BOM.len());
    input.by_ref().take(BOM.len() as u64).read_to_end(&mut start).map_err(|error| Problem::Io(error).at(1))?;
    if start == BOM {
        start.clear();
    }
    let input = Cursor::new(start).chain(input);
    let kind = model.map(|model| model.kind);
    match format {
        Format::Json => json::read(input, kind),
        Format::Jepsen => jepsen::read(input, kind, Keys::Tagged),
        Format::JepsenIndependent => jepsen::read(input, kind, Keys::InPairs),
        Format::Etcd => etcd::read(input, kind),
    }
}
