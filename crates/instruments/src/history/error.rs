//! Errors that prevent a verdict, and the exit statuses.

use std::io;
use std::path::PathBuf;

use millstream_command::screen::shown;
use millstream_command::writable::NotWritable;
use millstream_history::CheckError;
use millstream_history::format::{Format, FormatError};

/// Linearizable.
pub(super) const HOLDS: u8 = 0;
/// Not linearizable.
pub(super) const FAILS: u8 = 1;
/// The arguments are wrong, or a file cannot be opened or written.
pub(super) const USAGE: u8 = 2;
/// A limit was reached.
pub(super) const UNKNOWN: u8 = 3;
/// The history is malformed, or has operations that the specification does not have.
pub(super) const MALFORMED: u8 = 4;
/// No operation has returned.
pub(super) const NOTHING: u8 = 5;

/// The reason why there is no verdict.
#[derive(Debug, thiserror::Error)]
pub(super) enum HistoryError {
    #[error("{} cannot be read: {source}", shown::path(file))]
    Open { file: PathBuf, source: io::Error },
    #[error("{}: no known format begins like this; name its format with --format {}", shown::path(file), formats())]
    UnknownFormat { file: PathBuf },
    #[error("{}: {source}", shown::path(file))]
    Malformed { file: PathBuf, source: Box<FormatError> },
    #[error("{}: {source}, in {shown}", shown::path(file))]
    Misuse { file: PathBuf, shown: String, source: Box<CheckError> },
    #[error("{} cannot be written: {source}", shown::path(file))]
    Write { file: PathBuf, source: io::Error },
    #[error(
        "{option} {}: this is the history itself, which would be overwritten; name another file",
        shown::path(file)
    )]
    Overwrites { option: &'static str, file: PathBuf },
    #[error("{}: both --html and --svg would be written there; name two files", shown::path(file))]
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
