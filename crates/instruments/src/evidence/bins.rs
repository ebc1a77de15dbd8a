//! `millstream csm bins`: how full are all bins when the first one is full?

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use millstream_csm::bins::{Bins, Direct, Poissonised};
use millstream_csm::random::Random;
use millstream_csm::{Claim, Driver, Interval, Progress, Setup, Status, Verdict, interval};

use super::compare::fresh_seed;
use super::error::{EvidenceError, FAILS, HOLDS, UNDECIDED};
use super::json::Object;
use super::number::{self, Quantity};
use super::print;

/// Trials without a claim, where each costs microseconds.
const TRIALS: u64 = 10_000;

/// The most trials for a claim.
const MOST_TRIALS: u64 = 1_000_000;

const HELP: &str = "\
Examples:
  millstream csm bins --bins 1000 --capacity 30000
  millstream csm bins --bins 1000 --capacity 30000 --fill 0.98
  millstream csm bins --bins 1000 --capacity 30000 --fill 97.5% --at-least 0.98

Exit status:
  0  the claim holds, or there was none
  1  it fails to hold
  2  the arguments are wrong
  3  undecided after --trials trials; the interval so far is printed";

/// `millstream csm bins`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct BinsArgs {
    /// How many bins there are.
    #[arg(long, value_name = "N")]
    pub bins: u32,
    /// How many balls a bin holds.
    #[arg(long, value_name = "N")]
    pub capacity: u32,
    /// How likely is it that this share of all places, or more, is in use when the first bin is full?
    #[arg(long, value_name = "X", value_parser = number::parse)]
    pub fill: Option<f64>,
    /// Decide whether that probability is more than P.
    #[arg(long, value_name = "P", value_parser = number::parse, requires = "fill")]
    pub at_least: Option<f64>,
    /// Decide whether it is less than P. With --at-least as well: whether it lies within.
    #[arg(long, value_name = "P", value_parser = number::parse, requires = "fill")]
    pub at_most: Option<f64>,
    /// Two thresholds: above LOW it may be said to hold, below HIGH it may be said to fail.
    #[arg(long, value_name = "LOW..HIGH", value_parser = number::parse_pair, requires = "fill",
          conflicts_with_all = ["at_least", "at_most"])]
    pub between: Option<(Quantity, Quantity)>,
    /// The most that the probability of a wrong answer, verdict or interval, may be.
    #[arg(long, value_name = "E", value_parser = number::parse, default_value = "1e-6")]
    pub error: f64,
    /// The number of trials; for a claim, the most that are made [default: 10000; for a claim 1000000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub trials: Option<u64>,
    /// Throw every ball. The distribution is the same and a trial takes thousands of times longer.
    #[arg(long)]
    pub direct: bool,
    /// The seed of the random numbers [default: a fresh one, which is told].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Print the answer as JSON.
    #[arg(long)]
    pub json: bool,
}

/// What the trials showed.
struct Answer {
    bins: Bins,
    seed: u64,
    fills: Fills,
    /// The share of trials that reached `--fill`.
    reached: Option<Reached>,
}

struct Reached {
    fill: f64,
    successes: u64,
    interval: Interval,
    /// What became of the claim, if there is one.
    progress: Option<Progress>,
}

/// Answers, on standard output.
pub(crate) fn bins(args: &BinsArgs) -> Result<ExitCode, EvidenceError> {
    let answer = answer(args)?;
    print(&if args.json { answer.json() } else { answer.text(args.error) })?;
    Ok(answer.exit())
}

fn answer(args: &BinsArgs) -> Result<Answer, EvidenceError> {
    let bins = Bins::new(args.bins, args.capacity).map_err(EvidenceError::Question)?;
    let seed = args.seed.unwrap_or_else(fresh_seed);
    let mut fills = Fills::default();
    let mut trial = trials_of(bins, args.direct, seed);
    let mut fill = || {
        let fill = bins.fill(trial());
        fills.note(fill);
        fill
    };
    let reached = match (args.fill, claim(args)) {
        (Some(wanted), Some(claim)) => {
            let setup = Setup::new(claim, args.error).limit(args.trials.unwrap_or(MOST_TRIALS));
            let mut driver = Driver::new(&setup).map_err(EvidenceError::Question)?;
            let Status { successes, interval, progress, .. } = driver.run(|| fill() >= wanted, |_| ());
            Some(Reached { fill: wanted, successes, interval, progress: Some(progress) })
        }
        (wanted, _) => {
            let trials = args.trials.unwrap_or(TRIALS);
            let successes =
                (0..trials).map(|_| fill()).filter(|&fill| wanted.is_some_and(|wanted| fill >= wanted)).count();
            let successes = successes as u64;
            // The number of trials was set before the first.
            let interval = || interval::fixed(trials, successes, args.error).map_err(EvidenceError::Question);
            let reached =
                |fill| Ok::<_, EvidenceError>(Reached { fill, successes, interval: interval()?, progress: None });
            wanted.map(reached).transpose()?
        }
    };
    Ok(Answer { bins, seed, fills, reached })
}

fn claim(args: &BinsArgs) -> Option<Claim> {
    match (args.between, args.at_least, args.at_most) {
        (Some((low, high)), ..) => Some(Claim::Between { low: low.value, high: high.value }),
        (None, Some(low), Some(high)) => Some(Claim::Within { low, high }),
        (None, Some(low), None) => Some(Claim::AtLeast(low)),
        (None, None, Some(high)) => Some(Claim::AtMost(high)),
        (None, None, None) => None,
    }
}

/// Makes one trial after another: how many balls until the first bin is full.
fn trials_of(bins: Bins, direct: bool, seed: u64) -> Box<dyn FnMut() -> u64> {
    let mut random = Random::seeded(seed);
    if direct {
        let mut direct = Direct::new(bins);
        Box::new(move || direct.balls(&mut random))
    } else {
        let mut poissonised = Poissonised::new(bins);
        Box::new(move || poissonised.balls(&mut random))
    }
}

/// Mean and deviation so far, by Welford's recurrence.
#[derive(Debug, Default)]
struct Fills {
    trials: u64,
    mean: f64,
    squares: f64,
}

impl Fills {
    fn note(&mut self, fill: f64) {
        self.trials += 1;
        let off = fill - self.mean;
        self.mean += off / self.trials as f64;
        self.squares += off * (fill - self.mean);
    }

    /// The deviation of one trial; not known from one.
    fn deviation(&self) -> Option<f64> {
        (self.trials > 1).then(|| (self.squares / (self.trials - 1) as f64).sqrt())
    }
}

impl Answer {
    fn exit(&self) -> ExitCode {
        let progress = self.reached.as_ref().and_then(|reached| reached.progress);
        ExitCode::from(match progress {
            None | Some(Progress::Decided(Verdict::Holds)) => HOLDS,
            Some(Progress::Decided(Verdict::Fails)) => FAILS,
            Some(Progress::Running | Progress::AtLimit) => UNDECIDED,
        })
    }

    fn text(&self, error: f64) -> String {
        let (bins, fills) = (self.bins, &self.fills);
        let mut text = format!(
            "{} bins of {} balls, {} trials (seed {})\nfill when the first bin is full: mean {:.5}",
            bins.bins(),
            bins.capacity(),
            fills.trials,
            self.seed,
            fills.mean
        );
        if let Some(deviation) = fills.deviation() {
            let _ = write!(text, ", standard deviation {deviation:.5}");
        }
        if let Some(reached) = &self.reached {
            let rate = reached.successes as f64 / fills.trials as f64;
            let (low, high) = (reached.interval.low, reached.interval.high);
            let _ = write!(
                text,
                "\nP(fill >= {}) ~ {rate:.5}, within [{low:.5}, {high:.5}] (wrong with probability < {})",
                number::short(reached.fill),
                number::short(error)
            );
            if let Some(verdict) = reached.verdict() {
                let _ = write!(text, "\nthe claim {}", verdict.replace("undecided", "is undecided"));
            }
        }
        text.push('\n');
        text
    }

    fn json(&self) -> String {
        let mut object = Object::new()
            .count("bins", u64::from(self.bins.bins()))
            .count("capacity", u64::from(self.bins.capacity()))
            .count("seed", self.seed)
            .count("trials", self.fills.trials)
            .number("mean", self.fills.mean)
            .maybe("deviation", self.fills.deviation());
        if let Some(reached) = &self.reached {
            object = object
                .number("fill", reached.fill)
                .count("successes", reached.successes)
                .number("low", reached.interval.low)
                .number("high", reached.interval.high)
                .text("verdict", reached.verdict());
        }
        object.done() + "\n"
    }
}

impl Reached {
    /// `holds`, `fails` or `undecided`; nothing without a claim.
    fn verdict(&self) -> Option<&'static str> {
        self.progress.map(|progress| match progress {
            Progress::Decided(Verdict::Holds) => "holds",
            Progress::Decided(Verdict::Fails) => "fails",
            Progress::Running | Progress::AtLimit => "undecided",
        })
    }
}
