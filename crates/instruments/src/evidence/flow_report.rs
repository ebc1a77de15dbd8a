//! `--from REPORT.json`: the outcomes of a flow's units.

use std::path::Path;

use serde_json::Value;

use super::error::EvidenceError;

/// The numbers of trials and of successes among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Units {
    /// Units that left the flow, or attempts of the stage.
    pub trials: u64,
    /// The successes among them.
    pub successes: u64,
}

/// Reads a report. Without a stage, each unit that left the flow is a trial, and each unit that was retired with a result
/// is a success. With a stage, each of its attempts is a trial, and each attempt that did not fail is a success.
///
/// # Errors
/// Returns an error if the file cannot be read, or is not the report of a complete run.
pub fn read(path: &Path, stage: Option<&str>) -> Result<Units, EvidenceError> {
    let place = path.display().to_string();
    let data = |problem: String| EvidenceError::Data { place: place.clone(), problem };
    let text = std::fs::read(path).map_err(|error| EvidenceError::usage(format!("{place} cannot be read: {error}")))?;
    let report: Value =
        serde_json::from_slice(&text).map_err(|error| data(format!("expected a report in JSON: {error}")))?;
    let count = |of: &Value, name: &str| {
        of[name].as_u64().ok_or_else(|| {
            data(format!("expected a report of `millstream run --report FILE.json`, found no count of `{name}` in it"))
        })
    };
    if let Some(stage) = stage {
        let stages = report["stages"].as_array().map_or(&[][..], Vec::as_slice);
        let Some(found) = stages.iter().find(|found| found["name"] == stage) else {
            let names: Vec<_> = stages.iter().filter_map(|stage| stage["name"].as_str()).collect();
            return Err(data(format!("expected a stage called {stage}, found {}", names.join(", "))));
        };
        let (units, failures) = (count(found, "units")?, count(found, "failures")?);
        return Ok(Units { trials: units.saturating_add(failures), successes: units });
    }
    let [retired, skipped, dead, left] =
        ["retired", "skipped", "dead_lettered", "left"].map(|name| count(&report, name));
    let (retired, skipped, dead, left) = (retired?, skipped?, dead?, left?);
    if left > 0 {
        return Err(data(format!(
            "expected every unit to have left the flow, found {left} left behind, whose outcome \
             is not known; take the report of a run that was not interrupted"
        )));
    }
    let successes =
        retired.checked_sub(skipped).ok_or_else(|| data("more units were skipped than retired".to_owned()))?;
    Ok(Units { trials: retired.saturating_add(dead), successes })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(report: &str, stage: Option<&str>) -> Result<Units, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        std::fs::write(&path, report).unwrap();
        read(&path, stage).map_err(|error| error.to_string())
    }

    #[test]
    fn dead_letters_and_skipped_units_are_not_successes() {
        let report = r#"{"retired":90,"skipped":5,"dead_lettered":10,"left":0,
            "stages":[{"name":"get","units":95,"failures":30}]}"#;
        assert_eq!(units(report, None), Ok(Units { trials: 100, successes: 85 }));
        assert_eq!(units(report, Some("get")), Ok(Units { trials: 125, successes: 95 }));
        assert!(units(report, Some("put")).unwrap_err().contains("found get"));
    }

    #[test]
    fn malformed_and_incomplete_reports_are_refused() {
        for (report, problem) in [
            ("", "expected a report in JSON"),
            ("{}", "no count of `retired`"),
            (r#"{"retired":-1,"skipped":0,"dead_lettered":0,"left":0}"#, "no count of `retired`"),
            (r#"{"retired":1,"skipped":2,"dead_lettered":0,"left":0}"#, "more units were skipped"),
            (r#"{"retired":1,"skipped":0,"dead_lettered":0,"left":3}"#, "found 3 left behind"),
        ] {
            assert!(units(report, None).unwrap_err().contains(problem), "{report}");
        }
    }
}
