//! Parses `KEY=VALUE`, in the syntax of `millstream set`, as a change to a replay. Lists the settings of a trace.

use std::ops::RangeInclusive;

use millstream_command::{size, time};
use millstream_flow::{Trace, WhatIf};

/// The reason why a setting is not valid.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SettingError {
    /// There is no such setting.
    #[error("there is no setting `{key}`; there are {known}")]
    Unknown { key: String, known: String },
    /// The setting exists but cannot have this value.
    #[error("{key}={value}: {message}")]
    Value { key: String, value: String, message: String },
    /// A range of values is not valid.
    #[error("--sweep {found}: expected KEY=FROM..TO with whole numbers from 1 on, such as resource.disk=1..16")]
    Sweep { found: String },
}

/// A numeric setting, which a search may raise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Knob {
    Resource(String),
    StageWorkers(String),
    Batch(String),
    Workers,
    Inflight,
    Cores,
}

impl Knob {
    /// Returns the setting's key.
    pub(super) fn key(&self) -> String {
        match self {
            Knob::Resource(name) => format!("resource.{name}"),
            Knob::StageWorkers(stage) => format!("stage.{stage}.workers"),
            Knob::Batch(stage) => format!("stage.{stage}.batch"),
            Knob::Workers => "workers".into(),
            Knob::Inflight => "inflight".into(),
            Knob::Cores => "cores".into(),
        }
    }

    /// Returns `what_if` with this setting at `value`.
    pub(super) fn turn(&self, what_if: WhatIf, value: u64) -> WhatIf {
        let threads = usize::try_from(value).unwrap_or(usize::MAX);
        match self {
            Knob::Resource(name) => what_if.capacity(name, value),
            Knob::StageWorkers(stage) => what_if.stage_workers(stage, threads),
            Knob::Batch(stage) => what_if.batch(stage, threads),
            Knob::Workers => what_if.workers(threads),
            Knob::Inflight => what_if.inflight(value),
            Knob::Cores => what_if.cores(threads),
        }
    }

    /// Returns the setting with this key.
    fn of(key: &str, trace: &Trace) -> Option<Self> {
        let is_stage = |name: &str| trace.stages().any(|stage| stage == name);
        match key {
            "workers" => Some(Knob::Workers),
            "inflight" => Some(Knob::Inflight),
            "cores" => Some(Knob::Cores),
            _ => {
                if let Some(name) = key.strip_prefix("resource.") {
                    let name = name.strip_suffix(":*").unwrap_or(name);
                    return trace
                        .resources()
                        .iter()
                        .any(|resource| resource.name == name)
                        .then(|| Knob::Resource(name.into()));
                }
                let rest = key.strip_prefix("stage.")?;
                let of_stage =
                    |suffix: &str| rest.strip_suffix(suffix).filter(|name| is_stage(name)).map(str::to_owned);
                of_stage(".workers").map(Knob::StageWorkers).or_else(|| of_stage(".batch").map(Knob::Batch))
            }
        }
    }
}

/// Returns the settings that a search may raise, with their values in the run: resources with tokens, workers, units in
/// flight.
pub(super) fn knobs(trace: &Trace) -> Vec<(Knob, u64)> {
    let measured = trace.measured();
    let resources = trace.resources();
    let tokens = resources.iter().filter(|resource| resource.rate_per_s.is_none());
    let mut knobs: Vec<(Knob, u64)> =
        tokens.map(|resource| (Knob::Resource(resource.name.clone()), resource.capacity)).collect();
    knobs.push((Knob::Workers, measured.workers));
    knobs.push((Knob::Inflight, measured.inflight));
    knobs
}

/// The changes from the command line.
pub(crate) fn changes(settings: &[String], trace: &Trace) -> Result<WhatIf, SettingError> {
    settings.iter().try_fold(WhatIf::default(), |what_if, setting| change(what_if, setting, trace))
}

fn change(what_if: WhatIf, setting: &str, trace: &Trace) -> Result<WhatIf, SettingError> {
    let Some((key, value)) = setting.split_once('=') else { return Err(unknown(setting, trace)) };
    let wrong = |message: String| SettingError::Value { key: key.to_owned(), value: value.to_owned(), message };
    if key == "memory" {
        let bytes = if value == "none" { Ok(u64::MAX) } else { size::parse(value) };
        return bytes.map(|bytes| what_if.memory(bytes)).map_err(wrong);
    }
    if let Some(stage) = key.strip_prefix("stage.").and_then(|rest| rest.strip_suffix(".service")) {
        if !trace.stages().any(|name| name == stage) {
            return Err(unknown(key, trace));
        }
        return factor(value).map(|factor| what_if.service(stage, factor)).map_err(wrong);
    }
    let Some(knob) = Knob::of(key, trace) else { return Err(unknown(key, trace)) };
    if let (Knob::Resource(name), true) = (&knob, value.contains('/')) {
        return time::parse_rate(value).map(|rate| what_if.rate(name, rate)).map_err(wrong);
    }
    let number = value.parse().map_err(|_| wrong("expected a whole number".into()))?;
    Ok(knob.turn(what_if, number))
}

/// Returns the factor for `-20%`, `+50%` or `x0.5`.
fn factor(value: &str) -> Result<f64, String> {
    let expected = || "expected a change such as -20% or +50%, or a factor such as x0.5".to_owned();
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or_else(expected);
    let factor = match (value.strip_suffix('%'), value.strip_prefix('x')) {
        (Some(percent), _) if percent.starts_with(['+', '-']) => 1.0 + number(percent)? / 100.0,
        (_, Some(factor)) => number(factor)?,
        _ => return Err(expected()),
    };
    if factor < 0.0 { Err("a stage cannot take negative time".to_owned()) } else { Ok(factor) }
}

fn unknown(key: &str, trace: &Trace) -> SettingError {
    let mut known: Vec<String> = knobs(trace).iter().map(|(knob, _)| knob.key()).collect();
    let rates = trace.resources();
    known.extend(rates.iter().filter(|it| it.rate_per_s.is_some()).map(|it| format!("resource.{}", it.name)));
    known.extend(["memory".into(), "cores".into()]);
    known.extend(["workers", "batch", "service"].map(|what| format!("stage.NAME.{what}")));
    let stages: Vec<&str> = trace.stages().collect();
    SettingError::Unknown {
        key: key.to_owned(),
        known: format!("{} (stages: {})", known.join(", "), stages.join(", ")),
    }
}

/// A setting, and the values to be tried one after another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sweep {
    pub(super) knob: Knob,
    pub(super) values: Vec<u64>,
}

/// The maximum number of values of a sweep.
const MAX_VALUES: u64 = 16;

/// Parses `KEY=FROM..TO`.
pub(super) fn sweep(text: &str, trace: &Trace) -> Result<Sweep, SettingError> {
    let wrong = || SettingError::Sweep { found: text.to_owned() };
    let (key, range) = text.split_once('=').ok_or_else(wrong)?;
    let (from, to) = range.split_once("..").ok_or_else(wrong)?;
    let (from, to): (u64, u64) = (from.parse().map_err(|_| wrong())?, to.parse().map_err(|_| wrong())?);
    if from == 0 || to < from {
        return Err(wrong());
    }
    let knob = Knob::of(key, trace).ok_or_else(|| unknown(key, trace))?;
    Ok(Sweep { knob, values: spread(from..=to) })
}

/// Returns all values of a short range. For a long range, returns values that are spaced by a constant factor.
fn spread(range: RangeInclusive<u64>) -> Vec<u64> {
    let (from, to) = range.clone().into_inner();
    if to - from < MAX_VALUES {
        return range.collect();
    }
    let step = (to as f64 / from as f64).powf(1.0 / (MAX_VALUES - 1) as f64);
    let mut values: Vec<u64> =
        (0..MAX_VALUES).map(|nth| (from as f64 * step.powi(nth as i32)).round() as u64).collect();
    values.dedup();
    if let Some(last) = values.last_mut() {
        *last = to;
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_service_are_percents_or_factors() {
        assert_eq!(factor("-20%"), Ok(0.8));
        assert_eq!(factor("+50%"), Ok(1.5));
        assert_eq!(factor("x0.5"), Ok(0.5));
        for wrong in ["20%", "-120%", "x", "xNaN", "5ms", "", "%"] {
            assert!(factor(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn long_ranges_are_spread_and_keep_their_ends() {
        assert_eq!(spread(1..=4), [1, 2, 3, 4]);
        let values = spread(1..=1000);
        assert!(values.len() <= 16 && values[0] == 1 && values.last() == Some(&1000));
        assert!(values.is_sorted_by(|a, b| a < b), "{values:?}");
        assert_eq!(spread(7..=7), [7]);
    }
}
