//! What is said and written when a run is over, and the exit status that sums it up.

use std::io::{self, IsTerminal, Write};

use millstream_flow::{Outcome, Quantiles, Report, ResourceReport, Snapshot, StageReport};

use super::watch::whereabouts;
use crate::dead_letters::DeadLetters;
use crate::screen::look::Look;
use crate::screen::report_file::ReportFile;
use crate::screen::{table, text};

/// Every unit was retired.
pub const ALL_RETIRED: u8 = 0;
/// Some units were dead-lettered.
pub const SOME_DEAD: u8 = 1;
/// The flow file or the arguments are wrong.
pub const WRONG: u8 = 2;
/// The run was interrupted.
pub const INTERRUPTED: u8 = 3;
/// The flow ran, and something it was to leave behind could not be written: the report, dead letters, or what a stage
/// gathers.
pub const NOT_WRITTEN: u8 = 4;

/// What the end of a run is told with.
pub(super) struct Closing<'a> {
    pub(super) report: &'a Report,
    /// The flow at the moment it was abandoned, if it was.
    pub(super) abandoned: Option<&'a Snapshot>,
    pub(super) interrupted: bool,
    pub(super) letters: &'a DeadLetters,
    pub(super) report_file: Option<&'a ReportFile>,
    /// Nothing but errors is shown.
    pub(super) quiet: bool,
    /// A stage's programs write to standard output: the table goes to standard error.
    pub(super) stdout_is_taken: bool,
}

impl Closing<'_> {
    /// Writes the report where it was asked for, says what went wrong, and gives the exit status. `written` tells
    /// whether everything could be written so far.
    pub(super) fn tell(&self, mut written: bool) -> u8 {
        if !self.quiet {
            written &= self.print_table();
        }
        let tally = self.letters.tally();
        let letters = (tally.written > 0).then(|| self.letters.path());
        if let Some(Err(error)) = self.report_file.map(|file| file.write(self.report, letters)) {
            complain(&format!("error: {error}"));
            written = false;
        }
        if self.report.dead_lettered > 0 {
            let (dead, path) = (text::counted(self.report.dead_lettered, "unit"), self.letters.path().display());
            complain(&match (tally.written, tally.refused) {
                (_, 0) => format!("{dead} dead-lettered: {path}"),
                (0, _) => format!("{dead} dead-lettered; {path} could not be written, they are shown above"),
                (_, refused) => format!("{dead} dead-lettered: {path}, except for {refused} shown above"),
            });
        }
        if self.report.left > 0 {
            let places = self.abandoned.map(whereabouts).filter(|places| !places.is_empty());
            let places = places.map_or_else(String::new, |places| format!("; when abandoned: {places}"));
            complain(&format!("{} left{places}", text::counted(self.report.left, "unit")));
        }
        written &= tally.refused == 0;
        if self.interrupted {
            INTERRUPTED
        } else if !written {
            NOT_WRITTEN
        } else if self.report.dead_lettered > 0 || self.report.outcome == Outcome::StoppedByFailure {
            SOME_DEAD
        } else {
            ALL_RETIRED
        }
    }

    /// Prints the table; a reader that has gone away has what it wanted.
    fn print_table(&self) -> bool {
        if self.stdout_is_taken {
            let look = Look::of_terminal(&io::stderr()).unwrap_or(Look::FILE);
            complain(table::table(self.report, look).trim_end());
            return true;
        }
        let mut out = io::stdout().lock();
        let look = Look::of_terminal(&out).unwrap_or(Look::FILE);
        match out.write_all(table::table(self.report, look).as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                complain(&format!("error: the report could not be written to standard output: {error}"));
                false
            }
            _ => true,
        }
    }
}

/// Writes a line to standard error; there is nobody to tell if that fails.
pub(super) fn complain(message: &str) {
    let _ = writeln!(io::stderr(), "{message}");
}

/// Whether standard output and standard error are one terminal.
pub(super) fn one_terminal() -> bool {
    io::stdout().is_terminal() && io::stderr().is_terminal()
}

/// The report of a flow that was abandoned and did not end, from the last that was seen of it.
pub(super) fn unfinished(now: &Snapshot) -> Report {
    let stages = now
        .stages
        .iter()
        .map(|stage| StageReport {
            name: stage.name.clone(),
            units: stage.units,
            failures: stage.failures,
            retries: stage.retries,
            dead_lettered: stage.dead_lettered,
            requeued: stage.requeued,
            busy_ns: stage.busy_ns,
            workers_min: stage.workers_min,
            workers_max: stage.workers_max,
            service_ns: stage.service_ns,
            wait_ns: stage.wait_ns,
            waited_for: stage.waited_for.clone(),
        })
        .collect();
    let resources = now
        .resources
        .iter()
        .map(|resource| ResourceReport {
            name: resource.name.clone(),
            kind: resource.kind.clone(),
            capacity: resource.capacity,
            rate_per_s: resource.rate_per_s,
            peak_in_use: resource.peak_in_use,
        })
        .collect();
    Report {
        flow: now.flow.clone(),
        outcome: Outcome::Abandoned,
        admitted: now.admitted,
        retired: now.retired,
        skipped: now.skipped,
        dead_lettered: now.dead_lettered,
        left: now.in_flight,
        wall_s: now.wall_ns as f64 / 1e9,
        peak_in_flight: now.peak_in_flight,
        peak_bytes_in_flight: now.peak_bytes_in_flight,
        oversize: now.oversize,
        inflight_cap: now.inflight_cap,
        memory_cap: now.memory_cap,
        workers: now.workers,
        bottleneck: now.held_by(),
        latency_ns: Quantiles::default(),
        stages,
        resources,
        dead_letters: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::sample::snapshot;

    #[test]
    fn a_report_of_what_did_not_end_accounts_for_every_unit() {
        let now = snapshot();
        let report = unfinished(&now);
        assert_eq!(report.admitted, report.retired + report.dead_lettered + report.left);
        assert_eq!(report.stages.len(), now.stages.len());
        assert!(table::table(&report, Look::FILE).contains("left 213"));
    }
}
