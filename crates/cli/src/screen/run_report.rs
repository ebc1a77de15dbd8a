//! Everything that the report of one run tells.

use std::path::Path;

use millstream_command::screen::text;
use millstream_flow::{Outcome, Report};

use super::throughput::Throughput;
use crate::causes::Groups;
use crate::ops::Gathered;
use crate::retry::live::RanAgain;
use crate::run::identity::Identity;
use crate::steer::facts::Steered;

/// See the [module](self).
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunReport<'a> {
    /// The flow's report.
    pub report: &'a Report,
    /// Which run it was.
    pub identity: &'a Identity,
    /// How many units left it, over time.
    pub throughput: &'a Throughput,
    /// Why units dead-lettered.
    pub causes: &'a Groups,
    /// The changes from outside.
    pub steered: &'a Steered,
    /// The dead letters that were run again while it went on.
    pub ran_again: RanAgain,
    /// The reason why the last metrics did not come to their collector, if they did not.
    pub metrics_lost: Option<&'a str>,
    /// The file of dead letters, if one was written.
    pub dead_letters: Option<&'a Path>,
    /// The stages' gathered files, and what became of them.
    pub gathered: &'a [(String, Gathered)],
    /// Its page's [facts and last state](crate::serve::feed::Feed::frozen).
    pub page: &'a str,
}

/// How a run ended, in words that are not better than it was.
pub(crate) fn outcome(report: &Report) -> String {
    let ended = match report.outcome {
        Outcome::Complete => "complete",
        Outcome::Stopped => "stopped",
        Outcome::StoppedByFailure => "stopped by a failure",
        Outcome::Abandoned => "abandoned",
    };
    match (report.dead_lettered, report.outcome) {
        (0, _) => ended.to_owned(),
        (dead, Outcome::Complete) => {
            format!("{} of {} units dead-lettered", text::count(dead), text::count(report.units()))
        }
        (dead, _) => format!("{ended}, {} of {} units dead-lettered", text::count(dead), text::count(report.units())),
    }
}

/// Whether every unit that there was left the flow, done.
pub(crate) fn is_good(report: &Report) -> bool {
    report.outcome == Outcome::Complete && report.dead_lettered == 0
}
