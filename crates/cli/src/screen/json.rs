//! The report as JSON.
//!
//! One object with the members of [`Report`] (times in nanoseconds where a name ends in `_ns`, in seconds where it
//! ends in
//! `_s`), and two more: `dead_letters_file`, the path of the file the dead letters went to or null, and `memory_cap` is
//! null where there is no cap.

use std::path::Path;

use millstream_flow::Report;
use serde_json::Value;

/// The report as indented JSON with a line end after it.
pub fn json(report: &Report, dead_letters: Option<&Path>) -> String {
    let mut value = serde_json::to_value(report).expect("a report has only string keys and plain numbers");
    if let Value::Object(members) = &mut value {
        let path = dead_letters.map_or(Value::Null, |path| path.to_string_lossy().into());
        members.insert("dead_letters_file".to_owned(), path);
        if report.memory_cap == u64::MAX {
            members.insert("memory_cap".to_owned(), Value::Null);
        }
    }
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::sample::report;

    #[test]
    fn every_promised_member_is_there() {
        let value: Value = serde_json::from_str(&json(&report(), Some(Path::new("d.jsonl")))).unwrap();
        for member in
            ["flow", "admitted", "retired", "dead_lettered", "left", "wall_s", "peak_in_flight", "peak_bytes_in_flight"]
        {
            assert!(!value[member].is_null(), "{member}");
        }
        assert_eq!(value["outcome"], "complete");
        assert_eq!(value["dead_letters_file"], "d.jsonl");
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
        let value: Value = serde_json::from_str(&json(&report, None)).unwrap();
        assert!(value["memory_cap"].is_null() && value["dead_letters_file"].is_null());
    }
}
