//! The command line of `csm`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use millstream_csm::Method;

use crate::evidence::args::{ClaimArgs, ColumnArgs, method};
use crate::evidence::number;
use crate::evidence::permutation::PermutationArgs;

const HELP: &str = "\
Numbers are decimals, percentages or C hex floats (0x1.f5c28f5c28f5cp-1); logarithms are natural. With --json, numbers have \
17 significant digits, so that reading one back gives the double that was computed. Every rounding is on the side that keeps \
the promise: a level is never too low, a bound never too tight.

Example:
  $ millstream csm stop --trials 4000 --successes 3972 --threshold 0.98 --log-eps -6.907755278982137 --json
  {\"stop\":true,\"level\":-17.238568532412927}

Exit status (`permutation` has its own):
  0  answered
  2  the arguments are wrong
  4  invalid data, or something could not be read or written";

/// `millstream csm`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct CsmArgs {
    /// The function.
    #[command(subcommand)]
    pub command: CsmCommand,
}

/// The functions.
#[derive(Debug, Subcommand)]
pub enum CsmCommand {
    /// Say whether there is enough evidence that a rate differs from a threshold: whether the level, a logarithm, is below
    /// --log-eps.
    Stop(StopArgs),
    /// Compute an interval for a success rate.
    Interval(IntervalArgs),
    /// Compute an interval for a quantile of numbers, right at all times at once.
    Quantile(QuantileArgs),
    /// Compute exactly how likely a decision is within a limit, and how many observations it takes.
    Power(PowerArgs),
    /// Decide whether the difference between two files of numbers is more than chance, by the exact (permutation) test.
    Permutation(PermutationArgs),
}

/// `millstream csm stop`.
#[derive(Debug, Args)]
pub struct StopArgs {
    /// Observations.
    #[arg(long, value_name = "N", value_parser = count)]
    pub trials: u64,
    /// Successes among them.
    #[arg(long, value_name = "S", value_parser = count)]
    pub successes: u64,
    /// The threshold with which the true success rate is compared.
    #[arg(long, value_name = "P", value_parser = number::parse)]
    pub threshold: f64,
    /// The logarithm of the error probability.
    #[arg(long, value_name = "X", value_parser = number::parse, allow_hyphen_values = true)]
    pub log_eps: f64,
    /// How evidence is weighed: robbins, mixture, balanced, centred or one-sided. The probability of ever stopping at
    /// the threshold itself is at most e^X; with one-sided it is up to twice that, because each direction has e^X of
    /// its own.
    #[arg(long, value_name = "NAME", value_parser = method, default_value = "robbins")]
    pub method: Method,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `millstream csm interval`.
#[derive(Debug, Args)]
pub struct IntervalArgs {
    /// Observations.
    #[arg(long, value_name = "N", value_parser = count)]
    pub trials: u64,
    /// Successes among them.
    #[arg(long, value_name = "S", value_parser = count)]
    pub successes: u64,
    /// The maximum probability of missing the true rate.
    #[arg(long, value_name = "E", value_parser = number::parse)]
    pub error: f64,
    /// The promise of the interval.
    #[arg(long, value_enum, default_value = "watched")]
    pub kind: Kind,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// The promise of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Right at all numbers of observations at once: look whenever you like, stop when you like.
    Watched,
    /// Right if the number of observations was fixed before any was made (Clopper and Pearson).
    Fixed,
    /// The middle of the Beta posterior under a uniform prior; its promise is for a rate drawn from that prior.
    Credible,
}

/// `millstream csm quantile`.
#[derive(Debug, Args)]
pub struct QuantileArgs {
    /// The quantile: 0.5 is the median, 0.99 is the 99th percentile.
    #[arg(long, value_name = "Q", value_parser = number::parse)]
    pub quantile: f64,
    /// The maximum probability of missing the true quantile.
    #[arg(long, value_name = "E", value_parser = number::parse)]
    pub error: f64,
    /// Read no numbers: print the ranks that the ends of the interval have in a sorted sample of this many numbers.
    #[arg(long, value_name = "N", value_parser = count, conflicts_with_all = ["input", "column"])]
    pub trials: Option<u64>,
    /// Read the numbers from this file [default: standard input].
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// How lines are read.
    #[command(flatten)]
    pub column: ColumnArgs,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// `millstream csm power`.
#[derive(Debug, Args)]
pub struct PowerArgs {
    /// The claim.
    #[command(flatten)]
    pub claim: ClaimArgs,
    /// The true rate.
    #[arg(long, value_name = "P", value_parser = number::parse)]
    pub rate: f64,
    /// The maximum number of observations.
    #[arg(long, value_name = "N", value_parser = count)]
    pub limit: u64,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Reads a whole number, in digits or in any other form that `number` reads, such as 1e6.
fn count(text: &str) -> Result<u64, String> {
    /// Beyond this, not every whole number is a double.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if let Ok(count) = text.parse() {
        return Ok(count);
    }
    match number::parse(text) {
        Ok(value) if value >= 0.0 && value.fract() == 0.0 && value <= EXACT => Ok(value as u64),
        _ => Err(format!("expected a whole number, found `{text}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn counts_are_whole() {
        for (text, value) in [("0", 0), ("1e6", 1_000_000), ("18446744073709551615", u64::MAX), ("0x10", 16)] {
            assert_eq!(count(text), Ok(value));
        }
        for text in ["-1", "1.5", "1e99", "x", "", "NaN"] {
            assert!(count(text).is_err(), "{text}");
        }
    }
}
