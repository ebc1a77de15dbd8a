//! Errors of files, with their lines.

use std::io;

use thiserror::Error;

use crate::builder::Contradiction;
use crate::spec::Misuse;

/// A name that no format has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no format `{0}`; there are json, jepsen, jepsen-independent, etcd")]
pub struct UnknownFormat(pub String);

/// A file that is not a history.
#[derive(Debug, Error)]
#[error("line {line}: {problem}")]
#[non_exhaustive]
pub struct FormatError {
    /// The line, from 1.
    pub line: u64,
    /// The problem of that line.
    #[source]
    pub problem: Problem,
}

/// The problem of a line.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Problem {
    /// The line cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The line violates the format.
    #[error("{0}")]
    Syntax(String),
    /// The operation contradicts itself or others.
    #[error(transparent)]
    Contradiction(#[from] Contradiction),
    /// The process called again before its operation returned.
    #[error(
        "process {process} called an operation while the one of line {earlier} had not returned; a process that gives \
         up waiting must go on under another number"
    )]
    TwoAtOnce {
        /// The process.
        process: u32,
        /// The line of its first operation's call.
        earlier: u64,
    },
    /// An operation returned that was never called.
    #[error("process {process} returned from an operation that it had not called")]
    ReturnWithoutCall {
        /// The process.
        process: u32,
    },
    /// A process returned from another operation than it had called.
    #[error("process {process} returned from `{returned}`, but had called `{called}` on line {earlier}")]
    ReturnFromAnother {
        /// The process.
        process: u32,
        /// The operation from which it returned.
        returned: String,
        /// The operation that it had called.
        called: String,
        /// The line of that call.
        earlier: u64,
    },
    /// The specification has no such operation.
    #[error(transparent)]
    Misuse(#[from] Misuse),
}

impl FormatError {
    /// The same error in a text that has this many lines and operations before it.
    pub(super) fn after(self, lines: u64, operations: usize) -> Self {
        let problem = match self.problem {
            Problem::Contradiction(contradiction) => Problem::Contradiction(contradiction.after(operations)),
            other => other,
        };
        problem.at(lines + self.line)
    }
}

impl Problem {
    pub(super) fn at(self, line: u64) -> FormatError {
        FormatError { line, problem: self }
    }
}
