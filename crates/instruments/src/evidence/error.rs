//! Errors that leave a question without an answer, and their exit statuses.

use std::io;
use std::path::PathBuf;

use millstream_command::screen::shown;
use millstream_command::writable::NotWritable;

/// The claim holds, or the first of the compared commands or files is smaller.
pub(crate) const HOLDS: u8 = 0;
/// The claim fails to hold.
pub(crate) const FAILS: u8 = 1;
/// The arguments are wrong; nothing was observed.
pub(crate) const USAGE: u8 = 2;
/// The data ended, or a limit was reached, before there was enough evidence.
pub(crate) const UNDECIDED: u8 = 3;
/// The data are not outcomes or numbers, or something could not be run, read or written.
pub(crate) const INVALID: u8 = 4;

/// The reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// The arguments contradict each other.
    #[error("{0}")]
    Usage(String),
    /// A question that `millstream_csm` cannot answer.
    #[error("{0}")]
    Question(#[source] millstream_csm::Error),
    /// An output file cannot be written.
    #[error(transparent)]
    Place(#[from] NotWritable),
    /// The state file belongs to another question, or is not a state file.
    #[error("--state {}: {problem}; {help}", shown::path(path))]
    State {
        /// The file.
        path: PathBuf,
        /// The problem.
        problem: String,
        /// The remedy.
        help: &'static str,
    },
    /// The program cannot be found or started at all.
    #[error("`{name}` cannot be run: {source}; check its name and that it may be executed")]
    NoProgram {
        /// The program.
        name: String,
        /// The error of the system.
        source: io::Error,
    },
    /// A line does not have the expected form.
    #[error("{place}, line {line}: {problem}")]
    Line {
        /// The file.
        place: String,
        /// The line, from 1.
        line: u64,
        /// The problem: the text that was expected, and the text that was found.
        problem: String,
    },
    /// The data as a whole cannot be used.
    #[error("{place}: {problem}")]
    Data {
        /// The file.
        place: String,
        /// The problem: the text that was expected, and the text that was found.
        problem: String,
    },
    /// The values are outside the range that the calculation allows.
    #[error("{place}: {source}")]
    Value {
        /// The file or the program.
        place: String,
        /// The violated condition.
        source: millstream_csm::Error,
    },
    /// The system refused an operation after the first observation.
    #[error("{what}: {source}")]
    System {
        /// The action that failed.
        what: String,
        /// The error of the system.
        source: io::Error,
    },
}

impl EvidenceError {
    /// Returns the exit status.
    pub fn status(&self) -> u8 {
        match self {
            Self::Usage(_) | Self::Question(_) | Self::Place(_) | Self::State { .. } | Self::NoProgram { .. } => USAGE,
            Self::Line { .. } | Self::Data { .. } | Self::Value { .. } | Self::System { .. } => INVALID,
        }
    }

    /// Returns an error for arguments that contradict each other.
    pub(super) fn usage(problem: impl Into<String>) -> Self {
        Self::Usage(problem.into())
    }

    /// Returns a function for `map_err`, which says that the system refused `what`.
    pub(super) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }
}
