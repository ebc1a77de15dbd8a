//! The command; what it does is in the library beside it.

#![warn(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use millstream_cli::args::{self, Command};
use millstream_cli::doctor::doctor;
use millstream_cli::evidence::{compare::compare, functions::csm, slo::slo};
use millstream_cli::history::history;
use millstream_cli::plan::plan;
use millstream_cli::retry::retry;
use millstream_cli::run::run;
use millstream_cli::screen::out;
use millstream_cli::signals;
use millstream_cli::slab::slab;
use millstream_cli::steer::client;
use millstream_cli::supervise::supervise;

fn main() -> ExitCode {
    out::show_panics();
    if let Err(error) = signals::outlive_file_size_limit() {
        out::complain(format_args!("a file that grows beyond the limit on file sizes will end this command: {error}"));
    }
    let command = match args::parse() {
        Ok(cli) => cli.command,
        Err(status) => return status,
    };
    match command {
        Command::Run(args) => run(&args),
        Command::Plan(args) => plan(&args),
        Command::Retry(args) => retry(&args),
        Command::Status(args) => client::status(args.run.as_deref(), args.json),
        Command::Set(args) => client::set(&args.run, &args.settings),
        Command::Slo(args) => slo(&args),
        Command::Compare(args) => compare(&args),
        Command::Csm(args) => csm(&args),
        Command::History(args) => history(&args),
        Command::Slab(args) => slab(&args),
        Command::Barrierd(args) => millstream_barrierd::run(&args),
        Command::Doctor => doctor(),
        Command::Supervise { mark } => supervise(&mark),
    }
}
