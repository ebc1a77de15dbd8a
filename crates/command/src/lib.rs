//! The code that the commands of `millstream` share: flows and instruments use it, and it depends on neither.
//!
//! | module | holds |
//! | --- | --- |
//! | [`screen`] | the only way to standard output and error, and text that fits a terminal and cannot steer it |
//! | [`program`] | programs that a command starts, and that end with it even if it is killed |
//! | [`signals`] | the signals that ask a command to end |
//! | [`size`], [`time`] | values as people write them: `64MiB`, `250ms` |
//! | [`hex`] | bytes in hexadecimal |
//! | [`temporary`], [`writable`] | names of temporary files; whether a file can be written |

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod hex;
pub mod program;
pub mod screen;
pub mod signals;
pub mod size;
pub mod temporary;
pub mod time;
pub mod writable;
