//! Operating-system errors as failures that say what was tried, on which file, and whether trying again can help.

use std::io;
use std::path::Path;

use millstream_flow::Failure;

/// `cannot DOING PATH: REASON`, permanent when the reason stays the same however often it is tried.
pub(crate) fn io_failure(doing: &str, path: &Path, error: &io::Error) -> Failure {
    let failure = Failure::msg(format!("cannot {doing} {}: {error}", path.display()));
    if is_lasting(error) { failure.to_permanent() } else { failure }
}

/// Whether the error is about the file's name or rights, not about the moment.
fn is_lasting(error: &io::Error) -> bool {
    use io::ErrorKind::{
        AlreadyExists, InvalidFilename, InvalidInput, IsADirectory, NotADirectory, NotFound, PermissionDenied,
        ReadOnlyFilesystem, Unsupported,
    };
    matches!(
        error.kind(),
        AlreadyExists
            | InvalidFilename
            | InvalidInput
            | IsADirectory
            | NotADirectory
            | NotFound
            | PermissionDenied
            | ReadOnlyFilesystem
            | Unsupported
    )
}
