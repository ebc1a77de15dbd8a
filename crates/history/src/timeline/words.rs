//! The text of a picture.

use super::Timeline;
use super::scene::Scene;
use crate::verdict::{Limit, Verdict};

/// The verdict in a few words, and the name of its style.
pub(super) fn verdict(timeline: &Timeline<'_>) -> (&'static str, &'static str) {
    match timeline.verdict {
        Verdict::Holds(_) => ("linearizable", "good"),
        Verdict::Fails(_) => ("not linearizable", "bad"),
        Verdict::Unknown(_) => ("unknown", "unknown"),
    }
}

/// The findings, one sentence each.
pub(super) fn findings(timeline: &Timeline<'_>) -> Vec<String> {
    match timeline.verdict {
        Verdict::Holds(witness) => vec![format!(
            "The order of the dots explains {}: each dot lies between a call and its return.",
            operations(witness.order.len())
        )],
        Verdict::Fails(found) => {
            let mut said = vec![sentence(&found.reason)];
            said.extend(
                found.start.as_ref().map(|start| format!("What came before is summed up in the state {start}.")),
            );
            said.extend(found.prefix.map(|prefix| {
                format!(
                    "In order up to time {}, when {} had returned; the next return, of {}, cannot be explained.",
                    prefix.until,
                    operations(prefix.operations),
                    timeline.history.show(prefix.culprit as usize)
                )
            }));
            said
        }
        Verdict::Unknown(progress) => vec![format!(
            "The search ended at its limit of {}, when the best attempt had explained {} of {} returns.",
            match progress.limit {
                Limit::Memory => "memory",
                Limit::Time => "time",
                Limit::Concurrency => "concurrent operations",
            },
            progress.decided,
            progress.total
        )],
    }
}

/// Says how many operations there are, and how many of them are shown.
pub(super) fn extent(timeline: &Timeline<'_>, scene: &Scene) -> String {
    let history = timeline.history;
    let skew = match history.skew() {
        0 => String::new(),
        skew => format!("; clocks agree to {skew}"),
    };
    match scene.left_out {
        0 => format!("{}{skew}", operations(history.len())),
        _ => format!("{} of {}{skew}", scene.bars.len(), operations(history.len())),
    }
}

fn operations(count: usize) -> String {
    if count == 1 { "1 operation".to_owned() } else { format!("{count} operations") }
}

/// The text with a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    let stop = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{stop}", letters.as_str())
}
