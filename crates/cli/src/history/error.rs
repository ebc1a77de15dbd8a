//! What keeps a verdict from being given, and the exit statuses.

use std::io;
use std::path::PathBuf;

use millstream_history::CheckError;
use millstream_history::format::{Format, FormatError};

use crate::screen::writable::NotWritable;

/// Linearizable.
pub(super) const HOLDS: u8 = 0;
/// Not linearizable.
pub(super) const FAILS: u8 = 1;
/// The arguments are wrong, or a file cannot be opened or written.
pub(super) const USAGE: u8 = 2;
/// A limit was reached.
pub(super) const UNKNOWN: u8 = 3;
/// The history is none, or none of the specification.
pub(super) const MALFORMED: u8 = 4;
/// No operation has returned.
pub(super) const NOTHING: u8 = 5;

/// Why there is no verdict.
#[derive(Debug, thiserror::Error)]
pub(super) enum HistoryError {
    #[error("{} cannot be read: {source}", file.display())]
    Open { file: PathBuf, source: io::Error },
    #[error("{}: its beginning looks like no format that is known; say which it is: --format {}", file.display(), formats())]
    UnknownFormat { file: PathBuf },
    #[error("{}: {source}", file.display())]
    Malformed { file: PathBuf, source: Box<FormatError> },
    #[error("{}: {source}, in {shown}", file.display())]
    Misuse { file: PathBuf, shown: String, source: Box<CheckError> },
    #[error("{} cannot be written: {source}", file.display())]
    Write { file: PathBuf, source: io::Error },
    #[error("{option} {}: the history itself is there, and would be overwritten; name another file", file.display())]
    Overwrites { option: &'static str, file: PathBuf },
    #[error("{}: both --html and --svg would be written there; name two files", file.display())]
    OneFileForTwo { file: PathBuf },
    #[error(transparent)]
    Place(#[from] NotWritable),
}

fn formats() -> String {
    Format::ALL.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ")
}

impl HistoryError {
    pub(super) fn status(&self) -> u8 {
        match self {
            HistoryError::UnknownFormat { .. } | HistoryError::Malformed { .. } | HistoryError::Misuse { .. } => {
                MALFORMED
            }
            HistoryError::Open { .. }
            | HistoryError::Write { .. }
            | HistoryError::Overwrites { .. }
            | HistoryError::OneFileForTwo { .. }
            | HistoryError::Place(_) => USAGE,
        }
    }
}
