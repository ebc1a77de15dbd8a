//! The command; its code is in the library beside it.

#![warn(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

fn main() -> ExitCode {
    millstream_cli::main()
}
