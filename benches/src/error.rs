//! The error that stops a benchmark.

use std::fmt;
use std::io;
use std::path::Path;

/// A message for the person at the terminal: the operation, and the reason why it failed.
#[derive(Debug)]
pub struct Error(String);

impl Error {
    /// An error with this text.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// Reports that the engine has rejected a flow or a setting.
    pub fn refused(error: impl fmt::Display) -> Self {
        Self(format!("the engine refuses: {error}"))
    }

    /// Adds the file or folder that an I/O error concerns.
    pub fn at(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |error| Self(format!("{}: {error}", path.display()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}
