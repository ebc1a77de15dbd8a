//! The command lines that take a flow file: run it, check it, create one, retry its dead letters.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use millstream_runner::file::{self, FlowError, FlowFile, HaltPolicy};

use super::values::{key_value, memory, units, workers};
use crate::init::Example;
use crate::serve::args::ServeArgs;

/// A flow file and the values that are filled into it.
#[derive(Debug, Args)]
pub(crate) struct FlowArgs {
    /// The flow file (TOML).
    pub flow: PathBuf,
    /// The text of a flow that is not in a file; `flow` is then its name in messages.
    #[arg(skip)]
    pub text: Option<String>,
    /// Set a parameter of the flow, in place of its default under `[params]`.
    #[arg(short, long = "param", value_name = "KEY=VALUE", value_parser = key_value)]
    pub param: Vec<(String, String)>,
    /// Cap the units in flight, in place of the flow's `inflight`.
    #[arg(long, value_name = "N", value_parser = units)]
    pub inflight: Option<u64>,
    /// Cap the bytes in flight, in place of the flow's `memory`: 64MiB, 1GB, …
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub memory: Option<u64>,
    /// Threads that serve the stages, in place of the flow's `workers` [default: the machine's cores].
    #[arg(long, value_name = "N", value_parser = workers)]
    pub workers: Option<usize>,
}

impl FlowArgs {
    /// Reads the flow file, with the values of the command line in place of the file's own.
    ///
    /// # Errors
    /// The file cannot be read or is not a flow.
    pub(crate) fn load(&self) -> Result<FlowFile, FlowError> {
        let mut flow = match &self.text {
            Some(text) => file::parse::parse(&self.flow, text, &self.param)?,
            None => file::load(&self.flow, &self.param)?,
        };
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
  millstream run --dry-run flows/archive.toml photos

While it runs, `millstream status RUN` and `millstream set RUN KEY=VALUE` reach it by the name it prints.

Interrupt once (^C): no more units are admitted, those in flight are finished. Twice: they are abandoned.

Exit status:
  0  every unit was retired
  1  some units were dead-lettered: their number and file are printed
  2  the flow file or the arguments are wrong
  3  the run was interrupted, or the reader of its standard output went away
  4  the report, the dead letters, a gathered file or standard output could not be written")]
pub(crate) struct RunArgs {
    /// The flow.
    #[command(flatten)]
    pub flow: FlowArgs,
    /// The input of the flow: `{input}` in the flow file. The flow's `[source]` walks it, reads its lines, or makes
    /// a unit of it.
    pub input: Vec<OsString>,
    /// Show what each stage would do with the first N units, and run nothing that has an effect [default: 10].
    #[arg(short = 'n', long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "10", value_parser = some)]
    pub dry_run: Option<usize>,
    /// Start no more work once this many units, or this share of them, have failed for good: 5, 10%; in place of the
    /// flow's `halt`. With the prefix `now,`, also end running work.
    #[arg(long, value_name = "[now,]N|N%", value_parser = HaltPolicy::parse)]
    pub halt: Option<HaltPolicy>,
    /// Start with this setting, written as for `millstream set`: resource.disk=4, stage.get.workers=8.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Write dead letters to this file, as JSON lines [default: beside the report, or FLOW.dead-letters.jsonl here].
    #[arg(long, value_name = "FILE")]
    pub dead_letters: Option<PathBuf>,
    /// The options for output.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// The output of a run or a retry, and the path of its control socket.
#[derive(Debug, Clone, Args)]
pub(crate) struct OutputArgs {
    /// Write the report to a file, as JSON or HTML according to the ending of its name.
    #[arg(long, value_name = "FILE", value_parser = report)]
    pub report: Option<PathBuf>,
    /// Write what each worker did, and when, as trace events (JSON), for Perfetto and the trace viewers of browsers.
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
    /// Record what each unit does in each stage, for `millstream whatif FILE` and `millstream page FILE`.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Show nothing but errors.
    #[arg(short, long)]
    pub quiet: bool,
    /// Print no report at the end; the file of --report is written all the same.
    #[arg(long)]
    pub no_report: bool,
    /// The path of the control socket [default: a fresh path in the run-time folder, which is printed].
    #[arg(long, value_name = "PATH")]
    pub control: Option<PathBuf>,
    /// The metrics.
    #[command(flatten)]
    pub serve: ServeArgs,
}

/// `millstream plan`.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// The flow.
    #[command(flatten)]
    pub flow: FlowArgs,
    /// Print the plan as one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `millstream init`.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The flow.
    #[arg(value_enum)]
    pub example: Option<Example>,
    /// Write the flow to this file; `-` is standard output [default: EXAMPLE.toml].
    #[arg(short, long, value_name = "FILE", requires = "example")]
    pub output: Option<PathBuf>,
}

/// `millstream retry`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  millstream retry
  millstream retry fetch.dead-letters.jsonl
  grep 'status 503' fetch.dead-letters.jsonl > busy.jsonl; millstream retry busy.jsonl

Units that die again are in the file of dead letters afterwards, and so are those that an interrupted retry did not reach: the next retry goes on with them. The letters that were retried stay beside it as FILE.old. The lines of retried units are added to the file that a stage gathers (`fresh`); the file takes its place when no unit is left dead.

Exit status:
  0  every unit was retired, or there was none to retry
  1  some units died again: their number and file are printed
  2  the letters, the flow file or the arguments are wrong: nothing was run
  3  the retry was interrupted, or the reader of its standard output went away
  4  the report, the dead letters, a gathered file or standard output could not be written")]
pub(crate) struct RetryArgs {
    /// The file of dead letters [default: the only FLOW.dead-letters.jsonl here].
    pub letters: Option<PathBuf>,
    /// Retry although the flow file has changed since the letters were written.
    #[arg(long)]
    pub changed: bool,
    /// Write the letters of units that die again to this file [default: the file that is retried].
    #[arg(long, value_name = "FILE")]
    pub dead_letters: Option<PathBuf>,
    /// The options for output.
    #[command(flatten)]
    pub output: OutputArgs,
}

fn some(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("a dry run of zero units tells nothing".to_owned()),
        Ok(count) => Ok(count),
        Err(_) => Err("expected a number of units".to_owned()),
    }
}

fn report(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("json" | "html") => Ok(path),
        _ => Err("a report's name ends in .json or .html".to_owned()),
    }
}
