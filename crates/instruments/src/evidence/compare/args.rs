//! The command line of `compare`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::evidence::args::{ColumnArgs, RunningArgs};
use crate::evidence::number;

const HELP: &str = "\
Examples:
  millstream compare before.txt after.txt
  millstream compare --paired --column latency before.csv after.csv
  millstream compare --run 'sort big.txt' 'sort --parallel=2 big.txt'
  millstream compare --run --at-most-slower 5% --prepare 'rm -rf out' './old' './new'
  millstream compare --run --parameter-list t 1,2,4 'make -j {t}'

Commands are run in rounds, each once a round in a random order, until it is clear how the others compare with the \
first one, A. Any drift of the machine therefore affects all alike. A command that is decided is not run any more. Two \
commands that are equal are never told apart: give --limit or --for, or say with --at-most-slower what difference \
matters.

Two files are samples whose sizes were fixed beforehand, and compared once, by ranks. If they grow and are compared \
again, say --watched; data from standard input are treated that way unless --fixed is given.

Exit status:
  0  A is smaller (faster) than every other one; with --at-most-slower: the claim holds
  1  another one is smaller than A; with --at-most-slower: the claim fails
  2  the arguments are wrong, or there is no such command or file; nothing was run
  3  undecided when the data or the time ran out, or the limit was reached; the interval so far is printed
  4  invalid data, or a command failed (see --ignore-failure)";

/// `millstream compare`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct CompareArgs {
    /// Two files of numbers or times, or, with --run, commands. The others are compared with the first.
    #[arg(required = true, value_name = "A B")]
    pub subjects: Vec<OsString>,
    /// Compare commands by the time they take. A line that needs a shell is given to `sh -c`; any other is run without
    /// one.
    #[arg(long, conflicts_with_all = ["paired", "column"])]
    pub run: bool,
    /// Line n of A belongs to line n of B.
    #[arg(long)]
    pub paired: bool,
    /// The files may grow and be compared again: use a test that is valid for all their sizes together, but is
    /// weaker.
    #[arg(long, conflicts_with_all = ["run", "paired"])]
    pub watched: bool,
    /// The sizes of the files (also of standard input) were fixed before the first value was known.
    #[arg(long, conflicts_with_all = ["run", "paired", "watched"])]
    pub fixed: bool,
    /// Claim that every other command or file exceeds A by at most this much: 5% or 0.05. With this claim, equal commands
    /// are soon decided.
    #[arg(long, value_name = "PART", value_parser = part)]
    pub at_most_slower: Option<f64>,
    /// The maximum probability of a wrong answer, in all verdicts and intervals together.
    #[arg(long, value_name = "E", value_parser = number::parse, default_value = "1e-6")]
    pub error: f64,
    /// How lines are read.
    #[command(flatten)]
    pub column: ColumnArgs,
    /// How the commands are run.
    #[command(flatten)]
    pub running: RunningArgs,
    /// The commands around the runs.
    #[command(flatten)]
    pub around: AroundArgs,
    /// The seed of the random order of the commands [default: a fresh one, which is printed].
    #[arg(long, value_name = "N", requires = "run")]
    pub seed: Option<u64>,
    /// Print the answer as JSON.
    #[arg(long)]
    pub json: bool,
    /// Show no progress.
    #[arg(short, long)]
    pub quiet: bool,
}

/// The commands around the runs, and the parameters that turn one command into several.
#[derive(Debug, Args)]
pub struct AroundArgs {
    /// Run each command this many times before the first measured round.
    #[arg(short, long, value_name = "N", default_value = "0", requires = "run")]
    pub warmup: u64,
    /// Run this once before anything else (with parameters in it: once for each of their values).
    #[arg(short, long, value_name = "COMMAND", requires = "run")]
    pub setup: Option<OsString>,
    /// Run this before each run of a command, untimed.
    #[arg(short, long, value_name = "COMMAND", requires = "run")]
    pub prepare: Option<OsString>,
    /// Run this once after everything else, also after an interrupt or a failure.
    #[arg(short, long, value_name = "COMMAND", requires = "run")]
    pub cleanup: Option<OsString>,
    /// Count a run that exits with a status other than 0 like any other run.
    #[arg(short, long, requires = "run")]
    pub ignore_failure: bool,
    /// The name of a command; give one for each, in their order.
    #[arg(short = 'n', long, value_name = "NAME", requires = "run")]
    pub command_name: Vec<String>,
    /// Make a command for each number from MIN to MAX, which takes the place of {VAR}.
    #[arg(short = 'P', long, value_names = ["VAR", "MIN", "MAX"], num_args = 3, requires = "run", allow_hyphen_values = true)]
    pub parameter_scan: Vec<String>,
    /// The distance between the numbers of --parameter-scan [default: 1].
    #[arg(short = 'D', long, value_name = "STEP", requires = "parameter_scan")]
    pub parameter_step_size: Option<String>,
    /// Make a command for each of the values, which takes the place of {VAR}; may be given several times.
    #[arg(short = 'L', long, value_names = ["VAR", "VALUE,VALUE"], num_args = 2, action = clap::ArgAction::Append, requires = "run")]
    pub parameter_list: Vec<String>,
    /// Write all times as JSON, in hyperfine's format.
    #[arg(long, value_name = "FILE", requires = "run")]
    pub export_json: Option<PathBuf>,
    /// Write a summary of the times as CSV, in hyperfine's format.
    #[arg(long, value_name = "FILE", requires = "run")]
    pub export_csv: Option<PathBuf>,
}

fn part(text: &str) -> Result<f64, String> {
    match number::parse(text)? {
        part if part > 0.0 && part.is_finite() => Ok(part),
        part => Err(format!("expected a fraction above zero, such as 5%, found {part}")),
    }
}
