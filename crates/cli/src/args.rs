//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::evidence::args::{CompareArgs, CsmArgs, SloArgs};
use crate::file::model::MAX_WORKERS;
use crate::file::{self, FlowError, FlowFile, size};
use crate::history::args::HistoryArgs;
use crate::slab::args::SlabArgs;

/// What `millstream --help` says after the options.
const EXIT_STATUS: &str = "\
Exit status:
  0  every unit was retired
  1  some units were dead-lettered: their number and file are printed
  2  the flow file or the arguments are wrong
  3  the run was interrupted
  4  the report, dead letters or what a stage gathers could not be written";

/// What `millstream plan --help` says of flow files: one with every key in it, which a test reads.
const FLOW_FILE: &str = concat!("A flow file, with every key there is:\n\n", include_str!("file/reference.toml"));

/// Runs staged flows over files, URLs and records.
///
/// A flow file (TOML) names a source of units and the stages they pass through. Each stage's queue acquires what a unit needs
/// (tokens, a slot at a host, bytes of memory) before a thread is spent on it, so nothing runs out and nothing is held up.
#[derive(Debug, Parser)]
#[command(name = "millstream", version, max_term_width = 100, after_help = EXIT_STATUS, propagate_version = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a flow to the end of its source.
    ///
    /// Progress goes to standard error, the report's table to standard output. `millstream plan --help` shows how a flow file is
    /// written.
    Run(RunArgs),
    /// Check a flow and show its graph, bounds, needs and largest memory, without running it.
    ///
    /// Nothing is run and nothing is written. A flow that could deadlock, or whose file has a slip in it, is refused with the
    /// place, the reason and what to do, and exit status 2.
    #[command(after_long_help = FLOW_FILE)]
    Plan(PlanArgs),
    /// Look into a running flow.
    Status(StatusArgs),
    /// Change a running flow: its caps, tokens, rates and workers.
    Set(SetArgs),
    /// Decide whether an objective holds: 99 % of runs succeed, or take less than 50 ms. The exit status is the verdict.
    Slo(Box<SloArgs>),
    /// Decide which of two commands, or two files of numbers, is smaller. The exit status is the verdict.
    Compare(CompareArgs),
    /// The functions beneath: stopping rules, bounds and intervals whose errors are on the safe side.
    Csm(CsmArgs),
    /// Check recorded histories of concurrent operations.
    History(HistoryArgs),
    /// Make slabs of shared memory that survive `kill -9`, and look into them.
    Slab(SlabArgs),
    /// Run the daemon that tells every process when each processor last passed a barrier of its own accord.
    Barrierd(millstream_barrierd::args::Args),
    /// Tell what this machine and its kernel offer: fences, clocks, system calls, cores that are left alone.
    Doctor,
}

/// A flow file and what is filled into it.
#[derive(Debug, Args)]
pub struct FlowArgs {
    /// The flow file (TOML).
    pub flow: PathBuf,
    /// Set a parameter of the flow, in place of its default under `[params]`.
    #[arg(short, long = "param", value_name = "KEY=VALUE", value_parser = key_value)]
    pub param: Vec<(String, String)>,
    /// Cap the units in flight, in place of the flow's `inflight`.
    #[arg(long, value_name = "N", value_parser = units)]
    pub inflight: Option<u64>,
    /// Cap the payload bytes in flight, in place of the flow's `memory`: 64MiB, 1GB, …
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub memory: Option<u64>,
    /// Threads that serve the stages, in place of the flow's `workers` [default: the machine's cores].
    #[arg(long, value_name = "N", value_parser = workers)]
    pub workers: Option<usize>,
}

impl FlowArgs {
    /// Reads the flow file, with what the command line puts in place of its values.
    ///
    /// # Errors
    /// The file cannot be read or is not a flow.
    pub fn load(&self) -> Result<FlowFile, FlowError> {
        let mut flow = file::load(&self.flow, &self.param)?;
        flow.inflight = self.inflight.unwrap_or(flow.inflight);
        flow.memory = self.memory.or(flow.memory);
        flow.workers = self.workers.or(flow.workers);
        Ok(flow)
    }
}

/// `millstream run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  millstream run flows/archive.toml photos -p out=/backup
  find . -name '*.log' | millstream run compress.toml --inflight 16
  millstream run flows/fetch.toml urls.txt --report report.html

While it runs, `millstream status RUN` and `millstream set RUN KEY=VALUE` reach it by the name it prints.
Interrupt once (^C): no more units are admitted, those in flight are finished. Twice: they are abandoned.

Exit status:
  0  every unit was retired
  1  some units were dead-lettered: their number and file are printed
  2  the flow file or the arguments are wrong
  3  the run was interrupted
  4  the report, dead letters or what a stage gathers could not be written")]
pub struct RunArgs {
    /// The flow.
    #[command(flatten)]
    pub flow: FlowArgs,
    /// What the flow works on: `{input}` in the flow file, walked or taken as units as its `[source]` says.
    pub input: Vec<OsString>,
    /// Write the report to a file, as JSON or HTML by its ending.
    #[arg(long, value_name = "FILE", value_parser = report)]
    pub report: Option<PathBuf>,
    /// Write dead letters to this file, as JSON lines [default: beside the report, or FLOW.dead-letters.jsonl here].
    #[arg(long, value_name = "FILE")]
    pub dead_letters: Option<PathBuf>,
    /// Show nothing but errors.
    #[arg(short, long)]
    pub quiet: bool,
    /// Where to put the control socket [default: a fresh path in the run-time folder, which is printed].
    #[arg(long, value_name = "PATH")]
    pub control: Option<PathBuf>,
}

/// `millstream plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// The flow.
    #[command(flatten)]
    pub flow: FlowArgs,
}

/// `millstream status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// The run: its name, or the control socket's path, as `millstream run` printed it [default: the only one; of several, a
    /// list].
    pub run: Option<PathBuf>,
    /// Print the snapshot as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `millstream set`.
#[derive(Debug, Args)]
#[command(after_help = "\
Settings:
  inflight=N               units in flight
  memory=SIZE              payload bytes in flight, or none
  resource.NAME=N          tokens, per key when keyed
  resource.NAME=N/s        the rate of a rate
  stage.NAME.workers=N     most workers of a stage, or N..M

Example:
  millstream set archive-4711 inflight=64 stage.zstd.workers=1")]
pub struct SetArgs {
    /// The run: its name, or the control socket's path, as `millstream run` printed it.
    pub run: PathBuf,
    /// What to change; all of it is checked before any of it is done.
    #[arg(required = true, value_name = "KEY=VALUE", value_parser = key_value)]
    pub settings: Vec<(String, String)>,
}

fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}

fn units(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("a cap of zero units would let nothing in".to_owned()),
        Ok(count) => Ok(count),
        Err(_) => Err("expected a number of units".to_owned()),
    }
}

fn memory(text: &str) -> Result<u64, String> {
    match size::parse(text)? {
        0 => Err("a cap of zero bytes would let nothing in".to_owned()),
        bytes => Ok(bytes),
    }
}

fn workers(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("zero workers would do nothing".to_owned()),
        Ok(count) if count <= MAX_WORKERS => Ok(count),
        Ok(_) => Err(format!("at most {MAX_WORKERS} workers")),
        Err(_) => Err("expected a number of threads".to_owned()),
    }
}

fn report(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("json" | "html") => Ok(path),
        _ => Err("a report's name ends in .json or .html".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::{Cli, Command};

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn run_takes_inputs_and_parameters_in_any_order() {
        let cli =
            Cli::try_parse_from(["millstream", "run", "f.toml", "-p", "out=a=b", "in", "--memory", "32MiB"]).unwrap();
        let Command::Run(run) = cli.command else { panic!("not run") };
        assert_eq!(run.flow.param, [("out".to_owned(), "a=b".to_owned())]);
        assert_eq!(run.input, ["in"]);
        assert_eq!(run.flow.memory, Some(32 << 20));
    }

    #[test]
    fn senseless_values_are_refused() {
        for wrong in [
            &["run", "f.toml", "-p", "out"][..],
            &["run", "f.toml", "--inflight", "0"],
            &["run", "f.toml", "--memory", "0"],
            &["run", "f.toml", "--memory", "lots"],
            &["run", "f.toml", "--workers", "0"],
            &["run", "f.toml", "--report", "report.pdf"],
            &["set", "socket"],
            &["plan"],
        ] {
            let line = std::iter::once(&"millstream").chain(wrong);
            assert!(Cli::try_parse_from(line).is_err(), "{wrong:?}");
        }
    }
}
