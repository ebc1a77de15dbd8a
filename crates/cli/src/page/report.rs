//! The page of a JSON report, which `run --report FILE.json` writes.
//!
//! A report contains the totals of stages and resources, the throughput over time and the failures by cause. Only a
//! trace also contains the edges between stages, and the history of each stage.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use millstream_command::screen::{shown, text};
use millstream_flow::{Phase, Report, ResourceSnapshot, Snapshot, StageSnapshot};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::kind::THE_REPORT;
use super::{PageError, Shown};
use crate::causes::Groups;
use crate::filled::filled;
use crate::retry::live::{Facts as Retry, RanAgain};
use crate::run::identity::Identity;
use crate::screen::html;
use crate::screen::run_report::RunReport;
use crate::screen::throughput::{Sample, Throughput};
use crate::serve::feed::{self, Reported};
use crate::shell_word::quoted;
use crate::steer::facts::{Change, Steered};

/// The maximum duration of a run in a report, in seconds.
const MAX_WALL_S: f64 = 1e12;

/// The members that the command adds to the report of a flow. A report that another program wrote through the library
/// has none of them.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Beside {
    run: Identity,
    throughput: Vec<Sample>,
    dead_letter_causes: Groups,
    steered: Vec<Change>,
    ran_again: u64,
    metrics_lost: Option<String>,
    dead_letters_file: Option<String>,
    gathered_files: Vec<GatheredFile>,
}

/// A file of lines that an `append` stage with `fresh` gathered from its units.
#[derive(Debug, Deserialize)]
struct GatheredFile {
    stage: String,
    path: String,
    lines: u64,
    placed: bool,
    because: Option<String>,
    partial: Option<String>,
}

impl GatheredFile {
    /// The fate of the file in words.
    fn told(&self) -> String {
        let Self { stage, path, lines, because, partial, .. } = self;
        let lines = text::counted(*lines, "line");
        if self.placed {
            return format!("{stage}: {lines} in {path}");
        }
        let because = because.as_deref().unwrap_or("not told");
        let partial = partial.as_ref().map(|partial| format!("; {lines} of this run in {partial}")).unwrap_or_default();
        format!("{stage}: {path} was not replaced: {because}{partial}")
    }
}

/// Reads a report.
pub(super) fn shown(path: &Path) -> Result<Shown, PageError> {
    let report: Report = read(path)?;
    let beside: Beside = read(path)?;
    if let Some(error) = contradiction(&report) {
        let path = shown::path(path).to_string();
        return Err(PageError::NotUnderstood { path, what: THE_REPORT, error });
    }
    Ok(page(&report, beside))
}

/// Reads a file of JSON as a `T`; members that `T` does not have are skipped.
fn read<T: DeserializeOwned>(path: &Path) -> Result<T, PageError> {
    let file = File::open(path).map_err(|error| PageError::NotOpened(shown::path(path).to_string(), error))?;
    serde_json::from_reader(BufReader::new(file)).map_err(|error| PageError::json(path, THE_REPORT, &error))
}

/// The reason why the numbers cannot be those of a run, if there is one.
fn contradiction(report: &Report) -> Option<String> {
    let sum = |numbers: &[u64]| numbers.iter().map(|n| u128::from(*n)).sum::<u128>();
    let came = sum(&[report.admitted, report.split]);
    let went = sum(&[report.retired, report.dead_lettered, report.gathered, report.left]);
    if came != went || came > u128::from(u64::MAX) {
        return Some(format!(
            "its units do not add up: {came} came (`admitted` and `split`), and {went} went (`retired`, `dead_lettered`, \
             `gathered` and `left`)"
        ));
    }
    if !(0.0..=MAX_WALL_S).contains(&report.wall_s) {
        return Some(format!("`wall_s` is {}; expected 0 to {MAX_WALL_S:e} seconds", report.wall_s));
    }
    None
}

fn page(report: &Report, beside: Beside) -> Shown {
    let mut throughput = Throughput::default();
    beside.throughput.iter().for_each(|sample| throughput.note(*sample));
    throughput.end(Sample { at_s: report.wall_s, retired: report.retired, dead_lettered: report.dead_lettered });
    let ran_again = RanAgain { taken: beside.ran_again, kept: 0 };
    let mut retry = Retry { again: beside.ran_again, ..Retry::default() };
    if let Some(file) = &beside.dead_letters_file {
        retry.letters = ran_again.still_dead(report.dead_lettered);
        retry.command = format!("millstream retry {}", quoted(file.as_bytes()));
    }
    let steered = Steered { changes: beside.steered.into(), older: 0 };
    let members = feed::reported(&Reported {
        now: &last(report),
        run: &beside.run.name,
        samples: throughput.samples(),
        causes: &beside.dead_letter_causes,
        steered: &steered,
        retry,
    });
    let run = RunReport {
        report,
        identity: &beside.run,
        throughput: &throughput,
        causes: &beside.dead_letter_causes,
        steered: &steered,
        ran_again,
        metrics_lost: beside.metrics_lost.as_deref(),
        dead_letters: beside.dead_letters_file.as_deref().map(Path::new),
        gathered: &[],
        page: &members,
    };
    let gathered = beside.gathered_files.iter().map(GatheredFile::told);
    Shown { data: html::data(&run, gathered), plain: html::plain(report), sliders: None }
}

/// The state in which the run ended.
fn last(report: &Report) -> Snapshot {
    let stages = report.stages.iter().map(|stage| {
        filled!(StageSnapshot {
            name: stage.name.clone(),
            units: stage.units,
            failures: stage.failures,
            retries: stage.retries,
            dead_lettered: stage.dead_lettered,
            requeued: stage.requeued,
            torn: stage.torn,
            busy_ns: stage.busy_ns,
            workers_min: stage.workers_min,
            workers_max: stage.workers_max,
            service_ns: stage.service_ns,
            wait_ns: stage.wait_ns,
            waited_for: stage.waited_for.clone(),
        })
    });
    let resources = report.resources.iter().map(|resource| {
        filled!(ResourceSnapshot {
            name: resource.name.clone(),
            kind: resource.kind.clone(),
            capacity: resource.capacity,
            rate_per_s: resource.rate_per_s,
            peak_in_use: resource.peak_in_use,
        })
    });
    filled!(Snapshot {
        flow: report.flow.clone(),
        wall_ns: (report.wall_s * 1e9) as u64,
        admitted: report.admitted,
        split: report.split,
        retired: report.retired,
        skipped: report.skipped,
        dead_lettered: report.dead_lettered,
        gathered: report.gathered,
        in_flight: report.left,
        inflight_cap: report.inflight_cap,
        memory_cap: report.memory_cap,
        peak_in_flight: report.peak_in_flight,
        peak_bytes_in_flight: report.peak_bytes_in_flight,
        oversize: report.oversize,
        workers: report.workers,
        phase: if report.left > 0 { Phase::Abandoned } else { Phase::Done },
        stages: stages.collect(),
        resources: resources.collect(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::screen::json::json;
    use crate::screen::sample::{RunSample, report};

    fn shown_of(text: &str) -> Result<Shown, PageError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        shown(file.path())
    }

    #[test]
    fn a_report_that_was_written_is_read_with_all_that_it_has() {
        let (sample, mut report) = (RunSample::new(), report());
        report.memory_cap = u64::MAX;
        let run = RunReport { dead_letters: Some(Path::new("d.jsonl")), ..sample.of(&report) };
        let page = shown_of(&json(&run)).unwrap();
        let data: Value = serde_json::from_str(&page.data).unwrap();
        let state = &data["state"];
        assert_eq!((&data["flow"]["flow"], &data["flow"]["run"]), (&"archive".into(), &"archive-4711".into()));
        assert_eq!(state["stages"].as_array().unwrap().len(), report.stages.len());
        assert_eq!((&state["totals"]["memory_cap"], &data["report"]["memory_cap"]), (&Value::Null, &Value::Null));
        assert_eq!((&state["causes"][0]["units"], &state["changes"][0]["user"]), (&2.into(), &1000.into()));
        assert_eq!(state["retry"]["command"], "millstream retry d.jsonl");
        assert!(state["history"]["moments"].as_array().unwrap().len() >= 5, "{}", state["history"]);
        assert_eq!(data["report"]["outcome"], "2 of 12,400 units dead-lettered");
        assert!(page.plain.contains("admitted 12,400 = retired 12,398"), "{}", page.plain);
    }

    #[test]
    fn a_report_of_the_library_has_its_own_members_alone() {
        let page = shown_of(&serde_json::to_string(&report()).unwrap()).unwrap();
        let data: Value = serde_json::from_str(&page.data).unwrap();
        assert_eq!((&data["flow"]["flow"], &data["state"]["retry"]["letters"]), (&"archive".into(), &0.into()));
    }

    #[test]
    fn impossible_numbers_are_refused_and_extreme_ones_shown() {
        let mut value = serde_json::to_value(report()).unwrap();
        let refused = |value: &Value| match shown_of(&value.to_string()) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{value} is shown"),
        };
        for (member, wrong, why) in [
            ("retired", u64::MAX.into(), "do not add up"),
            ("wall_s", Value::from(-1.0), "expected 0 to"),
            ("wall_s", "x".into(), "invalid type"),
            ("stages", Value::from([1]), "invalid type"),
            ("outcome", "lost".into(), "unknown variant"),
        ] {
            let mut wrong_one = value.clone();
            wrong_one[member] = wrong;
            assert!(refused(&wrong_one).contains(why), "{}", refused(&wrong_one));
        }
        for stage in value["stages"].as_array_mut().unwrap() {
            for number in ["units", "failures", "retries", "busy_ns", "workers_max"] {
                stage[number] = u64::MAX.into();
            }
            for times in ["service_ns", "wait_ns"] {
                stage[times]["p99"] = u64::MAX.into();
                stage[times]["max"] = u64::MAX.into();
            }
            stage["waited_for"] = serde_json::json!([
                { "resource": "a", "total_ns": u64::MAX, "units": u64::MAX },
                { "resource": "b", "total_ns": u64::MAX, "units": u64::MAX },
            ]);
        }
        shown_of(&value.to_string()).unwrap();
    }
}
