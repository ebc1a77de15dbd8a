//! `millstream compare`: which of two is smaller, and by what ratio.
//!
//! Two commands are run in pairs, and a coin says which of a pair comes first: whatever drifts in the machine meets both
//! alike, and if neither were faster each would win half of the pairs, whatever it does to be first. That is what the
//! evidence is weighed against, pair by pair, so it may be looked at after each.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use millstream_csm::compare::{Comparison, Paired, Smaller, samples};
use millstream_csm::random::Random;

use super::args::CompareArgs;
use super::bar::Bar;
use super::error::{EvidenceError, FAILS, HOLDS, UNDECIDED};
use super::functions::read_values;
use super::jobs::{Allowance, End, Interrupts};
use super::json::Object;
use super::lines::Fields;
use super::number::{short, short_high, short_low};
use super::program::{Program, Runner};
use super::{ended, print};
use crate::ops::exec::how;
use crate::screen::line::Line;
use crate::screen::look::{Look, Paint};
use crate::screen::text;

/// The most pairs unless `--limit` says otherwise: two equals are never told apart.
const MOST_PAIRS: u64 = 100_000;

/// What a shell would do something with; a line without them is words and blanks.
const SHELL: &[u8] = b"|&;<>()$`\\\"'*?[]#~=%{}!\n";

/// Compares and gives the exit status.
pub fn compare(args: &CompareArgs) -> ExitCode {
    ended(if args.run { compare_commands(args) } else { compare_files(args) })
}

/// What came out.
struct Answer<'a> {
    args: &'a CompareArgs,
    comparison: Comparison,
    /// What was compared: `pairs of runs`, …
    of: &'static str,
    /// Why it was not decided.
    reason: &'static str,
    seed: Option<u64>,
}

fn compare_files(args: &CompareArgs) -> Result<u8, EvidenceError> {
    for (given, name) in [(args.running.timeout.is_some(), "--timeout"), (args.running.time.is_some(), "--for")] {
        if given {
            return Err(EvidenceError::usage(format!("{name} is about commands; add --run to run A and B")));
        }
    }
    if !args.paired && args.running.limit.is_some() {
        return Err(EvidenceError::usage("--limit is about pairs; add --paired or --run"));
    }
    if (args.a.as_os_str(), args.b.as_os_str()) == (OsStr::new("-"), OsStr::new("-")) {
        return Err(EvidenceError::usage("A and B cannot both be standard input"));
    }
    let read = |name: &OsString| Fields::open(Path::new(name), &args.column).and_then(read_values);
    let (first, second) = (read(&args.a)?, read(&args.b)?);
    let place = || format!("{} and {}", args.a.display(), args.b.display());
    let value = |source| EvidenceError::Value { place: place(), source };
    if !args.paired {
        let comparison = samples(&first, &second, args.error).map_err(value)?;
        return Answer { args, comparison, of: "values of each", reason: "the data were over", seed: None }.tell();
    }
    if first.len() != second.len() {
        let problem = format!("expected pairs, found {} and {} lines", first.len(), second.len());
        return Err(EvidenceError::Data { place: place(), problem });
    }
    let mut paired = Paired::new(args.error).map_err(EvidenceError::Question)?;
    let limit = args.running.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    for (first, second) in first.iter().zip(&second).take(limit) {
        if paired.observe(*first, *second).map_err(value)?.is_some() {
            break;
        }
    }
    let reason = if first.len() > limit { "the limit was reached" } else { "the data were over" };
    let comparison = paired.status().map_err(EvidenceError::Question)?;
    Answer { args, comparison, of: "pairs of values", reason, seed: None }.tell()
}

fn compare_commands(args: &CompareArgs) -> Result<u8, EvidenceError> {
    let program = |line: &OsStr| Program::new(&words(line), args.running.timeout, false);
    let programs = [program(&args.a)?, program(&args.b)?];
    let runners = [programs[0].runner()?, programs[1].runner()?];
    let mut paired = Paired::new(args.error).map_err(EvidenceError::Question)?;
    let seed = args.seed.unwrap_or_else(fresh_seed);
    let mut coin = Random::seeded(seed);
    let allowance = Allowance {
        runs: args.running.limit.unwrap_or(MOST_PAIRS),
        until: args.running.time.map(|time| Instant::now() + time),
        jobs: 1,
        first: 1,
    };
    let interrupts = Interrupts::count()?;
    let mut bar = Bar::open(args.quiet);
    let mut pairs = 0;
    let end = loop {
        if let Some(end) = interrupts.stop(&allowance, pairs) {
            break end;
        }
        let mut took = [Duration::ZERO; 2];
        let first = usize::from(coin.next_u64() >> 63 == 1);
        for which in [first, 1 - first] {
            match time_of(&runners[which], allowance.first + pairs, &interrupts)? {
                Some(time) => took[which] = time,
                None => break,
            }
        }
        if took.contains(&Duration::ZERO) {
            break End::Abandoned;
        }
        pairs += 1;
        let decided = paired.observe(took[0].as_secs_f64(), took[1].as_secs_f64());
        if decided.map_err(|source| EvidenceError::Value { place: "the times".to_owned(), source })?.is_some() {
            break End::Enough;
        }
        bar.show(|clock, look| vec![progress(&paired, clock, look)]);
    };
    bar.clear();
    let reason = match end {
        End::Time => "the time was over",
        End::Interrupted | End::Abandoned => "it was interrupted",
        End::Limit | End::Enough => "the limit was reached",
    };
    let comparison = paired.status().map_err(EvidenceError::Question)?;
    Answer { args, comparison, of: "pairs of runs", reason, seed: Some(seed) }.tell()
}

/// How long one run takes; `None` if it was stopped because nobody wants to know any more.
fn time_of(runner: &Runner<'_>, number: u64, interrupts: &Interrupts) -> Result<Option<Duration>, EvidenceError> {
    let Some(run) = runner.run(number, interrupts.unwanted())? else { return Ok(None) };
    let failed = |problem: String| EvidenceError::Data { place: runner.program().line(), problem };
    match run.status {
        Some(status) if status.success() => Ok(Some(run.took)),
        Some(status) => Err(failed(format!("expected it to exit with status 0, it {}{}", how(status), run.complaint))),
        None => Err(failed(format!("expected it to end within --timeout, it was stopped{}", run.complaint))),
    }
}

fn progress(paired: &Paired, clock: Duration, look: Look) -> String {
    let mut line = Line::new(look.columns, look);
    match paired.status() {
        Ok(status) => {
            line.part(Some(Paint::Strong), &text::counted(status.pairs, "pair"));
            if let Some(ratio) = status.ratio {
                line.part(None, &format!("B/A {}", short(ratio)));
            }
            line.part(None, &format!("in {}", interval(&status)));
        }
        Err(error) => drop(line.part(None, &error.to_string())),
    }
    line.part(Some(Paint::Faint), &text::clock(clock.as_nanos() as u64));
    line.done()
}

fn interval(comparison: &Comparison) -> String {
    let show =
        |value: f64, round: fn(f64) -> String| if value.is_finite() { round(value) } else { "anything".to_owned() };
    format!("{} to {}", show(comparison.interval.low, short_low), show(comparison.interval.high, short_high))
}

/// The line as a program and its arguments, or as a script for a shell.
fn words(line: &OsStr) -> Vec<OsString> {
    use std::os::unix::ffi::OsStrExt;
    let bytes = line.as_bytes();
    if bytes.iter().any(|byte| SHELL.contains(byte)) {
        return vec!["/bin/sh".into(), "-c".into(), line.to_owned()];
    }
    bytes
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .map(|word| OsStr::from_bytes(word).to_owned())
        .collect()
}

pub(super) fn fresh_seed() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |time| time.as_nanos() as u64)
}

impl Answer<'_> {
    fn tell(&self) -> Result<u8, EvidenceError> {
        print(&if self.args.json { self.json() } else { self.text() })?;
        Ok(match self.comparison.smaller {
            Some(Smaller::First) => HOLDS,
            Some(Smaller::Second) => FAILS,
            None => UNDECIDED,
        })
    }

    fn text(&self) -> String {
        let look = Look::of_terminal(&io::stdout()).unwrap_or(Look::FILE);
        let (a, b) = (self.args.a.display(), self.args.b.display());
        let word = if self.args.run { "faster" } else { "smaller" };
        let head = match self.comparison.smaller {
            Some(Smaller::First) => look.paint(Paint::Good, &format!("A is {word}: {a}")),
            Some(Smaller::Second) => look.paint(Paint::Bad, &format!("B is {word}: {b}")),
            None => look.paint(Paint::Strong, &format!("undecided which is {word}: {}", self.reason)),
        };
        let mut out = format!("{head}\n");
        let mut line = |name: &str, value: String| {
            out += &format!("  {} {value}\n", look.paint(Paint::Faint, &format!("{name:<9}")));
        };
        line("A", text::printable(&a.to_string()).into_owned());
        line("B", text::printable(&b.to_string()).into_owned());
        let ratio = self.comparison.ratio.map_or_else(String::new, |ratio| format!("{}, ", short(ratio)));
        line("B / A", format!("{ratio}{} (medians)", interval(&self.comparison)));
        line("observed", format!("{} {}", text::count(self.comparison.pairs), self.of));
        line("wrong", format!("with a probability of at most {}, verdict and ratio together", short(self.args.error)));
        if let Some(seed) = self.seed {
            line("seed", seed.to_string());
        }
        out
    }

    fn json(&self) -> String {
        let smaller = self.comparison.smaller.as_ref().map(|smaller| match smaller {
            Smaller::First => "a",
            Smaller::Second => "b",
        });
        let interval =
            Object::new().number("low", self.comparison.interval.low).number("high", self.comparison.interval.high);
        let object = Object::new()
            .text("smaller", smaller)
            .text("a", &*self.args.a.to_string_lossy())
            .text("b", &*self.args.b.to_string_lossy())
            .maybe("ratio", self.comparison.ratio)
            .object("interval", &interval)
            .count("pairs", self.comparison.pairs)
            .number("error", self.args.error)
            .text("undecided_because", smaller.is_none().then_some(self.reason))
            .count("seed", self.seed);
        format!("{}\n", object.done())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_is_asked_only_where_one_is_needed() {
        let split =
            |line: &str| words(OsStr::new(line)).into_iter().map(|w| w.into_string().unwrap()).collect::<Vec<_>>();
        assert_eq!(split("sort  -n file.txt"), ["sort", "-n", "file.txt"]);
        for line in ["a | b", "a > b", "a 'b c'", "a $HOME", "A=1 b", "a *.txt", "a; b"] {
            assert_eq!(split(line), ["/bin/sh", "-c", line]);
        }
    }
}
