//! The command's output: progress while a flow runs, and the report when it is over.
//!
//! | file | shows |
//! | --- | --- |
//! | [`frame`] | the live picture on a terminal, drawn by [`Terminal`] |
//! | [`plain`] | a line every two seconds if there is no terminal |
//! | [`table`] | the report as tables of text |
//! | [`json`], [`html`] | the report as a file with a whole [`run_report`], written by [`report_file`] |
//!
//! All these modules are pure functions from a [`Snapshot`] or a [`Report`](millstream_flow::Report) to text.
//! [`Screen`] decides which form of progress is shown. All text is written through [`out`].

pub(crate) mod frame;
pub(crate) mod html;
pub(crate) mod json;
pub(crate) mod meter;
pub(crate) mod plain;
pub(crate) mod report_file;
pub(crate) mod run_report;
#[cfg(test)]
pub(crate) mod sample;
pub(crate) mod table;
pub(crate) mod thinned;
pub(crate) mod throughput;

use std::io::Stderr;

use millstream_command::screen::look::Look;
use millstream_command::screen::out;
use millstream_command::screen::terminal::Terminal;
use millstream_flow::Snapshot;

use self::meter::Meter;

/// The time between two lines of progress if there is no terminal.
const PLAIN_EVERY_NS: u64 = 2_000_000_000;

/// Shows the progress of one flow on standard error.
#[derive(Debug)]
pub(crate) struct Screen {
    mode: Mode,
    meter: Meter,
}

#[derive(Debug)]
enum Mode {
    Live(Terminal<Stderr>),
    Plain { next_ns: u64, begins: Begins },
    Quiet,
}

/// The moment from which plain lines are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Begins {
    AtOnce,
    /// Plain lines begin once the total number of units is known. The user has then typed all units, so the lines do
    /// not mix with the typed text.
    WithTheTotal,
}

/// Other text on the terminal while a flow runs. Such text would mix with a frame that is redrawn in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beside {
    /// Only the command writes to the terminal.
    Nothing,
    /// Programs of a stage write to the terminal, so plain lines are used.
    Output,
    /// The user types the units on the terminal.
    Typing,
}

impl Screen {
    /// Chooses the form of progress. On a terminal that shows no other output, it is a live frame; otherwise, it is
    /// plain lines. With `quiet`, there is no progress.
    pub(crate) fn open(quiet: bool, beside: Beside) -> Self {
        let mode = if quiet {
            Mode::Quiet
        } else if beside == Beside::Nothing && Look::of_stderr().is_some() {
            Mode::Live(Terminal::of_stderr())
        } else {
            let begins = if beside == Beside::Typing { Begins::WithTheTotal } else { Begins::AtOnce };
            Mode::Plain { next_ns: PLAIN_EVERY_NS, begins }
        };
        Self { mode, meter: Meter::default() }
    }

    /// Shows the flow as it is now. `total` is the total number of units that will be admitted, if it is known.
    pub(crate) fn show(&mut self, snapshot: &Snapshot, total: Option<u64>) {
        let pace = self.meter.read(snapshot, total);
        let shown = match &mut self.mode {
            Mode::Quiet => Ok(()),
            Mode::Plain { next_ns, begins } => {
                if snapshot.wall_ns < *next_ns || *begins == Begins::WithTheTotal && total.is_none() {
                    return;
                }
                *next_ns = snapshot.wall_ns + PLAIN_EVERY_NS;
                out::try_complain(plain::line(snapshot, &pace))
            }
            Mode::Live(terminal) => match Look::of_stderr() {
                Some(look) => terminal.draw(&frame::frame(snapshot, &pace, look), look.columns),
                None => Ok(()),
            },
        };
        if shown.is_err() {
            // Standard error has no reader any more, so the flow continues without progress.
            self.mode = Mode::Quiet;
        }
    }

    /// Writes a line about an event of the run, unless quiet.
    pub(crate) fn say(&mut self, message: &str) {
        if !matches!(self.mode, Mode::Quiet) {
            self.clear();
            out::complain(message);
        }
    }

    /// Writes a line that needs attention.
    pub(crate) fn warn(&mut self, message: &str) {
        self.clear();
        out::complain(message);
    }

    /// Writes lines that belong together, unless quiet.
    pub(crate) fn say_page(&mut self, page: &str) {
        if !matches!(self.mode, Mode::Quiet) {
            self.clear();
            out::complain_page(page);
        }
    }

    /// Removes a live frame, so that other text can follow.
    pub(crate) fn clear(&mut self) {
        if let Mode::Live(terminal) = &mut self.mode {
            let columns = Look::of_stderr().map_or(80, |look| look.columns);
            let _ = terminal.clear(columns);
        }
    }
}
