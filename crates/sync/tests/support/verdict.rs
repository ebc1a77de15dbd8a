//! The checker's verdict on a recorded run, and on runs of a twin with a mistake.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use millstream_history::timeline::Timeline;
use millstream_history::{History, Model, Options, Verdict, check};

fn verdict(history: &History, model: &Model, explain: bool) -> Verdict {
    let options = Options { time: Some(Duration::from_secs(60)), explain, ..Options::default() };
    check(history, model, &options).unwrap()
}

pub(crate) fn assert_holds(history: &History, model: impl Into<Model>) {
    let model = model.into();
    let verdict = verdict(history, &model, true);
    assert_eq!(verdict.holds(), Some(true), "{model}: {verdict:?}");
}

/// The twin must be caught in at least one of this many runs.
const MAX_RUNS: u32 = 200;

/// Asserts that a run of the twin fails the check, with a small counter-example; with `MILLSTREAM_PICTURES=folder` it
/// is drawn there.
pub(crate) fn assert_caught(name: &str, title: &str, model: impl Into<Model>, mut run: impl FnMut() -> History) {
    let model = model.into();
    let fails = |history: &History| verdict(history, &model, false).holds() == Some(false);
    let history = (0..MAX_RUNS).map(|_| run()).find(fails);
    let history = history.unwrap_or_else(|| panic!("{title} was not caught in {MAX_RUNS} runs"));
    let verdict = verdict(&history, &model, true);
    let Verdict::Fails(found) = &verdict else { panic!("{title}: {verdict:?}") };
    assert!((1..=10).contains(&found.operations.len()), "{title}: {found:?}");
    if let Some(folder) = std::env::var_os("MILLSTREAM_PICTURES").map(PathBuf::from) {
        fs::write(folder.join(format!("{name}.svg")), Timeline::new(title, &history, &verdict).svg()).unwrap();
    }
}
