//! The daemon; what it does is in the library beside it.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    millstream_barrierd::run(&millstream_barrierd::args::Args::parse())
}
