//! The end of a run: its messages, its files and its exit status.

use millstream_command::screen::look::Look;
use millstream_command::screen::out::{self, complain};
use millstream_command::screen::{shown, text};
use millstream_flow::{Outcome, Snapshot};
use millstream_runner::ops::Fate;
use millstream_runner::printer::Trouble;

use super::halt::Reason;
use super::watch::whereabouts;
use crate::dead_letters::DeadLetters;
use crate::screen::report_file::ReportFile;
use crate::screen::run_report::RunReport;
use crate::screen::table;

/// The exit status of a run in which every unit was retired.
pub(crate) const ALL_RETIRED: u8 = 0;
/// The exit status of a run in which units were dead-lettered.
pub(crate) const SOME_DEAD: u8 = 1;
/// The exit status if the flow file or the arguments are wrong.
pub(crate) const WRONG: u8 = 2;
/// The exit status of a run that was interrupted.
pub(crate) const INTERRUPTED: u8 = 3;
/// The exit status if the flow ran, but a result could not be written: the report, dead letters, or the file that a
/// stage gathers.
pub(crate) const NOT_WRITTEN: u8 = 4;

/// The facts that the end of a run reports.
pub(super) struct Closing<'a> {
    pub(super) run: RunReport<'a>,
    /// The state of the flow when it was abandoned, if it was abandoned.
    pub(super) abandoned: Option<&'a Snapshot>,
    pub(super) interrupted: bool,
    /// Whether the source was read to its end.
    pub(super) whole: bool,
    /// The reason why the run has halted of its own accord, if it has halted.
    pub(super) halted: Option<&'a Reason>,
    pub(super) letters: &'a DeadLetters,
    /// The number of letters that a retry did not reach.
    pub(super) kept: u64,
    /// The entries that the walk has left out, in words.
    pub(super) left_out: Option<String>,
    pub(super) report_file: Option<&'a ReportFile>,
    /// Whether the table is printed.
    pub(super) table: bool,
    /// Whether only messages that need attention are printed.
    pub(super) quiet: bool,
}

impl Closing<'_> {
    /// Prints the table, writes the requested report, prints the problems, and returns the exit status. `written` tells
    /// whether all results could be written so far.
    pub(super) fn tell(&self, mut written: bool) -> u8 {
        let report = self.run.report;
        if self.table {
            out::complain_page(&table::table(report, Look::of_stderr().unwrap_or(Look::FILE)));
        }
        let tally = self.letters.tally();
        let dead_letters = (tally.written > 0).then(|| self.letters.path());
        let run = RunReport { dead_letters: dead_letters.as_deref(), ..self.run };
        if let Some(Err(error)) = self.report_file.map(|file| file.write(&run)) {
            complain(format!("error: {error}"));
            written = false;
        }
        let ran_again = self.run.ran_again;
        let ran = ran_again.ran();
        if ran > 0 {
            complain(format!(
                "{} {} run again",
                text::counted(ran, "dead letter"),
                if ran == 1 { "was" } else { "were" }
            ));
        }
        let dead = ran_again.still_dead(report.dead_lettered);
        if dead > 0 {
            let (dead, path) = (text::counted(dead, "unit"), self.letters.path());
            let path = shown::path(&path);
            complain(match (tally.written.saturating_sub(self.kept), tally.refused) {
                (_, 0) => format!("{dead} dead-lettered: {path}"),
                (0, _) => format!("{dead} dead-lettered; {path} could not be written, they are shown above"),
                (_, refused) => format!("{dead} dead-lettered: {path}, except for {refused} shown above"),
            });
        }
        if self.kept > 0 {
            let (kept, path) = (text::counted(self.kept, "letter"), self.letters.path());
            complain(format!("{kept} not retried: {}", shown::path(&path)));
        }
        for (stage, file) in self.run.gathered {
            // With `--quiet`, only a file that was not replaced is reported.
            if !self.quiet || matches!(file.fate, Fate::Kept { .. }) {
                complain(format!("{}: {file}", text::printable(stage)));
            }
        }
        if let Some(left_out) = self.left_out.as_ref().filter(|_| !self.quiet) {
            complain(format!("left out by the walk, which takes files: {left_out}"));
        }
        if report.left > 0 {
            complain(left(report.left, self.abandoned));
        }
        if self.halted.is_some() && !self.whole {
            complain("the rest of the source was not read");
        }
        if let Some(Reason::Output(Trouble::Failed(_))) = self.halted {
            written = false;
        }
        written &= tally.refused == 0;
        // If units are left although the run did not halt, the run was interrupted.
        let interrupted = self.interrupted
            || matches!(self.halted, Some(Reason::Output(Trouble::ReaderGone)))
            || report.left > 0 && self.halted.is_none();
        if interrupted {
            INTERRUPTED
        } else if !written {
            NOT_WRITTEN
        } else if dead + self.kept > 0 || report.outcome == Outcome::StoppedByFailure {
            SOME_DEAD
        } else {
            ALL_RETIRED
        }
    }
}

/// The number of units left in the flow. If the flow was abandoned, the text also names the stages in which units were
/// at that moment.
fn left(left: u64, abandoned: Option<&Snapshot>) -> String {
    let units = text::counted(left, "unit");
    match abandoned.filter(|then| then.in_flight > 0) {
        Some(then) if then.in_flight == left => format!("{units} left; when abandoned: {}", whereabouts(then)),
        // The two numbers may differ: units may have ended since the snapshot, and units that were admitted later are
        // not in the snapshot.
        Some(then) => {
            format!(
                "{units} left; when abandoned, {} were in flight: {}",
                text::count(then.in_flight),
                whereabouts(then)
            )
        }
        None => format!("{units} left"),
    }
}

#[cfg(test)]
mod tests {
    use millstream_flow::Report;

    use super::*;
    use crate::screen::sample::snapshot;

    #[test]
    fn the_message_about_units_left_has_numbers_that_add_up() {
        let mut then = snapshot();
        then.stages.truncate(1);
        (then.stages[0].running, then.stages[0].waiting) = (2, 4);
        (then.in_flight, then.delayed, then.waiting_for_memory) = (7, 1, 0);
        let places = "2 running and 4 waiting in read, 1 in a pause";
        assert_eq!(left(7, Some(&then)), format!("7 units left; when abandoned: {places}"));
        assert_eq!(left(6, Some(&then)), format!("6 units left; when abandoned, 7 were in flight: {places}"));
        assert_eq!(left(1, None), "1 unit left");
    }

    #[test]
    fn a_report_of_an_unfinished_flow_accounts_for_every_unit() {
        let now = snapshot();
        let report = Report::unfinished(&now);
        assert_eq!(report.units(), report.retired + report.dead_lettered + report.gathered + report.left);
        assert_eq!(report.stages.len(), now.stages.len());
        assert!(table::table(&report, Look::FILE).contains("left 213"));
    }
}
