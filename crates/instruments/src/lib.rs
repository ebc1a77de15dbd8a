//! The instruments of `millstream`: commands that measure and check, and run no flow.
//!
//! | module | commands |
//! | --- | --- |
//! | `stream`, `tee` | `stream`, `tee` |
//! | `evidence` | `slo`, `compare`, `csm` |
//! | `history` | `history` |
//! | `slab` | `slab` |
//! | `doctor` | `doctor` |
//! | `command` | all of them, and `barrierd`, as one [`Command`] |
//!
//! `crates/cli` reads the command line, and runs the command that it names.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod command;
mod doctor;
mod evidence;
mod history;
mod slab;
mod stream;
mod tee;

pub use self::command::Command;
pub use self::evidence::flow_report;
