//! The `millstream` command. [`main`] is the program; all else is private, and `fuzz` is compiled only for fuzzing and
//! tests.
//!
//! Flow files, the sources of units and the ops are in [`millstream_runner`], and the instruments in
//! `millstream_instruments`. From the command line to the last report line:
//!
//! - `args` and `families`: the command line and its help;
//! - `plan`: `millstream plan`;
//! - `run`: `millstream run`, with its `screen`, its `dead_letters` and their `causes`;
//! - `each`: `millstream each`, a command line as the text of a flow file;
//! - `retry`: `millstream retry`;
//! - `cases`: `millstream test`;
//! - `whatif`: `millstream whatif`, on the trace of a run;
//! - `page`: `millstream page`, the page of a run from its trace, its events or its report;
//! - `steer`: the control socket, `millstream status` and `millstream set`;
//! - `serve`: the page of a live run, over HTTP;
//! - `metrics`: the metrics of a run, in a file, pushed to a collector, and over HTTP;
//! - `top`: `millstream top`;
//! - `explain`: `millstream explain`;
//! - `closed_streams`: standard streams that are closed;
//! - `filled`: values of the flow's non-exhaustive structs.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod cases;
mod causes;
mod closed_streams;
mod dead_letters;
mod each;
mod explain;
mod families;
mod filled;
#[cfg(any(fuzzing, test))]
pub mod fuzz;
mod init;
mod metrics;
mod page;
mod plan;
mod retry;
mod run;
mod screen;
mod serve;
mod shell_word;
mod steer;
mod top;
mod whatif;

use std::process::ExitCode;

use millstream_command::program::supervise::supervise;
use millstream_command::screen::out;
use millstream_command::signals;

use self::args::Command;

/// Runs the command line; returns the exit status of the command.
pub fn main() -> ExitCode {
    out::show_panics();
    if let Err(error) = signals::outlive_file_size_limit() {
        out::complain(format_args!("a file that grows beyond the limit on file sizes will end this command: {error}"));
    }
    let command = match args::parse() {
        Ok(cli) => cli.command,
        Err(status) => return status,
    };
    match command {
        Command::Run(args) => run::run(&args),
        Command::Plan(args) => plan::plan(&args),
        Command::Each(args) => each::each(&args),
        Command::Init(args) => init::init(&args),
        Command::Test(args) => cases::test(&args),
        Command::Trial(args) => cases::run_case(&args),
        Command::StandIn(args) => cases::stand_in(&args),
        Command::Retry(args) => retry::retry(&args),
        Command::Status(args) => steer::client::status(args.run.as_deref(), args.json),
        Command::Top(args) => top::top(args.run.as_deref()),
        Command::Explain(args) => steer::client::explain(&args.run, &args.what, args.json),
        Command::Fibers(args) => steer::client::fibers(&args.run, args.dump, args.json),
        Command::Set(args) => steer::client::set(&args.run, &args.settings),
        Command::Whatif(args) => whatif::what_if(&args),
        Command::Page(args) => page::page(&args),
        Command::Instrument(instrument) => instrument.run(),
        Command::Supervise { mark } => supervise(&mark),
    }
}
