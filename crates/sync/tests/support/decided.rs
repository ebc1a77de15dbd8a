//! Recorded runs, of which some cannot be decided.

use std::time::Duration;

use millstream_history::{History, Model, Options, Verdict, check};

use crate::verdict::assert_holds;

/// Asserts that one of a few runs can be decided, and is linearizable. On a busy machine the clocks of its cores
/// sometimes differ so much that the checker would have to try too many orders.
pub(crate) fn assert_holds_once_decided(model: impl Into<Model>, mut run: impl FnMut() -> History) {
    const RUNS: usize = 5;
    let model = model.into();
    let options = Options { time: Some(Duration::from_secs(10)), explain: false, ..Options::default() };
    let is_decided = |history: &History| !matches!(check(history, &model, &options).unwrap(), Verdict::Unknown(_));
    let decided = (0..RUNS).map(|_| run()).find(is_decided);
    assert_holds(&decided.unwrap_or_else(|| panic!("{model}: none of {RUNS} runs was decided")), model);
}
