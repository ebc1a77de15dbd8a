//! The contents of a run's report.

use std::path::Path;

use millstream_command::screen::text;
use millstream_flow::{Outcome, Report};
use millstream_runner::ops::Gathered;

use super::throughput::Throughput;
use crate::causes::Groups;
use crate::retry::live::RanAgain;
use crate::run::identity::Identity;
use crate::steer::facts::Steered;

/// See the [module](self).
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunReport<'a> {
    /// The flow's report.
    pub report: &'a Report,
    /// The identity of the run.
    pub identity: &'a Identity,
    /// The number of units that have left the flow, over time.
    pub throughput: &'a Throughput,
    /// The causes of dead letters.
    pub causes: &'a Groups,
    /// The changes to the run from outside.
    pub steered: &'a Steered,
    /// The dead letters that were run again during the run.
    pub ran_again: RanAgain,
    /// The reason why the last metrics did not reach their collector, if the push failed.
    pub metrics_lost: Option<&'a str>,
    /// The file of dead letters, if one was written.
    pub dead_letters: Option<&'a Path>,
    /// The stages' gathered files, and their fate.
    pub gathered: &'a [(String, Gathered)],
    /// The [facts and last state](crate::serve::feed::Feed::frozen) of the run's page.
    pub page: &'a str,
}

/// The outcome of a run in words. A run with dead letters is never called complete.
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

/// Whether the source was read to its end and no unit was dead-lettered.
pub(crate) fn is_good(report: &Report) -> bool {
    report.outcome == Outcome::Complete && report.dead_lettered == 0
}
