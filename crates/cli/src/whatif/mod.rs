//! `millstream whatif`: predicts the numbers of a run under other settings, from the run's trace or from a live run.
//!
//! | module | purpose |
//! | --- | --- |
//! | `setting` | `KEY=VALUE` as a change to a replay, and the settings of a trace |
//! | `answer` | the numbers of a replay |
//! | `check` | repeats the run, to test a prediction |
//! | `reading` | reads a trace file, with progress |
//! | `live` | uses a live run in place of a trace file |
//! | `doubt` | checks whether a replay reproduces the measured time; if not, lists effects that may be missing |
//! | `search` | replays with other settings, to find those that help or that reach a goal |
//! | `replays` | the replays of a search, with progress and a time limit |
//! | `slope` | the comparison with a second run, which shows how a stage's time depends on a resource |
//! | `page` | the answers as tables |

mod answer;
mod check;
mod doubt;
mod goal;
mod live;
mod page;
mod reading;
mod replays;
mod search;
mod setting;
mod slope;

use std::path::Path;
use std::process::ExitCode;

use millstream_command::screen::out::{self, complain};
use millstream_command::screen::shown;
use millstream_flow::{Trace, WhatIf};

pub(crate) use self::answer::Answer;
pub(crate) use self::doubt::Doubt;
pub(crate) use self::goal::Goal;
pub(crate) use self::live::usable;
pub(crate) use self::page::{itself, part};
pub(crate) use self::reading::{NotRead, kind_by_begin, read, sample};
use self::replays::{NoReplay, Replays};
use self::setting::SettingError;
pub(crate) use self::setting::changes;
use self::slope::Slope;
use crate::args::WhatIfArgs;
use crate::run::{NOT_WRITTEN, WRONG};
use crate::steer::client::SteerError;
use crate::steer::place::NoRun;

/// Exit status: the replay does not reproduce the run, or no setting reaches the goal.
const NO_ANSWER: u8 = 1;

/// The reason why there is no answer.
#[derive(Debug, thiserror::Error)]
enum WhatIfError {
    #[error(transparent)]
    Trace(#[from] NotRead),
    #[error(transparent)]
    Setting(#[from] SettingError),
    #[error("--check: {0}")]
    Check(String),
    #[error("{0}: No such file or directory, and {1}")]
    Neither(String, NoRun),
    #[error(transparent)]
    Run(#[from] SteerError),
    #[error(
        "{run} has finished {units} since it began to keep them, and an answer needs {fewest}: it goes on \
         keeping them, so ask again later"
    )]
    TooFew { run: String, units: String, fewest: u64 },
    #[error(
        "{run} has ended before enough of its units had left: run the flow with `--trace FILE`, and ask `millstream whatif FILE`"
    )]
    RunEnded { run: String },
    #[error("--with {0}: {1}")]
    With(String, String),
    #[error("{0}")]
    Replay(#[from] NoReplay),
}

/// Replays a trace and prints the answer.
pub(crate) fn what_if(args: &WhatIfArgs) -> ExitCode {
    let (page, status) = match answer(args) {
        Ok(answered) => answered,
        Err(error) => {
            complain(format!("error: {error}"));
            return ExitCode::from(WRONG);
        }
    };
    match out::print(&page) {
        Ok(()) => ExitCode::from(status),
        Err(error) => {
            complain(format!("error: the answer could not be written: {error}"));
            ExitCode::from(NOT_WRITTEN)
        }
    }
}

/// Reads the trace in a file, or the trace of a live run.
fn read_any(path: &Path) -> Result<Trace, WhatIfError> {
    if live::is_file(path).unwrap_or(true) {
        return Ok(read(path)?);
    }
    live::read(path).map_err(|error| match error {
        WhatIfError::Run(SteerError::NoRun(no_run)) => WhatIfError::Neither(shown::path(path).to_string(), no_run),
        error => error,
    })
}

/// How the times of stages depend on a resource, derived from a second run.
fn slope_with(trace: &Trace, with: &Path) -> Result<Slope, WhatIfError> {
    let other = read(with)?;
    Slope::between(trace, &other).map_err(|why| WhatIfError::With(shown::path(with).to_string(), why))
}

fn answer(args: &WhatIfArgs) -> Result<(String, u8), WhatIfError> {
    let trace = read_any(&args.trace)?;
    if trace.is_live() && args.check.is_some() {
        return Err(WhatIfError::Check("the run is live: `millstream set` changes it, and shows the effect".into()));
    }
    let changed = setting::changes(&args.settings, &trace)?;
    let sweep = args.sweep.as_deref().map(|sweep| setting::sweep(sweep, &trace)).transpose()?;
    let slope = args.with.as_deref().map(|with| slope_with(&trace, with)).transpose()?;
    let replays = Replays::of(&trace, args.within);
    let as_it_was = replays.to(&WhatIf::default())?;
    let doubt = Doubt::of(&trace, &as_it_was);
    if doubt.is_serious() && !args.anyway {
        return Ok((if args.json { page::json_doubt(&trace, &doubt) } else { page::doubt(&trace, &doubt) }, NO_ANSWER));
    }
    let with_slope = |what_if: WhatIf| slope.as_ref().map_or(what_if.clone(), |slope| slope.apply(what_if));
    let changes = with_slope(changed.clone());
    let mut found = search::Found {
        trace: &trace,
        doubt,
        slope: slope.clone(),
        as_it_was,
        changed: None,
        checked: None,
        helps: None,
        sweep: None,
        goal: None,
    };
    if !changed.is_empty() {
        found.changed = Some(search::changed(&replays, &changes, &args.settings)?);
    }
    if let Some(pairs) = args.check {
        let predicted = found.changed.as_ref().map_or(1.0, |changed| changed.answer.wall_s / found.as_it_was.wall_s);
        found.checked = Some(check::check(&trace, &args.settings, pairs, predicted)?);
    }
    if let Some(sweep) = sweep {
        found.sweep = Some(search::sweep(&replays, &changes, &sweep)?);
    }
    if let Some(goal) = &args.goal {
        found.goal = Some(search::reach(&replays, &changes, goal)?);
    } else if found.changed.is_none() && found.sweep.is_none() && args.check.is_none() {
        found.helps = Some(search::helps(&replays, &with_slope(WhatIf::default()), &found.as_it_was)?);
    }
    let missed = found.goal.as_ref().is_some_and(|goal| !goal.is_reached);
    let page = if args.json { page::json(&found) } else { page::page(&found) };
    Ok((page, if missed { NO_ANSWER } else { 0 }))
}
