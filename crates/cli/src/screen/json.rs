//! The report as JSON.
//!
//! The report is one object. It has the members of [`Report`](millstream_flow::Report) and the members below. A time is
//! in nanoseconds if its name ends in `_ns`, and in seconds if its name ends in `_s`. Without a cap, `memory_cap` is
//! null.
//!
//! | member | contents |
//! | --- | --- |
//! | `run` | [the identity of the run](crate::run::identity::Identity): name, flow file, folder, parameters, inputs, host, start, version |
//! | `throughput` | [totals over time](super::throughput::Sample): `at_s`, `retired`, `dead_lettered` |
//! | `dead_letter_causes` | [`groups`](crate::causes::Group), the largest first, and the number of letters with `others` |
//! | `steered` | the [changes from outside](crate::steer::facts::Change) during the run: `at`, `at_s`, `user`, `process`, `did` |
//! | `ran_again` | the number of dead letters that were run again during the run |
//! | `metrics_lost` | the reason why the last metrics did not reach the collector of `--otlp`; otherwise null |
//! | `dead_letters_file` | the path of the file of dead letters, or null |
//! | `gathered_files` | for each stage that gathers a file, whether the file was `placed` |

use std::path::Path;

use millstream_command::screen::shown;
use millstream_runner::ops::{Fate, Gathered};
use serde_json::{Value, json as value};

use super::run_report::RunReport;

/// The report as indented JSON, with a newline at the end.
pub(crate) fn json(run: &RunReport<'_>) -> String {
    let report = run.report;
    let mut object = serde_json::to_value(report).expect("a report has only string keys and plain numbers");
    if let Value::Object(members) = &mut object {
        members.insert("run".to_owned(), value!(run.identity));
        members.insert("throughput".to_owned(), value!(run.throughput.samples()));
        members.insert("dead_letter_causes".to_owned(), value!(run.causes));
        members.insert("steered".to_owned(), value!(run.steered.changes));
        members.insert("ran_again".to_owned(), run.ran_again.ran().into());
        members.insert("metrics_lost".to_owned(), run.metrics_lost.into());
        let path = run.dead_letters.map_or(Value::Null, |path| path.to_string_lossy().into());
        members.insert("dead_letters_file".to_owned(), path);
        members.insert("gathered_files".to_owned(), run.gathered.iter().map(gathered_file).collect());
        if report.memory_cap == u64::MAX {
            members.insert("memory_cap".to_owned(), Value::Null);
        }
    }
    shown::json(&format!("{object:#}\n")).into_owned()
}

/// A file that a stage has gathered, and its fate.
fn gathered_file((stage, file): &(String, Gathered)) -> Value {
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let mut value = value!({ "stage": stage, "path": path(&file.path), "lines": file.lines });
    match &file.fate {
        Fate::Placed { earlier } => {
            value["placed"] = true.into();
            value["earlier"] = earlier.as_deref().map(path).into();
        }
        Fate::Kept { because, partial, .. } => {
            value["placed"] = false.into();
            value["because"] = because.to_string().into();
            value["partial"] = partial.as_deref().map(path).into();
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::sample::{RunSample, report};

    #[test]
    fn every_promised_member_is_there() {
        let (sample, report) = (RunSample::new(), report());
        let run =
            RunReport { dead_letters: Some(Path::new("d.jsonl")), metrics_lost: Some("late"), ..sample.of(&report) };
        let value: Value = serde_json::from_str(&json(&run)).unwrap();
        for member in
            ["flow", "admitted", "retired", "dead_lettered", "left", "wall_s", "peak_in_flight", "peak_bytes_in_flight"]
        {
            assert!(!value[member].is_null(), "{member}");
        }
        assert_eq!(value["outcome"], "complete");
        assert_eq!(value["ran_again"], 0);
        assert_eq!(value["metrics_lost"], "late");
        assert_eq!(value["dead_letters_file"], "d.jsonl");
        assert_eq!(value["run"]["flow_file"], "/flows/archive.toml");
        assert_eq!(value["run"]["params"]["out"], "/backup");
        assert_eq!(value["throughput"][0]["at_s"], 10.0);
        assert_eq!(value["dead_letter_causes"]["groups"][0]["units"], 2);
        assert_eq!(value["steered"][0]["did"][0], "inflight=256 (was 64)");
        for stage in value["stages"].as_array().unwrap() {
            for member in ["name", "units", "failures"] {
                assert!(!stage[member].is_null(), "{member}");
            }
            for times in ["service_ns", "wait_ns"] {
                for quantile in ["p50", "p99", "max"] {
                    assert!(stage[times][quantile].is_u64(), "{times}.{quantile}");
                }
            }
        }
        for resource in value["resources"].as_array().unwrap() {
            for member in ["name", "capacity", "peak_in_use"] {
                assert!(!resource[member].is_null(), "{member}");
            }
        }
    }

    #[test]
    fn no_cap_is_null() {
        let mut report = report();
        report.memory_cap = u64::MAX;
        let value: Value = serde_json::from_str(&json(&RunSample::new().of(&report))).unwrap();
        assert!(value["memory_cap"].is_null() && value["dead_letters_file"].is_null());
    }
}
