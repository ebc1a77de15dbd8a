//! The `millstream` command. [`main`] is the program; all else is private, and `fuzz` is compiled only for fuzzing and
//! tests.
//!
//! From the command line to the last report line:
//!
//! - `args` and `families`: the command line and its help; the instruments are in `millstream_instruments`;
//! - `file`: flow files, from text to a checked model;
//! - `source`, `record` and `payload`: the sources of units, the units, and their bytes;
//! - `ops`: the operations that stages perform on them;
//! - `wire`: the model as an engine flow;
//! - `plan`: `millstream plan`;
//! - `run`: `millstream run`, with its `screen`, its `dead_letters` and their `causes`;
//! - `each`: `millstream each`, a command line as the text of a flow file;
//! - `retry`: `millstream retry`;
//! - `cases`: `millstream test`;
//! - `whatif`: `millstream whatif`, on the trace of a run;
//! - `page`: `millstream page`, the page of a run from its trace, its events or its report;
//! - `steer`: the control socket, `millstream status` and `millstream set`;
//! - `metrics`: the metrics of a run, in a file, pushed to a collector, and over HTTP;
//! - `top`: `millstream top`;
//! - `explain`: `millstream explain`;
//! - `descriptors`: the limit on open files, as a resource; `closed_streams`: standard streams that are closed;
//! - `leftovers`: the temporary files of a killed run;
//! - `regular` and `web_url`: files and servers whose names come from data;
//! - `json_bytes`: paths as JSON strings, without loss; `json_member`: the members of JSON objects;
//! - `filled`: values of the flow's non-exhaustive structs.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod args;
mod cases;
mod causes;
mod closed_streams;
mod dead_letters;
mod descriptors;
mod each;
mod explain;
mod families;
mod file;
mod filled;
#[cfg(any(fuzzing, test))]
pub mod fuzz;
mod group;
mod init;
mod json_bytes;
mod json_member;
mod leftovers;
mod machine;
mod metrics;
mod ops;
mod page;
mod payload;
mod plan;
mod printer;
mod record;
mod regular;
mod retry;
mod run;
mod screen;
mod serve;
mod shell_word;
mod source;
mod steer;
mod top;
mod web_url;
mod whatif;
mod wire;

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
