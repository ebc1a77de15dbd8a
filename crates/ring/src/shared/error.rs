//! Why a process has no place at a ring.

use std::io;

use thiserror::Error;

/// Why a process could not take its place at a shared ring.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AttachError {
    /// Another process, or another handle of this one, has the role.
    #[error("the role is taken: another {0} is attached to this ring")]
    Taken(&'static str),
    /// The file is a ring of another kind.
    #[error("the file holds a ring of {found}, expected was one of {expected}")]
    Mismatch {
        /// What it is.
        found: String,
        /// What was asked for.
        expected: String,
    },
    /// The file holds something, but not a ring of this version, or not a whole one. It is left as it is.
    #[error(
        "the file is not a ring of layout version 2: expected were {expected_bytes} bytes that begin with \"MSTRING2\", \
         found were {found_bytes} that begin with \"{beginning}\"; use an empty file"
    )]
    NotARing {
        /// The length of the ring that was asked for.
        expected_bytes: u64,
        /// The length of the file.
        found_bytes: u64,
        /// The first bytes of the file, at most 8, escaped.
        beginning: String,
    },
    /// The slots have more bytes than memory can have.
    #[error("a ring of {slots} slots of {event_bytes} bytes is larger than memory can be; take fewer slots")]
    TooLarge {
        /// How many were asked for.
        slots: usize,
        /// The bytes of each.
        event_bytes: usize,
    },
    /// The operating system refused.
    #[error("{what}: {source}")]
    System {
        /// What was asked of it.
        what: String,
        /// What it said.
        source: io::Error,
    },
}

impl AttachError {
    /// For `map_err`: the system refused to do `what`.
    pub(super) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        |source| AttachError::System { what: what.into(), source }
    }
}
