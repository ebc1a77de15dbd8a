//! `millstream csm permutation`: the exact test of two samples.
//!
//! The p-value is the rate at which chance alone produces a difference at least as large as the observed difference.
//! The test divides all values at random into two samples, again and again, and decides whether that rate is below a
//! threshold. The divisions are independent, so this is a claim about a success rate, and the test ends as soon as the
//! answer is clear.

use std::ffi::OsString;
use std::path::Path;

use clap::{Args, ValueEnum};
use millstream_csm::permutation::{Null, Permutation, Tail, mean_difference, median_difference};
use millstream_csm::random::Random;
use millstream_csm::{Driver, Progress, Setup, Status, Verdict};

use super::args::{ColumnArgs, method};
use super::compare::fresh_seed;
use super::error::{EvidenceError, FAILS, HOLDS, UNDECIDED};
use super::functions::read_values;
use super::json::Object;
use super::lines::Fields;
use super::number::{exact, parse, short, short_high, short_low};
use super::print;

const HELP: &str = "\
Examples:
  millstream csm permutation before.txt after.txt                     do the means differ?
  millstream csm permutation a.txt b.txt --statistic median --tail less --p-below 0.001

Exit status:
  0  the p-value is below the threshold: such a difference is not chance
  1  it is not below
  2  the arguments are wrong
  3  undecided after --limit divisions
  4  invalid data, or something could not be read or written";

/// `millstream csm permutation`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct PermutationArgs {
    /// A file of numbers, one a line; `-` is standard input.
    #[arg(value_name = "A")]
    pub a: OsString,
    /// Another file of numbers.
    #[arg(value_name = "B")]
    pub b: OsString,
    /// The statistic whose difference is tested, as A minus B.
    #[arg(long, value_enum, default_value = "mean")]
    pub statistic: Statistic,
    /// The tail that counts as extreme. `greater` asks whether A's values are the larger ones,
    /// as in scipy; `both` counts differences of at least the size observed, where scipy doubles the smaller tail.
    #[arg(long, value_enum, default_value = "both")]
    pub tail: Extreme,
    /// The null hypothesis: B has the distribution of A × --scale + X.
    #[arg(long, value_name = "X", value_parser = parse, default_value = "0", allow_negative_numbers = true)]
    pub shift: f64,
    /// The factor in the null hypothesis; see --shift.
    #[arg(long, value_name = "X", value_parser = parse, default_value = "1", allow_negative_numbers = true)]
    pub scale: f64,
    /// Decide whether the p-value is below this.
    #[arg(long, value_name = "P", value_parser = parse, default_value = "0.01")]
    pub p_below: f64,
    /// The maximum probability of a wrong decision about the p-value.
    #[arg(long, value_name = "E", value_parser = parse, default_value = "1e-6")]
    pub error: f64,
    /// How evidence is weighed: mixture, balanced, centred, one-sided or robbins.
    #[arg(long, value_name = "NAME", value_parser = method, default_value = "mixture")]
    pub method: millstream_csm::Method,
    /// The maximum number of divisions.
    #[arg(long, value_name = "N", default_value = "1000000")]
    pub limit: u64,
    /// The seed of the random numbers [default: a fresh one, which is printed].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// How lines are read.
    #[command(flatten)]
    pub column: ColumnArgs,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// The statistic of a permutation test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Statistic {
    /// The difference of the means.
    Mean,
    /// The difference of the medians.
    Median,
}

/// The tail of a permutation test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Extreme {
    /// A difference at least as large as the observed one.
    Greater,
    /// A difference at most as large as the observed one.
    Less,
    /// A difference of at least the observed size, in either direction; `two-sided` is the same.
    #[value(alias = "two-sided")]
    Both,
}

/// Runs the test, and returns the exit status.
pub(super) fn permutation(args: &PermutationArgs) -> Result<u8, EvidenceError> {
    if args.a == "-" && args.b == "-" {
        return Err(EvidenceError::usage("A and B cannot both be standard input"));
    }
    let setup = Setup::new(millstream_csm::Claim::AtMost(args.p_below), args.error);
    let setup = setup.method(args.method).limit(args.limit);
    let mut driver = Driver::new(&setup).map_err(EvidenceError::Question)?;
    let read = |name: &OsString| Fields::open(Path::new(name), &args.column).and_then(read_values);
    let (first, second) = (read(&args.a)?, read(&args.b)?);
    let statistic = match args.statistic {
        Statistic::Mean => mean_difference,
        Statistic::Median => median_difference,
    };
    let tail = match args.tail {
        Extreme::Greater => Tail::Greater,
        Extreme::Less => Tail::Less,
        Extreme::Both => Tail::Both,
    };
    let null = Null { shift: args.shift, scale: args.scale };
    let mut test = Permutation::new(&first, &second, statistic, tail, null).map_err(EvidenceError::Question)?;
    let seed = args.seed.unwrap_or_else(fresh_seed);
    let mut random = Random::seeded(seed);
    let status = driver.run(|| test.draw(&mut random), |_| ());
    print(&if args.json { json(&status, test.observed(), seed) } else { text(args, &status, test.observed(), seed) })?;
    Ok(match status.progress {
        Progress::Decided(Verdict::Holds) => HOLDS,
        Progress::Decided(Verdict::Fails) => FAILS,
        Progress::Running | Progress::AtLimit => UNDECIDED,
    })
}

fn word(progress: Progress) -> &'static str {
    match progress {
        Progress::Decided(Verdict::Holds) => "holds",
        Progress::Decided(Verdict::Fails) => "fails",
        Progress::Running | Progress::AtLimit => "undecided",
    }
}

fn text(args: &PermutationArgs, status: &Status, observed: f64, seed: u64) -> String {
    let below = short(args.p_below);
    let finding = match status.progress {
        Progress::Decided(Verdict::Holds) => format!("not chance: the p-value is less than {below}"),
        Progress::Decided(Verdict::Fails) => format!("may be chance: the p-value is more than {below}"),
        Progress::Running | Progress::AtLimit => format!("undecided: whether the p-value is less than {below}"),
    };
    format!(
        "{finding}\n  difference  {}\n  p-value     {} to {}, right at all times at once\n  divisions   {}, {} of them as \
         extreme (seed {seed})\n  wrong       with a probability of at most {}\n",
        exact(observed),
        short_low(status.interval.low),
        short_high(status.interval.high),
        status.trials,
        status.successes,
        short(args.error)
    )
}

fn json(status: &Status, observed: f64, seed: u64) -> String {
    let interval = Object::new().number("low", status.interval.low).number("high", status.interval.high);
    let object = Object::new()
        .text("verdict", word(status.progress))
        .number("statistic", observed)
        .count("trials", status.trials)
        .count("successes", status.successes)
        .object("interval", &interval)
        .count("seed", seed);
    format!("{}\n", object.done())
}
