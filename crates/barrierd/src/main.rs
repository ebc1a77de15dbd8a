//! The daemon's program; the library does the work.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    millstream_barrierd::run(&millstream_barrierd::args::Args::parse())
}
