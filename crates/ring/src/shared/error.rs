//! The errors of attaching to a ring.

use std::io;

use thiserror::Error;

/// The reason why a process could not attach to a shared ring.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum AttachError {
    /// Another process, or another handle in this process, has the role.
    #[error("the role is taken: another {0} is attached to this ring")]
    Taken(&'static str),
    /// The file is a ring of another kind.
    #[error("the file holds a ring of {found}, expected one of {expected}")]
    Mismatch {
        /// The ring found in the file.
        found: String,
        /// The ring that the caller asked for.
        expected: String,
    },
    /// The file has contents, but they are not a complete ring of this version. The file is left unchanged.
    #[error(
        "the file is not a ring of layout version 2: expected {expected_bytes} bytes that begin with \"MSTRING2\", \
         found {found_bytes} that begin with \"{beginning}\"; use an empty file"
    )]
    NotARing {
        /// The length of the ring that the caller asked for.
        expected_bytes: u64,
        /// The length of the file.
        found_bytes: u64,
        /// The first bytes of the file, at most 8, escaped.
        beginning: String,
    },
    /// The ring would exceed the largest memory that a process can address.
    #[error("a ring of {slots} slots of {event_bytes} bytes exceeds the largest possible memory; take fewer slots")]
    TooLarge {
        /// The number of slots that the caller asked for.
        slots: usize,
        /// The size of each slot in bytes.
        event_bytes: usize,
    },
    /// The operating system refused.
    #[error("{what}: {source}")]
    System {
        /// The operation that failed.
        what: String,
        /// The system's error.
        source: io::Error,
    },
}

impl AttachError {
    /// Makes the error of a refused operation, for `map_err`.
    pub(super) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        |source| AttachError::System { what: what.into(), source }
    }
}
