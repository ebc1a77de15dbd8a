//! The page of a trace.
//!
//! A trace says how long each unit was in each stage. It does not say what units waited for, or how much of each
//! resource was in use. The engine reconstructs that by replaying the trace, and the [feed](crate::serve::feed) of the
//! page takes the snapshots of the replay in place of those of a run.
//!
//! A slider is answered within [`ANSWER`]: if a replay of the whole trace takes longer, the sliders replay a sample.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use millstream_command::screen::shown;
use millstream_flow::{Report, Trace, WhatIf};
use serde_json::{Value, json};

use super::{PageError, Shown};
use crate::screen::html;
use crate::screen::run_report::outcome;
use crate::serve::feed::Feed;
use crate::shell_word::quoted;
use crate::whatif::{self, Answer, Doubt};

/// The number of snapshots that are taken of the replay: twice as many as the page keeps.
const LOOKS: u32 = 240;

/// The maximum time of a replay for a slider.
const ANSWER: Duration = Duration::from_millis(150);
/// The minimum number of visits of a meaningful sample.
const FEWEST_VISITS: usize = 5_000;

/// Reads and replays a trace.
pub(super) fn shown(path: &Path, is_served: bool) -> Result<Shown, PageError> {
    let replay = Replay::of(path)?;
    let command = || json!({ "command": format!("millstream whatif {}", quoted(path.as_os_str().as_bytes())) });
    let what_if = if is_served { command() } else { Value::Null };
    let (data, plain) = (replay.data(&what_if), html::plain(&replay.report));
    let sliders = if is_served { Some(replay.sliders()?) } else { None };
    Ok(Shown { data, plain, sliders })
}

/// The number of visits (a visit is a unit's run in a stage) that can be replayed within [`ANSWER`]; `None` if there
/// is time for all of them.
fn sample_size(visits: usize, took: Duration) -> Option<usize> {
    let share = ANSWER.as_secs_f64() / took.as_secs_f64().max(1e-9);
    let fit = ((visits as f64 * share) as usize).max(FEWEST_VISITS);
    (share < 1.0 && fit < visits).then_some(fit)
}

/// A traced run, replayed with its own settings.
struct Replay {
    path: PathBuf,
    trace: Trace,
    report: Report,
    as_it_was: Answer,
    /// The facts and the last state of the run, in the form in which the page gets them.
    feed: String,
    /// The time that the replay took.
    took: Duration,
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
        let began = Instant::now();
        let replayed = trace.replay_watched(&none, every.max(Duration::from_micros(1)), |now| {
            let (feed, last) = seen.get_or_insert_with(|| (Feed::recorded(&plan, now), now.clone()));
            feed.note(now, Some(total));
            last.clone_from(now);
        });
        let (replayed, took) = (replayed.map_err(not_replayed)?, began.elapsed());
        let feed = seen.map(|(feed, last)| {
            feed.end(&last);
            feed.frozen()
        });
        let as_it_was = Answer::of(&trace, &replayed);
        Ok(Replay {
            path: path.to_owned(),
            report: replayed.report,
            as_it_was,
            feed: feed.unwrap_or_default(),
            trace,
            took,
        })
    }

    /// The trace that the sliders replay, and the result of its replay with the run's own settings.
    fn sliders(self) -> Result<(Trace, Answer), PageError> {
        let Some(visits) = sample_size(self.trace.visits(), self.took) else { return Ok((self.trace, self.as_it_was)) };
        let trace = whatif::sample(&self.path, visits)?;
        let not_replayed = |error| PageError::Replay(shown::path(&self.path).to_string(), error);
        let as_it_was = Answer::to(&trace, &WhatIf::default()).map_err(not_replayed)?;
        Ok((trace, as_it_was))
    }

    /// The data of the page, as JSON. `what_if` is for the sliders; null means that the page has none.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sliders_of_a_long_trace_have_a_sample_that_is_replayed_in_time() {
        let tenth = sample_size(300_000, Duration::from_millis(1500)).unwrap();
        assert!(tenth.abs_diff(30_000) <= 1, "{tenth}");
        assert_eq!(sample_size(300_000, Duration::from_millis(150)), None);
        assert_eq!(sample_size(20_000, Duration::from_secs(60)), Some(FEWEST_VISITS));
        assert_eq!(sample_size(4_000, Duration::from_secs(60)), None);
        assert_eq!(sample_size(0, Duration::ZERO), None);
    }
}
