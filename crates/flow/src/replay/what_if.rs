//! What-if settings: the changes that a replay applies.

use crate::limits::MAX_WORKERS;
use crate::trace::file::Machine;
use crate::trace::model::{Model, ModelResource, ModelSupply};

/// The maximum factor for a stage's time.
const MAX_FACTOR: f64 = 1e6;

/// The minimum factor by which `Change::Slope` changes a stage's time. Far from the traced settings, a straight line is
/// wrong and could even become negative.
const MIN_FACTOR: f64 = 0.05;

/// Settings that differ from those of the traced run. The default changes nothing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct WhatIf {
    pub(crate) changes: Vec<Change>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Change {
    Capacity { resource: String, tokens: u64 },
    Rate { resource: String, per_second: f64 },
    Service { stage: String, factor: f64 },
    StageWorkers { stage: String, ceiling: usize },
    Batch { stage: String, units: usize },
    Workers(usize),
    Inflight(u64),
    Memory(u64),
    Cores(usize),
    Slope { stage: String, resource: String, per_token: f64 },
}

/// The reason why a trace cannot be replayed with the given settings.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The flow has no stage of this name.
    #[error("there is no stage `{stage}`: the stages are {known}")]
    #[expect(missing_docs, reason = "the message says what the fields are")]
    UnknownStage { stage: String, known: String },
    /// The flow has no resource of this name.
    #[error("there is no resource `{resource}`: the resources are {known}")]
    #[expect(missing_docs, reason = "the message says what the fields are")]
    UnknownResource { resource: String, known: String },
    /// A value is out of range or does not fit the setting.
    #[error("{what} cannot be {value}: {must}")]
    #[expect(missing_docs, reason = "the message says what the fields are")]
    BadValue { what: String, value: String, must: String },
    /// The flow has a feature that replays do not model.
    #[error("{0}, which replays do not model")]
    NoModel(String),
    /// A flow with these settings is refused, as a real run would be.
    #[error("a flow with these settings is refused: {0}")]
    Refused(String),
    /// The simulated run did not end.
    #[error("the replay does not end, with {left} units left: {held_by}")]
    #[expect(missing_docs, reason = "the message says what the fields are")]
    NoEnd { left: u64, held_by: String },
}

impl WhatIf {
    fn with(mut self, change: Change) -> Self {
        self.changes.push(change);
        self
    }

    /// Sets a resource's number of tokens or objects, per key if the resource is keyed. For a rate, sets the burst.
    #[must_use]
    pub fn capacity(self, resource: impl Into<String>, tokens: u64) -> Self {
        self.with(Change::Capacity { resource: resource.into(), tokens })
    }

    /// Sets a rate's tokens per second.
    #[must_use]
    pub fn rate(self, resource: impl Into<String>, per_second: f64) -> Self {
        self.with(Change::Rate { resource: resource.into(), per_second })
    }

    /// Scales the time of a stage's code by `factor`: 0.8 makes it a fifth shorter.
    #[must_use]
    pub fn service(self, stage: impl Into<String>, factor: f64) -> Self {
        self.with(Change::Service { stage: stage.into(), factor })
    }

    /// Scales the time of a stage's code with the capacity of a resource. The time grows by the share `per_token` for
    /// each additional token, and shrinks by that share for each token fewer than in the traced run. This models a disk
    /// or a server that slows down with more simultaneous requests.
    #[must_use]
    pub fn service_by_capacity(self, stage: impl Into<String>, resource: impl Into<String>, per_token: f64) -> Self {
        self.with(Change::Slope { stage: stage.into(), resource: resource.into(), per_token })
    }

    /// Sets the maximum number of a stage's workers.
    #[must_use]
    pub fn stage_workers(self, stage: impl Into<String>, ceiling: usize) -> Self {
        self.with(Change::StageWorkers { stage: stage.into(), ceiling })
    }

    /// Sets the maximum number of a stage's units that a worker takes at once.
    #[must_use]
    pub fn batch(self, stage: impl Into<String>, units: usize) -> Self {
        self.with(Change::Batch { stage: stage.into(), units })
    }

    /// Sets the number of shared workers.
    #[must_use]
    pub fn workers(self, threads: usize) -> Self {
        self.with(Change::Workers(threads))
    }

    /// Sets the cap on units in flight.
    #[must_use]
    pub fn inflight(self, units: u64) -> Self {
        self.with(Change::Inflight(units))
    }

    /// Sets the cap on payload bytes in flight.
    #[must_use]
    pub fn memory(self, bytes: u64) -> Self {
        self.with(Change::Memory(bytes))
    }

    /// Sets the number of cores.
    #[must_use]
    pub fn cores(self, cores: usize) -> Self {
        self.with(Change::Cores(cores))
    }

    /// Returns whether no setting is changed.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Applies the changes. Returns the factor by which each stage's time changes.
    pub(crate) fn apply(&self, model: &mut Model, machine: &mut Machine) -> Result<Vec<f64>, ReplayError> {
        let mut factors = vec![1.0; model.stages.len()];
        let capacities: Vec<u64> = model.resources.iter().map(ModelResource::capacity).collect();
        for change in &self.changes {
            match change {
                Change::Capacity { resource, tokens } => {
                    at_least_one(&format!("resource `{resource}`"), *tokens)?;
                    match &mut self.resource(model, resource)?.supply {
                        ModelSupply::Tokens(count) | ModelSupply::Rate { burst: count, .. } => *count = *tokens,
                    }
                }
                Change::Rate { resource, per_second: new } => match &mut self.resource(model, resource)?.supply {
                    ModelSupply::Rate { per_second, .. } if new.is_finite() && *new > 0.0 => *per_second = *new,
                    ModelSupply::Rate { .. } => {
                        return Err(bad(format!("the rate of `{resource}`"), new, "a rate is a positive number"));
                    }
                    ModelSupply::Tokens(_) => {
                        return Err(bad(
                            format!("resource `{resource}`"),
                            &format!("{new}/s"),
                            "it has tokens, not a rate",
                        ));
                    }
                },
                Change::Service { stage, factor } => {
                    if !(0.0..=MAX_FACTOR).contains(factor) {
                        let must = format!("a factor is from 0 to {MAX_FACTOR}");
                        return Err(bad(format!("the service of `{stage}`"), factor, &must));
                    }
                    factors[stage_index(model, stage)?] *= factor;
                }
                Change::StageWorkers { stage, ceiling } => {
                    workers(&format!("the workers of `{stage}`"), *ceiling)?;
                    let stage = stage_index(model, stage)?;
                    let floor = model.stages[stage].workers.map_or(0, |(floor, _)| floor);
                    model.stages[stage].workers = Some((floor.min(*ceiling), *ceiling));
                }
                Change::Batch { stage, units } => {
                    at_least_one(&format!("the batch of `{stage}`"), *units as u64)?;
                    let stage = stage_index(model, stage)?;
                    model.stages[stage].batch = Some(*units);
                }
                Change::Workers(threads) => {
                    workers("workers", *threads)?;
                    model.workers = *threads;
                }
                Change::Inflight(units) => {
                    at_least_one("inflight", *units)?;
                    model.inflight = *units;
                }
                Change::Memory(bytes) => {
                    at_least_one("memory", *bytes)?;
                    model.memory = Some(*bytes);
                }
                Change::Cores(cores) => {
                    at_least_one("cores", *cores as u64)?;
                    machine.cores = *cores;
                }
                // Slopes are applied last, because they depend on the other changes.
                Change::Slope { .. } => {}
            }
        }
        for change in &self.changes {
            let Change::Slope { stage, resource, per_token } = change else { continue };
            if !per_token.is_finite() {
                return Err(bad(format!("the slope of `{stage}`"), per_token, "it must be a finite number"));
            }
            self.resource(model, resource)?;
            let place = model.resource(resource).unwrap_or_default();
            let more = model.resources[place].capacity() as f64 - capacities[place] as f64;
            factors[stage_index(model, stage)?] *= (1.0 + per_token * more).clamp(MIN_FACTOR, MAX_FACTOR);
        }
        Ok(factors)
    }

    fn resource<'m>(&self, model: &'m mut Model, name: &str) -> Result<&'m mut ModelResource, ReplayError> {
        let Some(index) = model.resource(name) else {
            let known = list(model.resources.iter().map(|resource| &resource.name));
            return Err(ReplayError::UnknownResource { resource: name.to_owned(), known });
        };
        Ok(&mut model.resources[index])
    }
}

fn stage_index(model: &Model, name: &str) -> Result<usize, ReplayError> {
    let known = || list(model.stages.iter().map(|stage| &stage.name));
    model.stage(name).ok_or_else(|| ReplayError::UnknownStage { stage: name.to_owned(), known: known() })
}

fn list<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn bad(what: String, value: &impl ToString, must: &str) -> ReplayError {
    ReplayError::BadValue { what, value: value.to_string(), must: must.to_owned() }
}

fn at_least_one(what: &str, value: u64) -> Result<(), ReplayError> {
    if value == 0 { Err(bad(what.to_owned(), &value, "it must be at least 1")) } else { Ok(()) }
}

fn workers(what: &str, value: usize) -> Result<(), ReplayError> {
    match value {
        1..=MAX_WORKERS => Ok(()),
        _ => Err(bad(what.to_owned(), &value, &format!("it must be from 1 to {MAX_WORKERS}"))),
    }
}
