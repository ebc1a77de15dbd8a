//! The answer to a question about an objective, from which every report is made.

use std::time::Duration;

use millstream_csm::Verdict;

use super::claim::Stated;
use super::decide::View;
use super::error::{FAILS, HOLDS, UNDECIDED};
use super::jobs::End;

/// A description of the observations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Subject {
    /// The origin of all observations: `curl -fsS …`, a file's name.
    pub(super) of: String,
    /// One observation: `run`, `line`, `unit`.
    pub(super) noun: &'static str,
    /// The conditions of a success, or the range of the values.
    pub(super) rule: String,
}

/// The reason why the observations ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// The evidence in the state file is already sufficient.
    Before,
    /// The data ran out.
    Data,
    /// See [`End`].
    Runs(End),
}

/// See the [module](self).
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) stated: Stated,
    /// The method's name.
    pub(super) method: String,
    pub(super) subject: Subject,
    pub(super) view: View,
    pub(super) ended: Ended,
    /// The number of observations that come from a state file.
    pub(super) kept: u64,
    pub(super) wall: Duration,
    /// The first observation that was not a success, and the reason.
    pub(super) first_failure: Option<String>,
    /// The range of the values, if the claim is about a mean.
    pub(super) range: Option<(f64, f64)>,
}

impl Answer {
    /// Returns the verdict as one word.
    pub(super) fn word(&self) -> &'static str {
        match self.view.verdict() {
            Some(Verdict::Holds) => "holds",
            Some(Verdict::Fails) => "fails",
            None => "undecided",
        }
    }

    /// Returns the exit status.
    pub(super) fn status(&self) -> u8 {
        match self.view.verdict() {
            Some(Verdict::Holds) => HOLDS,
            Some(Verdict::Fails) => FAILS,
            None => UNDECIDED,
        }
    }

    /// Returns the claim as a sentence: `the rate of success is at least 0.99`.
    pub(super) fn claim(&self) -> String {
        format!("the {} is {}", self.quantity(), self.stated.words())
    }

    /// Returns the finding, as a sentence: `holds: the rate of success is at least 0.99`.
    pub(super) fn finding(&self) -> String {
        match self.view.verdict() {
            Some(verdict) => format!("{}: the {} is {}", self.word(), self.quantity(), self.stated.found(verdict)),
            None => format!("{}: whether {}", self.word(), self.claim()),
        }
    }

    fn quantity(&self) -> &'static str {
        if self.range.is_some() { "mean" } else { "rate of success" }
    }

    /// Returns the reason why the claim was not decided.
    pub(super) fn reason(&self) -> Option<&'static str> {
        if self.view.verdict().is_some() {
            return None;
        }
        Some(match self.ended {
            Ended::Before | Ended::Runs(End::Enough) => "there was nothing left to observe",
            Ended::Data => "the data ran out",
            Ended::Runs(End::Limit) => "the limit was reached",
            Ended::Runs(End::Time) => "the time ran out",
            Ended::Runs(End::Interrupted) => "it was interrupted",
            Ended::Runs(End::Abandoned) => "it was interrupted twice, and nothing was added to the state",
        })
    }

    /// Returns the interval as text for display.
    pub(super) fn interval(&self) -> String {
        self.stated.show_interval(self.view.interval)
    }
}
