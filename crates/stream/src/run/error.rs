//! The errors of a run.

use std::io;
use std::path::PathBuf;

/// The reason why a run ended early. The values that came out before are right.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A buffer is full, and no order of work empties it.
    #[error(
        "the buffer in front of `{label}` is full with {values} values, and the other inputs are not that far; expected a \
         larger buffer, or a spill, which grows on disk"
    )]
    BufferFull {
        /// The join that reads from it.
        label: String,
        /// The values that it holds.
        values: u64,
    },
    /// A source could not be read.
    #[error("cannot read `{label}`: {error}")]
    Source {
        /// The source.
        label: String,
        /// Its error.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There are more groups than were allowed.
    #[error(
        "`{label}` has more than {limit} keys, the most that it may hold at once; expected a higher limit or a coarser key"
    )]
    TooManyKeys {
        /// The fold by key.
        label: String,
        /// The most keys.
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
    #[error("cannot spill values of `{label}` to {}: {error}; what they were spilled for is incomplete", folder.display())]
    Spill {
        /// The node whose values are spilled.
        label: String,
        /// The folder.
        folder: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// No actor can fire: a mistake of the checker.
    #[error("no actor of a checked graph can fire, at the inputs of `{label}`; this is a mistake of this library")]
    Stuck {
        /// An actor that waits.
        label: String,
    },
}
