//! Errors in files, with line numbers.

use std::io;

use thiserror::Error;

use crate::builder::Contradiction;
use crate::spec::Misuse;

/// No format has the given name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no format `{0}`; there are json, jepsen, jepsen-independent, etcd")]
pub struct UnknownFormat(pub String);

/// A file that could not be read as a history.
#[derive(Debug, Error)]
#[error("line {line}: {problem}")]
#[non_exhaustive]
pub struct FormatError {
    /// The line, from 1.
    pub line: u64,
    /// The problem in this line.
    #[source]
    pub problem: Problem,
}

/// The problem in a line.
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
    /// The process called an operation before its previous one returned.
    #[error(
        "process {process} called an operation while the one of line {earlier} had not returned; a process that gives \
         up waiting must go on under another number"
    )]
    TwoAtOnce {
        /// The process.
        process: u32,
        /// The line of the first operation's call.
        earlier: u64,
    },
    /// A process returned from an operation that it had not called.
    #[error("process {process} returned from an operation that it had not called")]
    ReturnWithoutCall {
        /// The process.
        process: u32,
    },
    /// A process returned from an operation other than the one that it had called.
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
    /// The same error, for a block that follows `lines` lines with `operations` operations.
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
