//! `millstream page`: shows a finished run, from a file about it, on the page that `run --page` serves.
//!
//! | file | content |
//! | --- | --- |
//! | `kind` | the kind of the file, determined from its content |
//! | `trace` | a trace: the engine replays it, so the page has everything that the page of a run has, and sliders |
//! | `report` | a JSON report: the totals of stages and resources, and the failures |
//! | `events` | a file of events: the times at which stages and workers ran |
//! | `lanes` | spans of time as strips |
//! | `loose` | values of a file that another program may have written |

mod events;
mod kind;
mod lanes;
mod loose;
mod report;
mod trace;

use std::io;
use std::path::Path;
use std::process::ExitCode;

use millstream_command::screen::out::complain;
use millstream_command::screen::{shown, text};
use millstream_command::writable::NotWritable;
use millstream_flow::{ReplayError, Trace};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use self::kind::Kind;
use crate::args::PageArgs;
use crate::run::{NOT_WRITTEN, WRONG};
use crate::screen::report_file::{self, ReportFileError};
use crate::serve::{page, recorded};
use crate::whatif::{Answer, NotRead};

/// The end of messages about a file that cannot be shown.
const EXPECTED: &str = "expected the trace of a run (`run --trace FILE`), its events (`--events FILE`) or its report (`--report FILE.json`)";

/// The reason why there is no page.
#[derive(Debug, thiserror::Error)]
enum PageError {
    #[error("{0}: {1}")]
    NotOpened(String, io::Error),
    #[error("{0}: not a regular file; {EXPECTED}")]
    NoFile(String),
    #[error("{0}: the file is empty; {EXPECTED}")]
    Empty(String),
    #[error("{path}: {}; {EXPECTED}", what.unwrap_or("neither a trace nor JSON"))]
    Unknown { path: String, what: Option<&'static str> },
    #[error("{path}: {what}: {EXPECTED}")]
    Foreign { path: String, what: &'static str },
    #[error("{path}: {} of {what}, and at most {} are read: `--max-size` raises that", text::bytes(*bytes), text::bytes(*most))]
    TooLarge { path: String, what: &'static str, bytes: u64, most: u64 },
    #[error("{path}: {what} is cut off at {at}: the writer was ended, or the copy is incomplete")]
    CutOff { path: String, what: &'static str, at: String },
    #[error("{path}: {what} cannot be read: {error}")]
    NotUnderstood { path: String, what: &'static str, error: String },
    #[error(transparent)]
    Trace(#[from] NotRead),
    #[error("{0}: {1}")]
    Replay(String, ReplayError),
    #[error(transparent)]
    Report(#[from] ReportFileError),
    #[error(transparent)]
    NotWritten(#[from] NotWritable),
    #[error("--port {port}: {error}; choose another port, or 0 for any free one")]
    Port { port: u16, error: io::Error },
    #[error("cannot start: {0}")]
    System(io::Error),
}

impl PageError {
    /// The error for a file of the kind `what` whose JSON ends too early or is malformed.
    fn json(path: &Path, what: &'static str, error: &serde_json::Error) -> Self {
        let path = shown::path(path).to_string();
        if error.is_eof() {
            let at = format!("line {}, column {}", error.line(), error.column());
            return PageError::CutOff { path, what, at };
        }
        PageError::NotUnderstood { path, what, error: text::printable(&error.to_string()).into_owned() }
    }
}

/// A file as a page.
struct Shown {
    /// The data of the page, as JSON.
    data: String,
    /// The markup for readers without scripts.
    plain: String,
    /// The units that the sliders replay, and the result of a replay with the run's own settings; `None` if the page
    /// has no sliders.
    sliders: Option<(Trace, Answer)>,
}

/// Shows a file about a run on a page, and gives the exit status.
pub(crate) fn page(args: &PageArgs) -> ExitCode {
    let shown = match &args.report {
        Some(path) => write(args, path),
        None => serve(args),
    };
    let Err(error) = shown else { return ExitCode::SUCCESS };
    complain(format!("error: {error}"));
    ExitCode::from(if matches!(error, PageError::NotWritten(_)) { NOT_WRITTEN } else { WRONG })
}

/// Reads a file of any of the three kinds. A page that is written to a file has no sliders.
fn read(args: &PageArgs, is_served: bool) -> Result<Shown, PageError> {
    let path = &args.file;
    match kind::of(path, args.max_size)? {
        Kind::Trace => trace::shown(path, is_served),
        Kind::Events => events::shown(path),
        Kind::Report => report::shown(path),
    }
}

/// Writes the page to a file.
fn write(args: &PageArgs, path: &Path) -> Result<(), PageError> {
    let file = report_file::Html::check(path)?;
    let Shown { data, plain, .. } = read(args, false)?;
    file.write(&page::frozen(&data, &plain))?;
    Ok(())
}

/// Serves the page until a signal ends the command.
fn serve(args: &PageArgs) -> Result<(), PageError> {
    let Shown { data, plain, sliders } = read(args, true)?;
    // The handlers are set before the address is printed, so that a script can send a signal as soon as it reads the
    // address.
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(PageError::System)?;
    let port = args.port;
    let server = recorded::serve(port, &data, &plain, sliders).map_err(|error| PageError::Port { port, error })?;
    complain(format!("page at http://{}/ until ^C", server.address()));
    signals.forever().next();
    Ok(())
}
