//! The code that the commands of `millstream` share. The commands for flows and for instruments use this crate, which
//! depends on neither of them.
//!
//! | module | contents |
//! | --- | --- |
//! | [`screen`] | all output to standard output and error, as text that fits a terminal and cannot control it |
//! | [`program`] | programs that a command starts, and that are ended with the command even if it is killed |
//! | [`signals`] | the signals that ask a command to end |
//! | [`size`], [`time`] | values as people write them: `64MiB`, `250ms` |
//! | [`hex`] | bytes in hexadecimal |
//! | [`temporary`], [`writable`] | names of temporary files; checks whether a file can be written |

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod hex;
pub mod program;
pub mod screen;
pub mod signals;
pub mod size;
pub mod temporary;
pub mod time;
pub mod writable;
