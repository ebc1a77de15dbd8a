//! The stand-in for a program: another command, which gets the program's words as its arguments.

use std::ffi::{OsStr, OsString};
use std::process::{Command, Stdio};

/// The command line of a stand-in.
#[derive(Debug)]
pub struct StandInProgram {
    path: OsString,
    arguments: Vec<OsString>,
}

impl StandInProgram {
    /// A stand-in that is started as `path`, with these arguments before the words of the replaced program.
    pub fn new(path: impl Into<OsString>, arguments: Vec<OsString>) -> Self {
        Self { path: path.into(), arguments }
    }

    /// The command that replaces the program of this name, or a script if there is no name. The caller adds the
    /// arguments.
    pub fn command(&self, program: Option<&OsStr>) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).args(program).stdin(Stdio::null());
        command
    }
}
