//! The command lines of `slo`, `compare` and `csm`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand};
use millstream_command::time;
use millstream_csm::Method;
use regex::bytes::{Regex, RegexBuilder};

use super::criterion::ExitRule;
use super::number::{self, Quantity};

pub(crate) use super::compare::args::CompareArgs;
pub(crate) use super::functions::args::CsmArgs;

/// The end of `millstream slo --help`.
const SLO_HELP: &str = "\
Examples:
  millstream slo --at-least 0.99 --under 250ms -- curl -fsS http://localhost:8080/health
  millstream slo --at-least 0.999 --error 1e-6 --limit 20000 --jobs 4 -- ./flaky-test
  awk '{print $7}' access.log | millstream slo --at-least 99% --under 50
  millstream slo --mean --at-most 30ms --timeout 1s -- ./query
  millstream slo plan --at-least 0.99 --limit 2000

The command is run, or lines are read, until the claim is decided. That takes few observations if the truth is far from the \
threshold, and many if it is near. You may look at the interval meanwhile: it is right at all times at once.

Exit status:
  0  the claim holds
  1  it fails to hold
  2  the arguments are wrong, or there is no such command; nothing was run
  3  undecided when the data or the time ran out, or the limit was reached; the interval so far is printed
  4  invalid data, or something could not be read or written

The probability that 0 or 1 is wrong is at most --error, however often and whenever you look.";

/// The end of `millstream slo plan --help`.
const SLO_PLAN_STATUS: &str = "\
Exit status:
  0  answered
  2  the arguments are wrong
  4  the answer could not be written";

/// The claim.
#[derive(Debug, Clone, Args)]
#[command(group = ArgGroup::new("claim").required(true).multiple(true).args(["at_least", "at_most", "between"]))]
pub struct ClaimArgs {
    /// The rate of success (with --mean: the mean) is more than P. Rates are numbers such as 0.99, 99% or 0x1.fap-1.
    #[arg(long, value_name = "P", value_parser = Quantity::parse, allow_negative_numbers = true)]
    pub at_least: Option<Quantity>,
    /// The rate (or the mean) is less than P. Together with --at-least: it lies between the two thresholds.
    #[arg(long, value_name = "P", value_parser = Quantity::parse, allow_negative_numbers = true)]
    pub at_most: Option<Quantity>,
    /// Two thresholds: the verdict is that the rate is above LOW, or that it is below HIGH; in between, either is
    /// right. A claim with two thresholds is always decided in the end.
    #[arg(long, value_name = "LOW..HIGH", value_parser = number::parse_pair, conflicts_with_all = ["at_least", "at_most"],
          allow_hyphen_values = true)]
    pub between: Option<(Quantity, Quantity)>,
    /// The maximum probability of a wrong answer, in the verdict and the interval together.
    #[arg(long, value_name = "E", value_parser = number::parse, default_value = "1e-6")]
    pub error: f64,
    /// How evidence is weighed: mixture, balanced, centred, one-sided, robbins; with --between blend or sprt [default:
    /// mixture, blend].
    #[arg(long, value_name = "NAME", value_parser = method)]
    pub method: Option<Method>,
}

/// The conditions of a success.
#[derive(Debug, Clone, Args)]
pub struct SuccessArgs {
    /// The time of a successful run, or the value of a successful line, is less than this: 50ms or 100.
    #[arg(long, value_name = "X", value_parser = Quantity::parse, allow_negative_numbers = true)]
    pub under: Option<Quantity>,
    /// The time of a successful run, or the value of a successful line, is more than this.
    #[arg(long, value_name = "X", value_parser = Quantity::parse, allow_negative_numbers = true)]
    pub over: Option<Quantity>,
    /// The standard output, or the line (with --column: the field), of a success contains a match of this.
    #[arg(long = "match", value_name = "REGEX", value_parser = regex)]
    pub matches: Option<Regex>,
    /// The exit status of a success, or `any`.
    #[arg(long, value_name = "STATUS", value_parser = ExitRule::parse, default_value = "0")]
    pub exit: ExitRule,
}

/// The options for reading a file of lines.
#[derive(Debug, Clone, Args)]
pub struct ColumnArgs {
    /// The field of a line: its number from 1, its name in the first line, or the member of a JSON line (a.b for a
    /// nested one).
    #[arg(long, value_name = "NAME|N")]
    pub column: Option<String>,
    /// The separator of fields [default: a tab or a comma if the first line has one, else blanks].
    #[arg(long, value_name = "CHAR", value_parser = separator, requires = "column")]
    pub separator: Option<u8>,
}

/// The options for running commands.
#[derive(Debug, Clone, Args)]
pub struct RunningArgs {
    /// Stop at this number of observations [default: 1000000 for a command, 100000 rounds with compare, no limit for
    /// data].
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub limit: Option<u64>,
    /// Start no run of a command after this time.
    #[arg(long = "for", value_name = "TIME", value_parser = time::parse)]
    pub time: Option<Duration>,
    /// Stop a run of a command that takes longer; such a run is not a success, and with compare it is an error.
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    pub timeout: Option<Duration>,
}

/// `millstream slo`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, after_help = SLO_HELP)]
pub struct SloArgs {
    /// Ask for something other than a decision.
    #[command(subcommand)]
    pub other: Option<SloCommand>,
    /// The claim.
    #[command(flatten)]
    pub claim: ClaimArgs,
    /// The conditions of a success.
    #[command(flatten)]
    pub success: SuccessArgs,
    /// Claim something about the mean of times or numbers, not about a rate of successes.
    #[arg(long, conflicts_with_all = ["under", "over", "matches"])]
    pub mean: bool,
    /// With --mean: every value lies between these two numbers [default for a command: from 0 to --timeout].
    #[arg(long, value_name = "LOW..HIGH", value_parser = number::parse_pair, requires = "mean", allow_hyphen_values = true)]
    pub range: Option<(Quantity, Quantity)>,
    /// Read outcomes or numbers from this file [default: standard input, when there is no COMMAND].
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    pub input: Option<PathBuf>,
    /// Take the units of a flow from the report of `millstream run --report`: retired is a success, dead-lettered is
    /// not.
    #[arg(long, value_name = "REPORT.json", conflicts_with_all = ["under", "over", "matches", "mean", "column"])]
    pub from: Vec<PathBuf>,
    /// Take the attempts of this stage from the report.
    #[arg(long, value_name = "STAGE", requires = "from")]
    pub stage: Option<String>,
    /// How lines are read.
    #[command(flatten)]
    pub column: ColumnArgs,
    /// How the command is run.
    #[command(flatten)]
    pub running: RunningArgs,
    /// The number of runs of the command at a time. Runs count in the order in which they were started, so a fast run does
    /// not count before a slow one. Simultaneous runs share the machine, and may slow each other down. MILLSTREAM_RUN
    /// tells a run its number.
    #[arg(short, long, value_name = "N", value_parser = jobs, default_value = "1")]
    pub jobs: usize,
    /// Keep the evidence in this file, and continue from it the next time. The claim and the error are frozen in it.
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// The outputs of the answer.
    #[command(flatten)]
    pub telling: TellingArgs,
    /// The command and its arguments. Its standard input is empty; its standard output is not shown, and the end of its
    /// standard error only for the first failure.
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["input", "from", "column"])]
    pub command: Vec<OsString>,
}

/// The outputs of an answer.
#[derive(Debug, Clone, Args)]
pub struct TellingArgs {
    /// Print the answer as JSON.
    #[arg(long)]
    pub json: bool,
    /// Write the answer as a JUnit test case.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Draw the answer.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Show no progress.
    #[arg(short, long)]
    pub quiet: bool,
}

/// Further questions about an objective.
#[derive(Debug, Subcommand)]
pub enum SloCommand {
    /// Predict how many observations a decision takes, and how likely a decision is within the limit.
    Plan(SloPlanArgs),
}

/// `millstream slo plan`.
#[derive(Debug, Args)]
#[command(after_help = SLO_PLAN_STATUS)]
pub struct SloPlanArgs {
    /// The claim.
    #[command(flatten)]
    pub claim: ClaimArgs,
    /// The maximum number of observations.
    #[arg(long, value_name = "N", value_parser = at_least_one, default_value = "10000")]
    pub limit: u64,
    /// Suppose that this is the true rate; may be given several times [default: some on either side of the threshold].
    #[arg(long, value_name = "P", value_parser = number::parse)]
    pub rate: Vec<f64>,
    /// Print the answer as JSON.
    #[arg(long)]
    pub json: bool,
}

pub(super) fn method(text: &str) -> Result<Method, String> {
    text.parse().map_err(|error: millstream_csm::Error| error.to_string())
}

fn regex(text: &str) -> Result<Regex, String> {
    // `^` and `$` are the ends of a line, as with grep.
    RegexBuilder::new(text).multi_line(true).build().map_err(|error| error.to_string())
}

fn separator(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => Err("expected one character, or \\t".to_owned()),
    }
}

fn at_least_one(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(0) => Err("without an observation nothing can be decided".to_owned()),
        Ok(count) => Ok(count),
        Err(_) => Err("expected a number of observations".to_owned()),
    }
}

fn jobs(text: &str) -> Result<usize, String> {
    const MAX_JOBS: usize = 1024;
    match text.parse() {
        Ok(0) => Err("zero runs at a time would observe nothing".to_owned()),
        Ok(count) if count <= MAX_JOBS => Ok(count),
        Ok(_) => Err(format!("at most {MAX_JOBS} runs at a time")),
        Err(_) => Err("expected a number of runs".to_owned()),
    }
}
