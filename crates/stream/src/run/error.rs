//! The errors of a run.

use std::io;
use std::path::PathBuf;

/// The reason why a run ended early. All values produced before are correct.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A buffer is full, and no order of execution empties it.
    #[error(
        "the buffer in front of `{label}` is full with {values} values, and the other inputs have not caught up; expected a \
         larger buffer, or a spill, which grows on disk"
    )]
    BufferFull {
        /// The join that reads from the buffer.
        label: String,
        /// The number of values in the buffer.
        values: u64,
    },
    /// A source could not be read.
    #[error("cannot read `{label}`: {error}")]
    Source {
        /// The source.
        label: String,
        /// The source's error.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There are more keys than the limit allows.
    #[error("`{label}` has more than {limit} keys, which is its limit; expected a higher limit or a coarser key")]
    TooManyKeys {
        /// The fold by key.
        label: String,
        /// The maximum number of keys.
        limit: usize,
    },
    /// A value could not be computed.
    #[error("`{label}`: {message}")]
    Value {
        /// The node.
        label: String,
        /// The reason.
        message: String,
    },
    /// A spilled value could not be written or read.
    #[error("cannot spill values of `{label}` to {}: {error}; the output is incomplete", folder.display())]
    Spill {
        /// The node whose values are spilled.
        label: String,
        /// The folder.
        folder: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// No actor can fire, which is a bug in the checker.
    #[error("no actor of a checked graph can fire, at the inputs of `{label}`; this is a bug in this library")]
    Stuck {
        /// A waiting actor.
        label: String,
    },
}
