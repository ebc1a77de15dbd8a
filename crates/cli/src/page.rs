//! `millstream page`: a traced run on the page that `run --page` shows.
//!
//! A trace tells how long each unit was in each stage. What units waited for, and how much was in use when, is the engine's to tell: it
//! replays the trace, and the [feed](crate::serve::feed) of the page takes the snapshots of the replay as it takes those of a run.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use millstream_command::screen::out::complain;
use millstream_command::screen::shown;
use millstream_command::writable::NotWritable;
use millstream_flow::{ReplayError, Report, Trace, WhatIf};
use serde_json::{Value, json};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::args::PageArgs;
use crate::run::{NOT_WRITTEN, WRONG};
use crate::screen::html;
use crate::screen::report_file::{self, ReportFileError};
use crate::screen::run_report::outcome;
use crate::serve::feed::Feed;
use crate::serve::{page, recorded};
use crate::shell_word::quoted;
use crate::whatif::{self, Answer, Doubt, NotRead};

/// The number of moments of a run that are looked at: twice as many as the page keeps.
const LOOKS: u32 = 240;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
enum PageError {
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

/// Shows a trace on a page, and gives the exit status.
pub(crate) fn page(args: &PageArgs) -> ExitCode {
    let shown = match &args.report {
        Some(path) => write(&args.trace, path),
        None => serve(&args.trace, args.port),
    };
    let Err(error) = shown else { return ExitCode::SUCCESS };
    complain(format!("error: {error}"));
    ExitCode::from(if matches!(error, PageError::NotWritten(_)) { NOT_WRITTEN } else { WRONG })
}

/// Writes the page of a trace to a file.
fn write(trace: &Path, path: &Path) -> Result<(), PageError> {
    let file = report_file::Html::check(path)?;
    let replay = Replay::of(trace)?;
    file.write(&page::frozen(&replay.data(&Value::Null), &html::plain(&replay.report)))?;
    Ok(())
}

/// Serves the page of a trace until a signal ends that.
fn serve(trace: &Path, port: u16) -> Result<(), PageError> {
    let replay = Replay::of(trace)?;
    let command = format!("millstream whatif {}", quoted(trace.as_os_str().as_bytes()));
    let (data, plain) = (replay.data(&json!({ "command": command })), html::plain(&replay.report));
    // Heeded before the address is told.
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(PageError::System)?;
    let server = recorded::serve(port, &data, &plain, replay.trace, replay.as_it_was);
    let server = server.map_err(|error| PageError::Port { port, error })?;
    complain(format!("page at http://{}/ until ^C", server.address()));
    signals.forever().next();
    Ok(())
}

/// A traced run, replayed with its own settings.
struct Replay {
    path: PathBuf,
    trace: Trace,
    report: Report,
    as_it_was: Answer,
    /// The facts and the last state of its page.
    feed: String,
}

impl Replay {
    fn of(path: &Path) -> Result<Self, PageError> {
        let trace = whatif::read(path)?;
        let none = WhatIf::default();
        let not_replayed = |error| PageError::Replay(shown::path(path).to_string(), error);
        let plan = trace.plan(&none).map_err(not_replayed)?;
        let total = trace.units() as u64;
        let mut seen: Option<(Feed, _)> = None;
        let every = trace.measured().wall.div_f64(trace.weight()) / LOOKS;
        let replayed = trace.replay_watched(&none, every.max(Duration::from_micros(1)), |now| {
            let (feed, last) = seen.get_or_insert_with(|| (Feed::recorded(&plan, now), now.clone()));
            feed.note(now, Some(total));
            last.clone_from(now);
        });
        let replayed = replayed.map_err(not_replayed)?;
        let feed = seen.map(|(feed, last)| {
            feed.end(&last);
            feed.frozen()
        });
        let as_it_was = Answer::of(&trace, &replayed);
        Ok(Replay { path: path.to_owned(), report: replayed.report, as_it_was, feed: feed.unwrap_or_default(), trace })
    }

    /// The data of its page, as JSON. `what_if` is for its sliders; null: it has none.
    fn data(&self, what_if: &Value) -> String {
        let doubt = Doubt::of(&self.trace, &self.as_it_was);
        let mut report = html::numbers(&self.report);
        report["outcome"] =
            if doubt.is_serious() { "the replay misses the run".into() } else { outcome(&self.report).into() };
        report["good"] = (!doubt.is_serious() && self.report.dead_lettered == 0).into();
        report["identity"] = json!([
            ("trace", shown::path(&self.path).to_string()),
            ("numbers", "those of a replay; a trace has no texts of units, and no reasons of failures".to_owned()),
        ]);
        let lines = whatif::part(&self.trace) + &whatif::itself(&self.trace, &doubt);
        let facts =
            lines.lines().map(str::to_owned).chain(doubt.reasons.iter().map(|reason| format!("perhaps {reason}")));
        report["facts"] = facts.collect::<Vec<_>>().into();
        shown::json(&format!("{{{},\"report\":{report},\"whatif\":{what_if}}}", self.feed)).into_owned()
    }
}
