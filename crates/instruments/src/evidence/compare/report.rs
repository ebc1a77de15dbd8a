//! The answer, as text and as JSON.

use std::ffi::OsStr;

use millstream_command::screen::look::{Look, Paint};
use millstream_command::screen::text;
use millstream_csm::compare::{Comparison, Smaller};

use super::args::CompareArgs;
use super::commands::Command;
use super::times::Times;
use super::{export, letter};
use crate::evidence::claim::time;
use crate::evidence::error::{EvidenceError, FAILS, HOLDS, UNDECIDED};
use crate::evidence::json::Object;
use crate::evidence::number::{short, short_high, short_low};
use crate::evidence::print;

/// A competitor: its name and, for a command, its times.
pub(super) struct Subject {
    name: String,
    /// The times of a command.
    times: Option<Times>,
}

impl Subject {
    pub(super) fn file(name: &OsStr) -> Self {
        Subject { name: name.display().to_string(), times: None }
    }

    pub(super) fn command(command: Command) -> Self {
        Subject { name: command.name, times: Some(command.times) }
    }
}

/// The comparison of a later subject with the first.
pub(super) struct Against {
    comparison: Comparison,
    /// Whether the ratio is above its limit (1, or the claim's limit); `None` if that is undecided.
    is_above: Option<bool>,
}

impl Against {
    /// Returns the comparison of pairs. Each pair has been compared with the claim's ratio, or with 1 if there is no
    /// claim.
    pub(super) fn pairs(comparison: Comparison) -> Self {
        let is_above = comparison.smaller.map(|smaller| smaller == Smaller::First);
        Against { comparison, is_above }
    }

    /// Returns the comparison of samples. Their interval is compared with `1 + at_most`, or with 1 if there is no
    /// claim.
    pub(super) fn samples(comparison: Comparison, at_most: Option<f64>) -> Self {
        let limit = 1.0 + at_most.unwrap_or(0.0);
        let is_above = match comparison.interval {
            interval if interval.low > limit => Some(true),
            interval if interval.high < limit => Some(false),
            _ => None,
        };
        Against { comparison, is_above }
    }
}

/// The result of a comparison.
pub(super) struct Answer<'a> {
    pub(super) args: &'a CompareArgs,
    pub(super) subjects: Vec<Subject>,
    /// The other subjects, each compared with the first.
    pub(super) others: Vec<Against>,
    /// The compared things: `pairs of runs`, …
    pub(super) of: &'static str,
    /// The condition on which the error probability holds, as the end of a sentence; empty if there is none.
    pub(super) condition: &'static str,
    /// The reason why the comparison was not decided.
    pub(super) reason: &'static str,
    pub(super) seed: Option<u64>,
}

impl Answer<'_> {
    pub(super) fn tell(&self) -> Result<u8, EvidenceError> {
        print(&if self.args.json { self.json() } else { self.text() })?;
        Ok(self.status())
    }

    fn status(&self) -> u8 {
        // Without a claim, the first is smaller if the ratio is above 1. A claim holds if the ratio is below its limit.
        // `good` is the value of `is_above` that leads to status 0.
        let good = self.args.at_most_slower.is_none();
        if self.others.iter().any(|other| other.is_above == Some(!good)) {
            FAILS
        } else if self.others.iter().all(|other| other.is_above == Some(good)) {
            HOLDS
        } else {
            UNDECIDED
        }
    }

    /// Returns the letters of those other subjects that have this answer.
    fn letters(&self, is_above: Option<bool>) -> String {
        let letters = self.others.iter().zip(1..).filter(|(other, _)| other.is_above == is_above);
        letters.map(|(_, place)| letter(place)).collect::<Vec<_>>().join(", ")
    }

    fn head(&self, look: Look) -> String {
        let word = if self.args.run { "faster" } else { "smaller" };
        let undecided = |what: String| look.paint(Paint::Strong, &format!("undecided {what}: {}", self.reason));
        let status = self.status();
        if let Some(part) = self.args.at_most_slower {
            let more = if self.args.run { "slower" } else { "larger" };
            let claim = |letters: String| format!("{letters} at most {} % {more} than A", short(part * 100.0));
            return match status {
                HOLDS => look.paint(Paint::Good, &format!("holds: {}", claim(self.letters(Some(false))))),
                FAILS => look.paint(Paint::Bad, &format!("fails: not {}", claim(self.letters(Some(true))))),
                _ => undecided(format!("whether {}", claim(self.letters(None)))),
            };
        }
        let name = |place: usize| text::printable(&self.subjects[place].name);
        match (self.others.as_slice(), status) {
            ([_], HOLDS) => look.paint(Paint::Good, &format!("A is {word}: {}", name(0))),
            ([_], FAILS) => look.paint(Paint::Bad, &format!("B is {word}: {}", name(1))),
            ([_], _) => undecided(format!("which is {word}")),
            (_, HOLDS) => look.paint(Paint::Good, &format!("A is {word} than all others: {}", name(0))),
            (_, FAILS) => look.paint(Paint::Bad, &format!("{word} than A: {}", self.letters(Some(false)))),
            _ => undecided(format!("whether A is {word} than {}", self.letters(None))),
        }
    }

    fn text(&self) -> String {
        let look = Look::of_stdout().unwrap_or(Look::FILE);
        let mut out = format!("{}\n", self.head(look));
        let mut line = |name: &str, value: String| {
            out += &format!("  {} {value}\n", look.paint(Paint::Faint, &format!("{name:<9}")));
        };
        for (subject, place) in self.subjects.iter().zip(0..) {
            line(&letter(place), text::printable(&subject.name).into_owned());
            subject.times.iter().flat_map(times).for_each(|times| line("", times));
        }
        for (other, place) in self.others.iter().zip(1..) {
            let comparison = &other.comparison;
            let ratio = comparison.ratio.map_or_else(String::new, |ratio| format!("{}, ", short(ratio)));
            let name = format!("{} / A", letter(place));
            line(&name, format!("{ratio}{} (medians)", interval(comparison)));
        }
        let observed: Vec<String> = self.others.iter().map(|other| text::count(other.comparison.pairs)).collect();
        line("observed", format!("{} {}", observed.join(", "), self.of));
        let error = short(self.args.error);
        line("wrong", format!("with a probability of at most {error}, verdict and ratio together{}", self.condition));
        if let Some(seed) = self.seed {
            line("seed", seed.to_string());
        }
        out
    }

    fn json(&self) -> String {
        let of = |other: &Against| {
            let interval = other.comparison.interval;
            let smaller = other.comparison.smaller.map(|smaller| if smaller == Smaller::First { "a" } else { "b" });
            let interval = Object::new().number("low", interval.low).number("high", interval.high);
            (smaller, interval)
        };
        let verdict = match self.status() {
            HOLDS => "holds",
            FAILS => "fails",
            _ => "undecided",
        };
        let mut object = Object::new();
        if let ([other], [a, b]) = (self.others.as_slice(), self.subjects.as_slice()) {
            let (smaller, interval) = of(other);
            let smaller = if self.args.at_most_slower.is_some() { None } else { smaller };
            object = object
                .text("smaller", smaller)
                .text("a", a.name.as_str())
                .text("b", b.name.as_str())
                .maybe("ratio", other.comparison.ratio)
                .object("interval", &interval)
                .count("pairs", other.comparison.pairs);
        }
        if let Some(part) = self.args.at_most_slower {
            object = object.text("verdict", verdict).number("at_most_slower", part);
        }
        let commands: Vec<Object> = self
            .subjects
            .iter()
            .filter_map(|subject| {
                let times = subject.times.as_ref()?;
                let object =
                    Object::new().text("command", subject.name.as_str()).count("runs", times.wall.len() as u64);
                let summary = times.summary()?;
                Some(export::figures(object, &summary).count("outliers", summary.outliers as u64))
            })
            .collect();
        if self.others.len() > 1 {
            let others: Vec<Object> = self
                .others
                .iter()
                .zip(1..)
                .map(|(other, place)| {
                    Object::new()
                        .text("command", self.subjects[place].name.as_str())
                        .flag("is_above", other.is_above)
                        .maybe("ratio", other.comparison.ratio)
                        .object("interval", &of(other).1)
                        .count("pairs", other.comparison.pairs)
                })
                .collect();
            object = object.list("with_first", &others);
        }
        if !commands.is_empty() {
            object = object.list("commands", &commands);
        }
        let undecided = self.status() == UNDECIDED;
        let object = object
            .number("error", self.args.error)
            .text("undecided_because", undecided.then_some(self.reason))
            .count("seed", self.seed);
        format!("{}\n", object.done())
    }
}

/// Returns a line with a command's times, and one with the number of outliers if there are any.
fn times(times: &Times) -> Vec<String> {
    let Some(summary) = times.summary() else { return Vec::new() };
    let show = |seconds: f64| time(seconds, short);
    let deviation = summary.deviation.map_or_else(String::new, |deviation| format!(" ± {}", show(deviation)));
    let mut lines = vec![format!(
        "median {}, mean {}{deviation}, {} to {}, user {}, system {}",
        show(summary.median),
        show(summary.mean),
        show(summary.min),
        show(summary.max),
        show(summary.user),
        show(summary.system)
    )];
    if summary.outliers > 0 {
        let runs = text::counted(summary.outliers as u64, "run");
        lines.push(format!(
            "{runs} far from the others: is the machine busy, or a cache cold? See --warmup and --prepare"
        ));
    }
    lines
}

/// Returns the interval of a ratio, rounded outwards.
pub(super) fn interval(comparison: &Comparison) -> String {
    let show =
        |value: f64, round: fn(f64) -> String| if value.is_finite() { round(value) } else { "anything".to_owned() };
    format!("{} to {}", show(comparison.interval.low, short_low), show(comparison.interval.high, short_high))
}
