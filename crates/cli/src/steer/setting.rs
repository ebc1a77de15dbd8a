//! Parses and applies changes to the settings of a running flow, such as `inflight=64` and `resource.disk=2`.
//!
//! | setting | meaning |
//! | --- | --- |
//! | `inflight=N` | the cap on units in flight |
//! | `memory=SIZE`, `memory=none` | the cap on bytes in flight |
//! | `workers=N` | the threads that serve all stages without threads of their own |
//! | `resource.NAME=N` | the tokens of a resource, or of each of its keys (0 pauses its units); the burst of a rate |
//! | `resource.NAME=N/s` (`/m`, `/h`) | a rate |
//! | `stage.NAME.workers=N`, `=N..M` | the maximum number of workers in a stage, or the minimum and the maximum |
//!
//! All settings of a request are parsed and checked against the running flow before the first setting is applied. If
//! the engine still refuses a setting, the settings that were applied before it are undone.

use std::fmt;

use millstream_command::screen::text;
use millstream_command::{size, time};
use millstream_flow::{Control, Rate, ResourceSnapshot, SetError, Snapshot, StageSnapshot};
use millstream_runner::file::model::MAX_WORKERS;

/// The reason why a change was refused. Nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SettingError {
    /// The flow has no setting with this name.
    #[error("`{key}` cannot be set in this flow")]
    Unknown {
        /// The requested key.
        key: String,
    },
    /// The value is not valid for the setting.
    #[error("`{key}={value}`: {message}")]
    Value {
        /// The requested key.
        key: String,
        /// The invalid value.
        value: String,
        /// The reason, and a description of valid values.
        message: String,
    },
    /// The engine refused.
    #[error("`{setting}`: {message}")]
    Refused {
        /// The setting with its value, as `key=value`.
        setting: String,
        /// The message of the engine.
        message: String,
    },
}

/// A setting of a flow with its new value. The resource or stage that it names exists.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Setting {
    /// The cap on units in flight.
    InFlight(u64),
    /// The cap on bytes in flight; `u64::MAX` means no cap.
    Memory(u64),
    /// The number of threads that serve all stages that do not block.
    SharedWorkers(u64),
    /// Tokens of a resource.
    Capacity {
        /// The resource's name.
        resource: String,
        /// The number of tokens. If the resource is keyed, each key has this number.
        tokens: u64,
    },
    /// The rate of a resource.
    Rate {
        /// The resource's name.
        resource: String,
        /// Tokens per second.
        per_second: f64,
        /// The maximum number of grants at once after a time without grants.
        burst: u64,
    },
    /// The minimum and maximum number of a stage's workers.
    Workers {
        /// The stage's name.
        stage: String,
        /// The minimum number of workers.
        min: u64,
        /// The maximum number of workers.
        max: u64,
    },
}

impl Setting {
    /// Parses `key` and `value` for a flow in the state `now`.
    ///
    /// # Errors
    /// [`SettingError`], which states the problem of the key or the value.
    pub(crate) fn parse(key: &str, value: &str, now: &Snapshot) -> Result<Self, SettingError> {
        let wrong = |message: String| SettingError::Value { key: key.to_owned(), value: value.to_owned(), message };
        let unknown = || SettingError::Unknown { key: key.to_owned() };
        if key == "inflight" {
            return positive(value).map(Self::InFlight).map_err(wrong);
        }
        if key == "memory" {
            return match value {
                "none" => Ok(Self::Memory(u64::MAX)),
                _ => match size::parse(value).map_err(wrong)? {
                    0 => Err(wrong("the cap must be at least 1 byte; `none` lifts the cap".to_owned())),
                    bytes => Ok(Self::Memory(bytes)),
                },
            };
        }
        if key == "workers" {
            return Self::parse_shared_workers(value, now).map_err(wrong);
        }
        if let Some(name) = key.strip_prefix("resource.") {
            let name = name.strip_suffix(":*").unwrap_or(name);
            let resource = now.resources.iter().find(|resource| resource.name == name).ok_or_else(unknown)?;
            return Self::parse_resource(resource, value).map_err(wrong);
        }
        if let Some(name) = key.strip_prefix("stage.").and_then(|rest| rest.strip_suffix(".workers")) {
            let stage = now.stages.iter().find(|stage| stage.name == name).ok_or_else(unknown)?;
            return Self::parse_workers(stage, value, now).map_err(wrong);
        }
        Err(unknown())
    }

    fn parse_resource(resource: &ResourceSnapshot, value: &str) -> Result<Self, String> {
        let name = resource.name.clone();
        match (value.contains('/'), resource.rate_per_s) {
            (true, None) => Err(format!("{name} holds {}; expected their number", resource.kind)),
            (true, Some(_)) => {
                let per_second = time::parse_rate(value)?;
                Ok(Self::Rate { resource: name, per_second, burst: resource.capacity })
            }
            (false, Some(per_second)) => {
                let burst = positive(value)
                    .map_err(|_| format!("{name} is a rate; expected one such as 20/s, or a number for its burst"))?;
                Ok(Self::Rate { resource: name, per_second, burst })
            }
            (false, None) => whole(value).map(|tokens| Self::Capacity { resource: name, tokens }),
        }
    }

    fn parse_shared_workers(value: &str, now: &Snapshot) -> Result<Self, String> {
        let workers = positive(value)?;
        if workers > MAX_WORKERS as u64 {
            return Err(format!("a flow has at most {MAX_WORKERS} workers"));
        }
        if now.stages.iter().all(|stage| stage.blocking) {
            return Err(
                "it would have no effect, since every stage has threads of its own: set `stage.NAME.workers` or what \
                        they need"
                    .to_owned(),
            );
        }
        Ok(Self::SharedWorkers(workers))
    }

    fn parse_workers(stage: &StageSnapshot, value: &str, now: &Snapshot) -> Result<Self, String> {
        let cores = now.workers;
        let bound = |text: &str| if text == "cores" { Ok(cores) } else { positive(text) };
        let (min, max) = match value.split_once("..") {
            Some((min, max)) => {
                (if min == "0" { 0 } else { bound(min)? }, bound(max.strip_prefix('=').unwrap_or(max))?)
            }
            // A single number is the maximum. If it is below the minimum, it also becomes the minimum.
            None => bound(value).map(|max| (stage.workers_min.min(max), max))?,
        };
        if min > max {
            return Err(format!("the floor {min} is above the ceiling {max}"));
        }
        let within_reach = |floor: u64, ceiling: u64| ceiling.min(floor + cores);
        let (was, is) = (within_reach(stage.workers_min, stage.workers_max), within_reach(min, max));
        if !stage.blocking && min == stage.workers_min && max != stage.workers_max && max > is && is == was {
            let workers = text::counted(cores, "worker");
            return Err(format!(
                "it would have no effect, since the stage shares the flow's {workers} with the others: set `workers={max}` as \
                 well, or give it threads of its own with `blocking = true` in the flow file"
            ));
        }
        Ok(Self::Workers { stage: stage.name.clone(), min, max })
    }

    /// The setting with its old value, for undoing this change.
    fn undo(&self, now: &Snapshot) -> Self {
        let resource = |name: &str| now.resources.iter().find(|resource| resource.name == name);
        match self {
            Self::InFlight(_) => Self::InFlight(now.inflight_cap),
            Self::Memory(_) => Self::Memory(now.memory_cap),
            Self::SharedWorkers(_) => Self::SharedWorkers(now.workers),
            Self::Capacity { resource: name, tokens } => {
                let tokens = resource(name).map_or(*tokens, |resource| resource.capacity);
                Self::Capacity { resource: name.clone(), tokens }
            }
            Self::Rate { resource: name, per_second, burst } => {
                let before = resource(name);
                Self::Rate {
                    resource: name.clone(),
                    per_second: before.and_then(|resource| resource.rate_per_s).unwrap_or(*per_second),
                    burst: before.map_or(*burst, |resource| resource.capacity),
                }
            }
            Self::Workers { stage: name, min, max } => {
                let before = now.stages.iter().find(|stage| stage.name == *name);
                let (min, max) = before.map_or((*min, *max), |stage| (stage.workers_min, stage.workers_max));
                Self::Workers { stage: name.clone(), min, max }
            }
        }
    }

    fn apply(&self, control: &Control) -> Result<(), SetError> {
        let size = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        match self {
            Self::InFlight(units) => control.set_inflight(*units),
            Self::Memory(bytes) => control.set_memory(*bytes),
            Self::SharedWorkers(threads) => control.set_shared_workers(size(*threads)),
            Self::Capacity { resource, tokens } => control.set_capacity(resource, *tokens),
            Self::Rate { resource, per_second, burst } => {
                control.set_rate(resource, Rate::per_second(*per_second).burst(*burst))
            }
            Self::Workers { stage, min, max } => control.set_workers(stage, size(*min)..=size(*max)),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InFlight(units) => write!(f, "inflight={units}"),
            Self::Memory(u64::MAX) => f.write_str("memory=none"),
            Self::Memory(bytes) => write!(f, "memory={}", size::show(*bytes)),
            Self::SharedWorkers(threads) => write!(f, "workers={threads}"),
            Self::Capacity { resource, tokens } => write!(f, "resource.{resource}={tokens}"),
            Self::Rate { resource, per_second, burst } => {
                write!(f, "resource.{resource}={per_second}/s (burst {burst})")
            }
            Self::Workers { stage, min, max } => write!(f, "stage.{stage}.workers={min}..{max}"),
        }
    }
}

/// Applies settings, each `key=value`, either all or none. Returns the new and the old value of each.
///
/// # Errors
/// The first [`SettingError`]. Nothing has changed then.
pub(crate) fn apply_all(settings: &[String], control: &Control) -> Result<Vec<String>, SettingError> {
    let now = control.snapshot();
    let then = with_workers(&now, settings);
    let settings = settings
        .iter()
        .map(|setting| match setting.split_once('=') {
            Some((key, value)) => Setting::parse(key.trim(), value.trim(), &then),
            None => Err(SettingError::Value {
                key: setting.clone(),
                value: String::new(),
                message: "expected KEY=VALUE".to_owned(),
            }),
        })
        .collect::<Result<Vec<_>, _>>()?;
    let mut undo: Vec<Setting> = Vec::new();
    let mut changes = Vec::new();
    for setting in &settings {
        if let Err(error) = setting.apply(control) {
            for before in undo.iter().rev() {
                // This cannot fail: the flow ran with these values a moment ago.
                let _ = before.apply(control);
            }
            return Err(SettingError::Refused { setting: setting.to_string(), message: error.to_string() });
        }
        let before = setting.undo(&now);
        changes.push(format!("{setting} (was {})", before.value()));
        undo.push(before);
    }
    Ok(changes)
}

/// The snapshot against which the settings of stages are checked. It has the flow's new number of workers, if the same
/// request sets it.
fn with_workers(now: &Snapshot, settings: &[String]) -> Snapshot {
    let mut then = now.clone();
    let values =
        settings.iter().filter_map(|setting| setting.split_once('=')).filter(|(key, _)| key.trim() == "workers");
    if let Some(workers) = values.filter_map(|(_, value)| positive(value.trim()).ok()).next_back() {
        then.workers = workers;
    }
    then
}

impl Setting {
    /// The text after the `=`.
    fn value(&self) -> String {
        let text = self.to_string();
        text.split_once('=').map_or(text.clone(), |(_, value)| value.to_owned())
    }
}

/// The settings of a flow with the snapshot `now`, as lines of the form `key=value`.
pub(crate) fn settable(now: &Snapshot) -> Vec<String> {
    let mut lines = vec![format!("inflight={}", now.inflight_cap), Setting::Memory(now.memory_cap).to_string()];
    if now.stages.iter().any(|stage| !stage.blocking) {
        lines.push(format!("workers={}", now.workers));
    }
    for resource in &now.resources {
        let name = &resource.name;
        match resource.rate_per_s {
            Some(per_second) => lines.push(format!("resource.{name}={per_second}/s")),
            None => lines.push(format!("resource.{name}={}", resource.capacity)),
        }
    }
    for stage in &now.stages {
        lines.push(format!("stage.{}.workers={}..{}", stage.name, stage.workers_min, stage.workers_max));
    }
    lines
}

fn whole(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "expected a whole number".to_owned())
}

fn positive(text: &str) -> Result<u64, String> {
    match whole(text)? {
        0 => Err("a cap of zero would let nothing through; expected 1 or more".to_owned()),
        n => Ok(n),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::sample::snapshot;

    fn parse(setting: &str) -> Result<Setting, SettingError> {
        let (key, value) = setting.split_once('=').unwrap();
        Setting::parse(key, value, &snapshot())
    }

    #[test]
    fn every_kind_of_setting_is_read() {
        for (text, expected) in [
            ("inflight=64", Setting::InFlight(64)),
            ("memory=128MiB", Setting::Memory(128 << 20)),
            ("memory=none", Setting::Memory(u64::MAX)),
            ("workers=8", Setting::SharedWorkers(8)),
            ("resource.disk=3", Setting::Capacity { resource: "disk".into(), tokens: 3 }),
            ("resource.disk=0", Setting::Capacity { resource: "disk".into(), tokens: 0 }),
            ("resource.disk:*=3", Setting::Capacity { resource: "disk".into(), tokens: 3 }),
            ("resource.api=20/s", Setting::Rate { resource: "api".into(), per_second: 20.0, burst: 10 }),
            ("resource.api=5", Setting::Rate { resource: "api".into(), per_second: 50.0, burst: 5 }),
            ("stage.zstd.workers=3", Setting::Workers { stage: "zstd".into(), min: 1, max: 3 }),
            ("stage.zstd.workers=2..3", Setting::Workers { stage: "zstd".into(), min: 2, max: 3 }),
            ("stage.zstd.workers=0..3", Setting::Workers { stage: "zstd".into(), min: 0, max: 3 }),
            ("stage.zstd.workers=1..cores", Setting::Workers { stage: "zstd".into(), min: 1, max: 2 }),
        ] {
            assert_eq!(parse(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn a_senseless_setting_is_refused_with_its_reason() {
        for (text, reason) in [
            ("inflight=0", "cap of zero"),
            ("inflight=-1", "whole number"),
            ("inflight=", "whole number"),
            ("memory=lots", "memory=lots"),
            ("memory=0", "none"),
            ("resource.disk=2/s", "holds tokens"),
            ("resource.api=fast", "is a rate"),
            ("resource.api=0/s", "resource.api"),
            ("stage.zstd.workers=4..2", "above the ceiling"),
            ("stage.zstd.workers=0", "cap of zero"),
            ("stage.zstd.workers=40", "set `workers=40` as well"),
            ("stage.zstd.workers=1..40", "no effect"),
            ("workers=0", "cap of zero"),
            ("workers=5000", "at most 4096"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(matches!(error, SettingError::Value { .. }), "{text}: {error:?}");
            assert!(error.to_string().contains(reason), "{text}: {error}");
        }
        for text in ["worker=3", "resource.dsik=2", "stage.nope.workers=1", "stage.zstd=1", "=1", "resource.=1"] {
            assert!(matches!(parse(text), Err(SettingError::Unknown { .. })), "{text}");
        }
    }

    #[test]
    fn a_listed_setting_can_be_set_as_it_is_shown() {
        let lines = settable(&snapshot());
        assert_eq!(lines.len(), 3 + 2 + 4);
        for line in lines {
            parse(&line).unwrap();
        }
    }

    #[test]
    fn a_stage_may_have_all_workers_that_the_same_change_sets() {
        let settings = ["stage.zstd.workers=40".to_owned(), "workers=40".to_owned()];
        let then = with_workers(&snapshot(), &settings);
        let expected = Setting::Workers { stage: "zstd".into(), min: 1, max: 40 };
        assert_eq!(Setting::parse("stage.zstd.workers", "40", &then).unwrap(), expected);
    }

    #[test]
    fn where_every_stage_blocks_shared_workers_cannot_be_set() {
        let mut now = snapshot();
        now.stages.iter_mut().for_each(|stage| stage.blocking = true);
        assert!(Setting::parse("workers", "8", &now).unwrap_err().to_string().contains("no effect"));
        assert!(settable(&now).iter().all(|line| !line.starts_with("workers=")));
    }

    #[test]
    fn undoing_restores_what_was() {
        let now = snapshot();
        for text in
            ["inflight=64", "memory=1MiB", "workers=7", "resource.disk=9", "resource.api=1/s", "stage.zstd.workers=1"]
        {
            let before = parse(text).unwrap().undo(&now);
            assert_eq!(before.undo(&now), before, "{text}");
            assert_ne!(before, parse(text).unwrap(), "{text}");
        }
    }
}
