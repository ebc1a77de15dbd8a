//! Checks whether a replay with the run's own settings reproduces the measured time. If not, the model lacks something
//! that was important in the run, and the answers of replays are worthless.

use std::time::Duration;

use millstream_command::screen::text;
use millstream_flow::Trace;

use super::answer::Answer;
use super::live;

/// The maximum error of a trustworthy replay, as a share of the measured time.
const MAX_MISS: f64 = 0.05;

/// The comparison of a run with a replay under the run's own settings.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Doubt {
    pub(crate) replayed_s: f64,
    pub(crate) measured_s: f64,
    /// The number of units whose outcome in the replay differs from the outcome in the run.
    pub(crate) lost: u64,
    units: u64,
    /// Effects that may be missing from the replay, most likely first.
    pub(crate) reasons: Vec<String>,
    /// The reason why the replay does not represent the run, if the two have different bottlenecks.
    pub(crate) contradiction: Option<String>,
}

impl Doubt {
    pub(crate) fn of(trace: &Trace, as_it_was: &Answer) -> Self {
        let measured_s = trace.measured().wall.as_secs_f64();
        let run = trace.measured();
        let lost = as_it_was.retired.abs_diff(run.retired).max(as_it_was.dead_lettered.abs_diff(run.dead_lettered));
        let units = run.retired + run.dead_lettered;
        let contradiction = contradiction(trace, as_it_was);
        let mut doubt =
            Doubt { replayed_s: as_it_was.wall_s, measured_s, lost, units, reasons: Vec::new(), contradiction };
        if doubt.is_serious() {
            doubt.reasons.extend(doubt.contradiction.clone());
            if doubt.loses() {
                let lost = text::counted(lost, "unit");
                doubt.reasons.push(format!("{lost} end differently in the replay: the replay lacks a rule"));
            }
            doubt.reasons.extend(reasons(trace, as_it_was, measured_s));
        }
        doubt
    }

    /// The error of the replay, as a share of the measured time.
    pub(crate) fn miss(&self) -> f64 {
        if self.measured_s > 0.0 { self.replayed_s / self.measured_s - 1.0 } else { 0.0 }
    }

    /// Whether the replay cannot be trusted: its error is too large, too many outcomes differ, or its bottleneck
    /// differs.
    pub(crate) fn is_serious(&self) -> bool {
        self.miss().abs() > MAX_MISS || self.loses() || self.contradiction.is_some()
    }

    /// Whether the outcome of more than one unit in a hundred differs. (A few may differ, because the number of groups
    /// may depend on timing.)
    pub(crate) fn loses(&self) -> bool {
        self.lost > self.units / 100
    }
}

/// The reason why a window does not represent the run, if there is one: units of the run wait for a resource, but the
/// resource does not limit the replay, because the window does not contain these units.
fn contradiction(trace: &Trace, as_it_was: &Answer) -> Option<String> {
    let run = trace.measured().bottleneck;
    let names = |limit: &str, name: &str| limit.strip_prefix(name).is_some_and(|rest| rest.starts_with(": "));
    // A stage may have the same name as a resource. Units wait only for the resource, so the text of the bottleneck
    // must also contain the words for a wait.
    let is_scarce = |name: &str| names(&run, name) && run.contains(" for it in ");
    let resource = trace.resources().into_iter().find(|resource| is_scarce(&resource.name))?;
    let lacks = trace.is_live() && trace.waiting() == 0 && !names(&as_it_was.limit, &resource.name);
    lacks.then(|| {
        format!(
            "units that wait for {} have not left, and the replay, which has only units that left, lacks them; it is limited by {}",
            text::printable(&resource.name),
            text::printable(&as_it_was.limit)
        )
    })
}

fn reasons(trace: &Trace, as_it_was: &Answer, measured_s: f64) -> Vec<String> {
    let mut reasons = Vec::new();
    let span = |time: Duration| text::span(time.as_nanos() as u64);
    if live::is_short(trace) {
        reasons.push(format!(
            "the window is short: {} have left, and {} may be in flight at once; ask again later",
            text::counted(trace.departed(), "unit"),
            text::count(trace.measured().inflight)
        ));
    }
    if trace.measured().was_steered {
        reasons.push("settings were changed during the run, but a replay uses the initial ones".to_owned());
    }
    let (cpu, delayed) = (trace.cpu_time(), trace.delayed_time());
    // The share of all cores that the stages use in the replay. If it is near 1, stages wait for cores in the replay as
    // well, so these waits do not explain a difference between the replay and the run.
    let full = cpu.as_secs_f64() / (as_it_was.wall_s * trace.cores() as f64);
    if as_it_was.wall_s < measured_s && delayed > cpu / 10 && full < 0.9 {
        reasons.push(format!(
            "another program used the processors: stages waited {} for one, and computed for {}",
            span(delayed),
            span(cpu)
        ));
    }
    let each = (cpu + trace.waiting_time()).as_nanos() as u64 / (trace.visits().max(1) as u64);
    if each < 5_000 {
        reasons.push(format!(
            "stages take only {} for a unit, so the engine's own time, of which a replay knows the average, is most of the total",
            text::span(each)
        ));
    }
    if as_it_was.wall_s < measured_s && reasons.is_empty() {
        reasons.push(format!(
            "something outside the flow's stages held up the run, such as programs with several threads on {}, or the end \
             of the source",
            text::counted(trace.cores() as u64, "core")
        ));
    }
    if as_it_was.wall_s > measured_s {
        reasons.push("programs that computed on several cores at once count as one core each in a replay".to_owned());
    }
    reasons
}
