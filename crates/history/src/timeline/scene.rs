//! The scene: the operations that a picture shows, and their marks.

use super::Timeline;
use crate::history::{History, PENDING};
use crate::operation::Status;
use crate::verdict::Verdict;

/// The maximum length of a label, in characters.
const MAX_LABEL: usize = 60;

/// The operations shown, in order of call.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) bars: Vec<Bar>,
    /// The time at which the longest legal prefix ends; `None` if the history is legal or the time is not known.
    pub(super) until: Option<u64>,
    /// The number of operations not shown.
    pub(super) left_out: usize,
}

/// An operation.
#[derive(Debug)]
pub(super) struct Bar {
    pub(super) row: usize,
    pub(super) process: u32,
    pub(super) label: String,
    pub(super) call: u64,
    /// The time of the return on the process's own clock.
    pub(super) returned: Option<u64>,
    /// The time by which the operation has taken effect according to every process's clock; `None` if it may take
    /// effect later.
    pub(super) settled: Option<u64>,
    pub(super) mark: Mark,
    /// The operation's index in the witness, and its linearization point; `None` if the witness does not contain it.
    pub(super) point: Option<(usize, u64)>,
}

/// The mark of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// No mark.
    Plain,
    /// The operation failed, without effect.
    Failed,
    /// The operation belongs to the counter-example.
    Broken,
    /// The reason is about this operation.
    Subject,
    /// The operation's return is the first event that no order explains, and the operation does not belong to the
    /// counter-example.
    Next,
}

impl Mark {
    /// The name in style sheets and in the page's data.
    pub(super) fn name(self) -> &'static str {
        match self {
            Mark::Plain => "plain",
            Mark::Failed => "failed",
            Mark::Broken => "broken",
            Mark::Subject => "subject",
            Mark::Next => "next",
        }
    }
}

impl Scene {
    /// The counter-example, and at most `most` operations around the failure; without a failure, the first operations.
    pub(super) fn around(timeline: &Timeline<'_>, most: usize) -> Self {
        let history = timeline.history;
        let length = history.len();
        let middle = middle(history, timeline.verdict);
        let first = middle.saturating_sub(most / 2).min(length.saturating_sub(most));
        let window = first..length.min(first + most);
        let mut rows: Vec<usize> = broken(timeline.verdict).filter(|row| !window.contains(row)).collect();
        rows.extend(window);
        Scene::of(timeline, rows)
    }

    /// All operations, if there are at most `most`. Otherwise, the counter-example and the operations that overlap its
    /// time; if these are more than `most`, only the counter-example. Without a counter-example, the result is that of
    /// [`around`](Self::around).
    pub(super) fn close(timeline: &Timeline<'_>, most: usize) -> Self {
        let history = timeline.history;
        let broken: Vec<usize> = broken(timeline.verdict).collect();
        let (Some(&first), Some(&last)) = (broken.iter().min(), broken.iter().max()) else {
            return Scene::around(timeline, most);
        };
        if history.len() <= most {
            return Scene::around(timeline, most);
        }
        let meanwhile = (0..=last).filter(|&row| row >= first || history.ret(row) >= history.call(first));
        let shown: Vec<usize> = meanwhile.take(most + 1).collect();
        Scene::of(timeline, if shown.len() <= most { [shown, broken].concat() } else { broken })
    }

    fn of(timeline: &Timeline<'_>, mut rows: Vec<usize>) -> Self {
        let history = timeline.history;
        rows.sort_unstable();
        rows.dedup();
        let points = points(history, timeline.verdict);
        let bars: Vec<Bar> = rows
            .iter()
            .map(|&row| Bar {
                row,
                process: history.process(row),
                label: label(history, row),
                call: history.call(row),
                returned: history.returned_at(row),
                settled: Some(history.ret(row)).filter(|&ret| ret != PENDING),
                mark: mark(timeline, row),
                point: points.get(row).copied().flatten(),
            })
            .collect();
        let until = match timeline.verdict {
            Verdict::Fails(found) => found.prefix.map(|prefix| prefix.until),
            _ => None,
        };
        Scene { left_out: history.len() - bars.len(), bars, until }
    }
}

/// The rows of the counter-example, and the row of the first return that no order explains.
fn broken(verdict: &Verdict) -> impl Iterator<Item = usize> + '_ {
    let (rows, culprit) = match verdict {
        Verdict::Fails(found) => (found.operations.as_slice(), found.prefix.map(|prefix| prefix.culprit)),
        _ => (&[][..], None),
    };
    rows.iter().copied().chain(culprit).map(|row| row as usize)
}

/// The row at the centre of a picture that cannot show all operations.
fn middle(history: &History, verdict: &Verdict) -> usize {
    match verdict {
        Verdict::Holds(_) => 0,
        Verdict::Fails(_) => broken(verdict).max().unwrap_or(0),
        // The approximate progress of the search.
        Verdict::Unknown(progress) => progress.decided.min(history.len().saturating_sub(1)),
    }
}

fn mark(timeline: &Timeline<'_>, row: usize) -> Mark {
    if let Verdict::Fails(found) = timeline.verdict {
        let row = row as u32;
        if found.subject == Some(row) {
            return Mark::Subject;
        }
        if found.operations.contains(&row) {
            return Mark::Broken;
        }
        if found.prefix.is_some_and(|prefix| prefix.culprit == row) {
            return Mark::Next;
        }
    }
    if timeline.history.status(row) == Status::Fail { Mark::Failed } else { Mark::Plain }
}

/// For each row, its index in the witness and its linearization point, which is as early as the call and the earlier
/// points permit.
fn points(history: &History, verdict: &Verdict) -> Vec<Option<(usize, u64)>> {
    let Verdict::Holds(witness) = verdict else { return Vec::new() };
    let mut points = vec![None; history.len()];
    let mut now = 0;
    for (place, &row) in witness.order.iter().enumerate() {
        now = now.max(history.call(row as usize));
        points[row as usize] = Some((place, now));
    }
    points
}

fn label(history: &History, row: usize) -> String {
    let shown = history.show(row).to_string();
    match shown.char_indices().nth(MAX_LABEL) {
        None => shown,
        Some((end, _)) => format!("{}…", &shown[..end]),
    }
}
