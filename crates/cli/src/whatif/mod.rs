//! `millstream whatif`: what a run would have come to under other settings, from its trace.
//!
//! | file | idea |
//! | --- | --- |
//! | `setting` | `KEY=VALUE` as a change of a replay, and the settings that there are |
//! | `answer` | the numbers of a replay |
//! | `check` | the run again, to see whether a prediction holds |
//! | `doubt` | whether a replay of the run itself comes to what was measured, and what may be missing if not |
//! | `search` | replays with one setting after the other: what helps, how a setting tells, what reaches a goal |
//! | `page` | the answers as tables |

mod answer;
mod check;
mod doubt;
mod goal;
mod page;
mod search;
mod setting;

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use millstream_command::screen::out::{self, complain};
use millstream_command::screen::{shown, text};
use millstream_flow::{ReplayError, Trace, TraceError, WhatIf};

use self::answer::Answer;
use self::doubt::Doubt;
pub(crate) use self::goal::Goal;
use self::setting::SettingError;
use crate::args::WhatIfArgs;
use crate::run::{NOT_WRITTEN, WRONG};

/// The replay misses the run, or no setting reaches the goal.
const NO_ANSWER: u8 = 1;

/// A replay that takes longer is announced, since a search may need a hundred of them.
const SLOW: Duration = Duration::from_secs(1);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum WhatIfError {
    #[error("{0}: {1}")]
    Trace(String, TraceError),
    #[error(transparent)]
    Setting(#[from] SettingError),
    #[error("--check: {0}")]
    Check(String),
    #[error("{0}")]
    Replay(#[from] ReplayError),
}

/// Replays a trace, and prints what comes of it.
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

fn read(path: &Path) -> Result<Trace, WhatIfError> {
    let named = |error| WhatIfError::Trace(shown::path(path).to_string(), error);
    let file = File::open(path).map_err(|error| named(error.into()))?;
    Trace::read(BufReader::new(file)).map_err(named)
}

fn answer(args: &WhatIfArgs) -> Result<(String, u8), WhatIfError> {
    let trace = read(&args.trace)?;
    let changed = setting::changes(&args.settings, &trace)?;
    let sweep = args.sweep.as_deref().map(|sweep| setting::sweep(sweep, &trace)).transpose()?;
    let began = Instant::now();
    let as_it_was = Answer::to(&trace, &WhatIf::default())?;
    if began.elapsed() > SLOW {
        let span = text::span(began.elapsed().as_nanos() as u64);
        complain(format!("one replay of this trace takes {span}, and a search takes many; ^C ends it"));
    }
    let doubt = Doubt::of(&trace, &as_it_was);
    if doubt.is_serious() && !args.anyway {
        return Ok((if args.json { page::json_doubt(&trace, &doubt) } else { page::doubt(&trace, &doubt) }, NO_ANSWER));
    }
    let mut found = search::Found {
        trace: &trace,
        doubt,
        as_it_was,
        changed: None,
        checked: None,
        helps: None,
        sweep: None,
        goal: None,
    };
    if !changed.is_empty() {
        found.changed = Some(search::changed(&trace, &changed, &args.settings)?);
    }
    if args.check {
        found.checked = Some(check::check(&trace, &args.settings)?);
    }
    if let Some(sweep) = sweep {
        found.sweep = Some(search::sweep(&trace, &changed, &sweep)?);
    }
    if let Some(goal) = &args.goal {
        found.goal = Some(search::reach(&trace, &changed, goal)?);
    } else if found.changed.is_none() && found.sweep.is_none() && !args.check {
        found.helps = Some(search::helps(&trace, &found.as_it_was)?);
    }
    let missed = found.goal.as_ref().is_some_and(|goal| !goal.is_reached);
    let page = if args.json { page::json(&found) } else { page::page(&found) };
    Ok((page, if missed { NO_ANSWER } else { 0 }))
}
