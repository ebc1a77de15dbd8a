//! The command line.

use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory, Parser, Subcommand};
use millstream_command::screen::look::Look;
use millstream_command::screen::{out, text};
use millstream_command::{size, time};

use crate::cases::args::{StandInArgs, TestArgs, TrialArgs};
use crate::families::by_family;
use crate::file::model::MAX_WORKERS;
use crate::file::template::Template;
use crate::file::{self, FlowError, FlowFile, HaltPolicy, suggest};
use crate::init::Example;
use crate::run::{NOT_WRITTEN, WRONG};
use crate::serve::args::ServeArgs;
use crate::whatif::Goal;

/// The most programs that `millstream each` runs at once: a stage has no more threads for its needs.
const MAX_JOBS: u64 = millstream_flow::MAX_WORKERS_BY_NEEDS as u64;

/// The end of `millstream plan -h`.
const PLAN_STATUS: &str = "\
Exit status:
  0  the flow can run
  2  the flow file or the arguments are wrong
  4  the plan could not be written";

/// The end of `millstream plan --help`, with a flow file that has every key; a test reads it.
const PLAN_HELP: &str = concat!(
    "Exit status:\n",
    "  0  the flow can run\n",
    "  2  the flow file or the arguments are wrong\n",
    "  4  the plan could not be written\n\n",
    "A flow file, with every key there is:\n\n",
    include_str!("file/reference.toml")
);

/// The end of `millstream init --help`.
const INIT_STATUS: &str = "\
Exit status:
  0  the file was written
  2  a file of this name is there already
  4  the file could not be written";

/// The end of `millstream status --help`.
const STATUS_STATUS: &str = "\
Exit status:
  0  the status was printed
  2  there is no such run, or it does not answer
  4  the status could not be written";

/// The end of `millstream top --help`.
const TOP_STATUS: &str = "\
Exit status:
  0  the screen was left, by a key or by a signal
  2  there is no such run, or standard output is no terminal
  4  the terminal could not be used";

/// The end of `millstream explain --help`.
const EXPLAIN_HELP: &str = "\
Examples:
  millstream explain fetch-4711 17
  millstream explain fetch host:example.org
  millstream explain fetch disk --json

Exit status:
  0  the explanation was printed
  2  there is no such unit or key now, or no such run, or it does not answer
  4  the explanation could not be written";

/// Runs staged flows over files, URLs and records.
///
/// A flow file (TOML) names a source of units and the stages they pass through. Each stage's queue acquires what a unit needs
/// (tokens, a slot at a host, bytes of memory) before a thread is spent on it, so nothing runs out and nothing is held up.
#[derive(Debug, Parser)]
#[command(
    name = "millstream",
    version,
    max_term_width = 100,
    propagate_version = true,
    after_help = "`millstream COMMAND --help` shows a command's examples and its exit statuses."
)]
pub(crate) struct Cli {
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a flow to the end of its source.
    ///
    /// Progress and the report go to standard error; standard output belongs to the stages. `millstream plan --help` shows how a
    /// flow file is written.
    Run(RunArgs),
    /// Check a flow and show its graph, bounds, needs and largest memory, without running it.
    ///
    /// Nothing is run and nothing is written. A flow that could deadlock, or whose file has a slip in it, is refused with the
    /// place, the reason and what to do, and exit status 2.
    #[command(after_help = PLAN_STATUS, after_long_help = PLAN_HELP)]
    Plan(PlanArgs),
    /// Run one program for each of many items, without a flow file.
    ///
    /// Items are lines of standard input, files below a folder, or words after `:::`. An argument with `{}` in it gets the item
    /// there; without one, the item is the last argument. No shell sees the item.
    Each(Box<EachArgs>),
    /// Write a flow file to begin with.
    ///
    /// Without EXAMPLE, lists the examples.
    #[command(after_help = INIT_STATUS)]
    Init(InitArgs),
    /// Run flows on their cases, and compare the outcome with the expected one.
    ///
    /// Each case runs in a temporary folder, with the programs and the answers of servers that it gives in place of real ones. It
    /// reaches neither the network nor other files.
    Test(TestArgs),
    /// Run the units of a file of dead letters again.
    ///
    /// The flow, its parameters, INPUTs, caps and folder are those of the run that gave the units up; each unit starts over at
    /// the first stage. A flow file that has changed since is refused, unless `--changed` says that it may.
    Retry(RetryArgs),
    /// Look into a running flow.
    #[command(after_help = STATUS_STATUS)]
    Status(StatusArgs),
    /// Watch running flows on the whole terminal, and change them.
    ///
    /// Shows what limits a run, what its units wait for, stage by stage and resource by resource, and the last five minutes; `?`
    /// lists the keys. Every change is shown before it is made, and recorded in the run's report.
    #[command(after_help = TOP_STATUS)]
    Top(TopArgs),
    /// Say why a unit of a running flow does not move, or who holds a resource.
    ///
    /// A unit is named by its number, as dead letters name it; a resource by its name, and a key as `host:example.org`.
    #[command(after_help = EXPLAIN_HELP)]
    Explain(ExplainArgs),
    /// Show the fibers of a running flow: how many, how deep their stacks are, and which have held up others.
    ///
    /// `--dump` shows all of them, those as one group that are in the same stage and wait in the same call: for what, how long,
    /// with which units, and how much of their stacks was used.
    #[command(after_help = STATUS_STATUS)]
    Fibers(FibersArgs),
    /// Change a running flow: its caps, tokens, rates and workers.
    Set(SetArgs),
    /// Tell what a traced run would have come to under other settings.
    ///
    /// The trace comes from `millstream run --trace FILE`. The engine replays it in simulated time, first as it was, and refuses to
    /// answer if that misses the measured time by more than 5 %. Without SETTINGs it tells which ones would help.
    Whatif(WhatIfArgs),
    /// A command that runs no flow.
    #[command(flatten)]
    Instrument(millstream_instruments::Command),
    /// Run the flow of a case. `millstream test` starts this itself.
    #[command(hide = true)]
    Trial(TrialArgs),
    /// Do what a case gives for a program. Its flow starts this itself.
    #[command(hide = true)]
    StandIn(StandInArgs),
    /// End the programs of a run that was killed. Every run starts this itself.
    #[command(hide = true)]
    Supervise {
        /// The mark in the environment of the programs.
        mark: String,
    },
}

/// A flow file and what is filled into it.
#[derive(Debug, Args)]
pub(crate) struct FlowArgs {
    /// The flow file (TOML).
    pub flow: PathBuf,
    /// The text of a flow that stands in no file; `flow` is then its name in messages.
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
    /// Reads the flow file, with what the command line puts in place of its values.
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
  4  the report, dead letters, what a stage gathers or standard output could not be written")]
pub(crate) struct RunArgs {
    /// The flow.
    #[command(flatten)]
    pub flow: FlowArgs,
    /// The input of the flow: `{input}` in the flow file, walked or taken as units as its `[source]` says.
    pub input: Vec<OsString>,
    /// Tell what each stage would do with the first N units, and run nothing that has an effect [default: 10].
    #[arg(short = 'n', long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "10", value_parser = some)]
    pub dry_run: Option<usize>,
    /// Start nothing more when this many units were given up on, or this share of them: 5, 10%; in place of the flow's `halt`.
    /// With `now,` before it, end what runs.
    #[arg(long, value_name = "[now,]N|N%", value_parser = HaltPolicy::parse)]
    pub halt: Option<HaltPolicy>,
    /// Begin with a setting as `millstream set` would change it: resource.disk=4, stage.get.workers=8.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Write dead letters to this file, as JSON lines [default: beside the report, or FLOW.dead-letters.jsonl here].
    #[arg(long, value_name = "FILE")]
    pub dead_letters: Option<PathBuf>,
    /// The options for output.
    #[command(flatten)]
    pub output: OutputArgs,
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

/// `millstream each`.
#[derive(Debug, Args)]
#[command(after_help = "\
In the program's arguments:
  {} or {path}   the item
  {/}  {name}    its last component        a/b.tar.gz -> b.tar.gz
  {/.} {stem}    that without extension    a/b.tar.gz -> b.tar
  {//} {dir}     the rest                  a/b.tar.gz -> a
  {host} {url}   of an item that is a URL; and every other field of flow files

Examples:
  millstream each gzip -9 ::: *.log
  millstream each -j4 --walk photos --creates thumbs/{/} convert {} -resize 200 thumbs/{/}
  millstream each --needs 'host:{host}=2' --rate 20/s --retry 3 curl -fsSO {} < urls.txt
  find . -name '*.wav' -print0 | millstream each -0 --timeout 5m flac {}
  millstream each --pipe --block 10MiB -k grep -c error < access.log
  millstream each --shell 'wc -l < \"$1\" | tr -d \" \"' {} ::: *.txt

`--save FLOW.toml` writes the flow file that the line stands for. While it runs, `millstream status` and `millstream set RUN resource.jobs=8` reach it.

Exit status:
  0  the program succeeded for every item
  1  it failed for some: their number and the file of dead letters are printed; `millstream retry` runs them again
  2  the arguments are wrong: nothing was run
  3  the run was interrupted, or the reader of its standard output went away
  4  the report, dead letters, standard output or the dry run could not be written")]
pub(crate) struct EachArgs {
    /// Programs at once [default: the machine's cores].
    #[arg(short, long, value_name = "N", value_parser = jobs)]
    pub jobs: Option<u64>,
    /// Items end with a NUL byte, as `find -print0` writes them.
    #[arg(short = '0', long, conflicts_with = "walk")]
    pub null: bool,
    /// Give a program N items at once, each an argument of its own in the place of `{}`.
    #[arg(short = 'N', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub group: Option<u32>,
    /// Give each program a block of standard input, or of the files of `--lines`, as its own standard input: whole lines of
    /// about the size of `--block`, or `-N` lines.
    #[arg(long, conflicts_with_all = ["walk", "creates", "results", "tag"])]
    pub pipe: bool,
    /// The size of a block [default: 1MiB].
    #[arg(long, value_name = "SIZE", value_parser = memory, requires = "pipe", conflicts_with = "group")]
    pub block: Option<u64>,
    /// Read items from a file, one a line, in place of standard input; `-` is standard input.
    #[arg(short = 'a', long, value_name = "FILE", conflicts_with = "walk")]
    pub lines: Vec<PathBuf>,
    /// Take every regular file below a folder as an item.
    #[arg(long, value_name = "DIR")]
    pub walk: Vec<PathBuf>,
    /// Run a program only when it gets one of N tokens: `gpu=2`; with a key, N for each value of it: `host:{host}=2`.
    #[arg(long, value_name = "NAME[:KEY]=N", value_parser = need)]
    pub needs: Vec<EachNeed>,
    /// Start no more programs than this: 20/s, 600/m.
    #[arg(long, value_name = "RATE", value_parser = rate, conflicts_with = "delay")]
    pub rate: Option<String>,
    /// Let this time pass between two starts: 250ms, 2s.
    #[arg(long, value_name = "TIME", value_parser = pause)]
    pub delay: Option<Duration>,
    /// Try a program that fails this many times more.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub retry: Option<u32>,
    /// The pause before the second attempt, and the longest one [default: 100ms..5s].
    #[arg(long, value_name = "TIME..TIME", value_parser = time::parse_range, requires = "retry")]
    pub backoff: Option<Range<Duration>>,
    /// Kill a program, and all it has started, that takes longer.
    #[arg(long, value_name = "TIME", value_parser = pause)]
    pub timeout: Option<Duration>,
    /// Start no more programs when this many have failed for good, or this share of them: 5, 10%. With `now,` before it, end
    /// those that run.
    #[arg(long, value_name = "[now,]N|N%", value_parser = HaltPolicy::parse)]
    pub halt: Option<HaltPolicy>,
    /// Start no program while this many threads of the machine are runnable: 8, or 100% of the cores.
    #[arg(long, value_name = "N|N%", value_parser = file::parse::machine::load_limit)]
    pub load: Option<u64>,
    /// Start no program while less memory is available: 1GiB, 512MiB, …
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub memfree: Option<u64>,
    /// Leave out items for which this file is there and not older than the item: what the program makes, such as thumbs/{/}.
    #[arg(long, value_name = "FILE", conflicts_with = "group")]
    pub creates: Option<String>,
    /// The first argument is a script for /bin/sh; the others are its $1, $2, …
    #[arg(long)]
    pub shell: bool,
    /// Precede every line of output with its item and a tab.
    #[arg(long, conflicts_with_all = ["results", "ungroup", "group"])]
    pub tag: bool,
    /// Print outputs in the order of their items, not in the order in which programs end.
    #[arg(short, long, conflicts_with_all = ["results", "ungroup"])]
    pub keep_order: bool,
    /// Pass output on as it comes, where lines of several programs may mix.
    #[arg(short, long, conflicts_with = "results")]
    pub ungroup: bool,
    /// Write a program's output to DIR/ITEM/stdout and DIR/ITEM/stderr, which appear when the program has ended.
    #[arg(long, value_name = "DIR", conflicts_with = "group")]
    pub results: Option<PathBuf>,
    /// Start no program while this much output waits to be read: 64MiB, 1GB, … [default: 64MiB]
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub memory: Option<u64>,
    /// Print the command lines and run none of them.
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Write the flow file that this line stands for, and run nothing.
    #[arg(long, value_name = "FLOW.toml", conflicts_with = "dry_run")]
    pub save: Option<PathBuf>,
    /// Write dead letters to this file, as JSON lines [default: beside the report, or PROGRAM.dead-letters.jsonl here].
    #[arg(long, value_name = "FILE")]
    pub dead_letters: Option<PathBuf>,
    /// The output.
    #[command(flatten)]
    pub output: OutputArgs,
    /// The program and its arguments; then, behind `:::`, items.
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true)]
    pub words: Vec<OsString>,
}

impl EachArgs {
    /// The items that a program takes at once, and the way in which it takes them.
    pub(crate) fn takes(&self) -> Takes {
        match (self.pipe, self.group) {
            (true, _) => Takes::Input,
            (false, Some(2..)) => Takes::Items,
            (false, _) => Takes::Item,
        }
    }

    /// Whether programs write to the command's own standard output.
    pub(crate) fn inherits(&self) -> bool {
        self.ungroup
    }

    /// The rate of starts, as a flow file writes it.
    pub(crate) fn starts_per_second(&self) -> Option<String> {
        let of_delay = |delay: Duration| format!("{}/s", 1.0 / delay.as_secs_f64());
        self.rate.clone().or_else(|| self.delay.map(of_delay))
    }
}

/// The items of `millstream each` that a program takes at once, and the way in which it takes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// One item, as an argument.
    Item,
    /// Several items, each an argument.
    Items,
    /// Several lines, as its standard input.
    Input,
}

/// `--needs`: a resource with tokens, perhaps for each key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EachNeed {
    /// The resource's name.
    pub resource: String,
    /// The template of the key.
    pub key: Option<String>,
    /// The tokens, for each key if there are keys.
    pub capacity: u64,
}

/// The output of a run or a retry, and the path of its control socket.
#[derive(Debug, Clone, Args)]
pub(crate) struct OutputArgs {
    /// Write the report to a file, as JSON or HTML by its ending.
    #[arg(long, value_name = "FILE", value_parser = report)]
    pub report: Option<PathBuf>,
    /// Write what each worker did and when as trace events (JSON), which Perfetto and browsers' trace viewers show.
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
    /// Record what each unit does in each stage, for `millstream whatif FILE`.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Show nothing but errors.
    #[arg(short, long)]
    pub quiet: bool,
    /// Print no report at the end; a --report FILE is written all the same.
    #[arg(long)]
    pub no_report: bool,
    /// Where to put the control socket [default: a fresh path in the run-time folder, which is printed].
    #[arg(long, value_name = "PATH")]
    pub control: Option<PathBuf>,
    /// The metrics.
    #[command(flatten)]
    pub serve: ServeArgs,
}

/// `millstream whatif`.
#[derive(Debug, Args)]
#[command(after_help = "\
Settings:
  resource.NAME=4    tokens of a resource, of each key where it has keys; 20/s for a rate
  workers=8          shared workers; stage.NAME.workers=8 those of one stage
  inflight=512       units in flight; memory=1GiB their bytes
  stage.NAME.batch=1, stage.NAME.service=-20% (or x0.5), cores=8

Examples:
  millstream run flows/fetch.toml urls.txt --trace fetch.trace
  millstream whatif fetch.trace
  millstream whatif fetch.trace resource.host=4 workers=8
  millstream whatif fetch.trace --sweep resource.host=1..16
  millstream whatif fetch.trace --goal 'p99<200ms'
  millstream whatif fetch-4711 resource.host=4

Exit status:
  0  the answer was printed
  1  the replay misses the run, or no setting reaches the goal
  2  the trace or the arguments are wrong, or the run does not answer
  4  the answer could not be written")]
pub(crate) struct WhatIfArgs {
    /// The trace of a run; or a run that goes on, as `millstream status` names it: its newest units are then the trace.
    #[arg(value_name = "TRACE|RUN")]
    pub trace: PathBuf,
    /// Settings that differ from those of the run.
    #[arg(value_name = "SETTING")]
    pub settings: Vec<String>,
    /// Replay with each value of a setting: resource.disk=1..16.
    #[arg(long, value_name = "KEY=FROM..TO")]
    pub sweep: Option<String>,
    /// Look for the least settings that reach a goal: wall<10m, p50<50ms, p99<200ms, throughput>100/s.
    #[arg(long, value_name = "GOAL", value_parser = Goal::parse)]
    pub goal: Option<Goal>,
    /// Run the flow again, without the SETTINGs and with them, in turns, until it is certain which is faster, and show what was
    /// measured beside what was predicted. At most PAIRS of runs; 1 is one run with the SETTINGs. Each has its effects again.
    #[arg(long, value_name = "PAIRS", num_args = 0..=1, require_equals = true, default_missing_value = "12", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub check: Option<u32>,
    /// The trace of another run of this flow, with other tokens of one resource: it shows how the time of the stages that need it depends
    /// on them.
    #[arg(long, value_name = "TRACE")]
    pub with: Option<PathBuf>,
    /// The time that replays may take.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = time::parse)]
    pub within: Duration,
    /// Answer although the replay misses the run itself.
    #[arg(long)]
    pub anyway: bool,
    /// Print the answer as one JSON object.
    #[arg(long)]
    pub json: bool,
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

/// `millstream retry`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  millstream retry
  millstream retry fetch.dead-letters.jsonl
  grep 'status 503' fetch.dead-letters.jsonl > busy.jsonl; millstream retry busy.jsonl

Units that die again are in the file of dead letters afterwards, and so are those that an interrupted retry did not come to: the next retry goes on with them. The letters that were retried stay beside it as FILE.old. A file that a stage gathers (`fresh`) gets the lines of the retried units added, and takes its place when no unit is left dead.

Exit status:
  0  every unit was retired, or there was none to retry
  1  some units died again: their number and file are printed
  2  the letters, the flow file or the arguments are wrong: nothing was run
  3  the retry was interrupted, or the reader of its standard output went away
  4  the report, dead letters, what a stage gathers or standard output could not be written")]
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

/// `millstream status`.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The run: its name, or the control socket's path, as `millstream run` printed it [default: the only one; of several, a
    /// list].
    pub run: Option<PathBuf>,
    /// Print the snapshot as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `millstream top`.
#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// The run: its name, or the control socket's path, as `millstream run` printed it [default: the only one; of several, a
    /// list].
    pub run: Option<PathBuf>,
}

/// `millstream explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The run: its name, or the control socket's path, as `millstream run` printed it.
    pub run: PathBuf,
    /// The number of a unit in flight, a resource, a key of a resource, or the text of a unit that waits or a part of it.
    #[arg(value_name = "UNIT|KEY|TEXT")]
    pub what: String,
    /// Print the explanation as JSON.
    #[arg(long)]
    pub json: bool,
}

/// `millstream fibers`.
#[derive(Debug, Args)]
pub(crate) struct FibersArgs {
    /// The run: its name, or the control socket's path, as `millstream run` printed it.
    pub run: PathBuf,
    /// Show each group of equal fibers.
    #[arg(long)]
    pub dump: bool,
    /// Print all of it as JSON.
    #[arg(long, conflicts_with = "dump")]
    pub json: bool,
}

/// `millstream set`.
#[derive(Debug, Args)]
#[command(after_help = "\
Settings:
  inflight=N               units in flight
  memory=SIZE              bytes in flight, or none
  workers=N                threads that serve the stages without threads of their own
  resource.NAME=N          tokens, per key when keyed
  resource.NAME=N/s        the rate of a rate
  stage.NAME.workers=N     most workers of a stage, or N..M

Example:
  millstream set archive-4711 inflight=64 stage.zstd.workers=1

Exit status:
  0  everything was set
  2  nothing was set: a setting is wrong, or there is no such run, or it does not answer
  4  what was set could not be printed")]
pub(crate) struct SetArgs {
    /// The run: its name, or the control socket's path, as `millstream run` printed it.
    pub run: PathBuf,
    /// The changes; all of them are checked before the first is made.
    #[arg(required = true, value_name = "KEY=VALUE", value_parser = key_value)]
    pub settings: Vec<(String, String)>,
}

/// Reads the command line.
///
/// # Errors
/// It is wrong, or asks for help: what is to be said about it has been said, and this is the exit status.
pub(crate) fn parse() -> Result<Cli, ExitCode> {
    Cli::try_parse().map_err(|error| {
        // clap quotes words of the command line between colours of its own. The same words, shown, are wrong in the same way.
        let words: Vec<String> =
            std::env::args_os().map(|word| text::printable(&word.to_string_lossy()).into()).collect();
        let shown = by_family(Cli::command()).try_get_matches_from(&words).err();
        let shown = shown.filter(|shown| shown.kind() == error.kind());
        told(&with_near_command(shown.unwrap_or(error), words.into_iter().skip(1)))
    })
}

fn told(error: &clap::Error) -> ExitCode {
    let look = if error.use_stderr() { Look::of_stderr() } else { Look::of_stdout() };
    let text = error.render();
    let page = if look.is_some_and(|look| look.color) { text.ansi().to_string() } else { text.to_string() };
    if error.use_stderr() {
        out::complain_page(&page);
    } else if let Err(error) = out::print(&page) {
        out::complain(format!("error: cannot write to standard output: {error}"));
        return ExitCode::from(NOT_WRITTEN);
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(WRONG))
}

/// Names the command that a mistyped one was most likely meant to be, where clap's own measure finds none: two letters that
/// have changed places are too much for it.
fn with_near_command(mut error: clap::Error, words: impl Iterator<Item = String>) -> clap::Error {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand).cloned() else { return error };
    if error.get(ContextKind::SuggestedSubcommand).is_some() {
        return error;
    }
    let top = Cli::command();
    let mut family = &top;
    for word in words {
        family = family.find_subcommand(word).unwrap_or(family);
    }
    let names = family.get_subcommands().filter(|command| !command.is_hide_set()).map(clap::Command::get_name);
    if let Some(near) = suggest::closest(&typed, names) {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![near.to_owned()]));
    }
    error
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

fn some(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("zero units have nothing to tell".to_owned()),
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

fn jobs(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("zero programs at once would run nothing".to_owned()),
        Ok(count) if count <= MAX_JOBS => Ok(count),
        Ok(_) => Err(format!("at most {MAX_JOBS} programs at once")),
        Err(_) => Err("expected a number of programs".to_owned()),
    }
}

fn rate(text: &str) -> Result<String, String> {
    time::parse_rate(text).map(|_| text.to_owned())
}

fn pause(text: &str) -> Result<Duration, String> {
    match time::parse(text)? {
        Duration::ZERO => Err("zero is no time to wait".to_owned()),
        time => Ok(time),
    }
}

fn need(text: &str) -> Result<EachNeed, String> {
    let expected = || "expected NAME=N, or NAME:KEY=N with a template as the key, such as `host:{host}=2`".to_owned();
    let (need, capacity) = text.rsplit_once('=').ok_or_else(expected)?;
    let (resource, key) = need.split_once(':').map_or((need, None), |(name, key)| (name, Some(key)));
    if resource.is_empty() || resource.contains(['{', '}', '*']) || key.is_some_and(str::is_empty) {
        return Err(expected());
    }
    if ["jobs", "starts"].contains(&resource) {
        return Err(format!("`{resource}` is what `--{}` sets", if resource == "jobs" { "jobs" } else { "rate" }));
    }
    if let Some(key) = key {
        Template::parse(key).map_err(|error| format!("{}; {}", error.message, error.help))?;
    }
    match capacity.parse() {
        Ok(0) => Err("zero tokens would let nothing run".to_owned()),
        Ok(capacity) => Ok(EachNeed { resource: resource.to_owned(), key: key.map(str::to_owned), capacity }),
        Err(_) => Err(expected()),
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

    use super::{Cli, Command, with_near_command};

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_states_its_own_exit_statuses() {
        let mut helps = Vec::new();
        after_helps(&Cli::command(), "", &mut helps);
        let (_, own) = helps.pop().expect("the command itself comes last");
        assert!(!own.contains("Exit status"), "{own}");
        let states = |path: &str| helps.iter().any(|(other, help)| other == path && help.contains("Exit status"));
        for (command, _) in &helps {
            let family = format!("{} ", command.trim_end().rsplit_once(' ').expect("of a family").0);
            // `history` itself only leads to `check`.
            let leads_on = helps.iter().any(|(other, _)| other != command && other.starts_with(command.as_str()));
            assert!(states(command) || states(&family) || leads_on, "{command}");
        }
    }

    /// Every command with what its help says after the options.
    fn after_helps(command: &clap::Command, path: &str, found: &mut Vec<(String, String)>) {
        let path = format!("{path}{} ", command.get_name());
        let said = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            after_helps(inner, &path, found);
        }
        found.push((path, said));
    }

    #[test]
    fn paragraphs_of_help_are_broken_by_the_terminal_alone() {
        let mut helps = Vec::new();
        after_helps(&Cli::command(), "", &mut helps);
        for (command, help) in helps {
            let lines: Vec<&str> = help.lines().collect();
            for pair in lines.windows(2) {
                let prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
                // A heading ends in a colon; what follows it is indented.
                assert!(!(prose(pair[0]) && prose(pair[1])), "{command}: `{}` and `{}`", pair[0], pair[1]);
            }
        }
    }

    #[test]
    fn a_mistyped_command_is_shown_with_the_right_one() {
        for (line, near) in [
            (&["rnu"][..], "'run'"),
            (&["sttaus"], "'status'"),
            (&["dcotor"], "'doctor'"),
            (&["csm", "pwoer"], "'power'"),
        ] {
            let typed = std::iter::once("millstream").chain(line.iter().copied());
            let error = Cli::try_parse_from(typed).unwrap_err();
            let said = with_near_command(error, line.iter().map(ToString::to_string)).to_string();
            assert!(said.contains(near), "{said}");
        }
        let error = Cli::try_parse_from(["millstream", "frobnicate"]).unwrap_err();
        assert!(!with_near_command(error, std::iter::empty()).to_string().contains("similar"));
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
