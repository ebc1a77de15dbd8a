//! A trace that is replayed, and what comes of it.

use std::io::BufRead;
use std::sync::Arc;
use std::time::Duration;

use super::bound;
use super::script::Script;
use super::stand_in::{Shade, build};
use super::what_if::{ReplayError, WhatIf};
use crate::engine::run::front::mix;
use crate::engine::simulate::drive::{Costs, NoEnd, Pulls, simulate};
use crate::engine::simulate::meter::{Meter, Spent};
use crate::report::Report;
use crate::trace::file::{Header, Measured, TraceError};
use crate::trace::model::{Model, ModelResource};

/// The trace of a run, which [`Flow::record`](crate::Flow::record) has written.
#[derive(Debug)]
pub struct Trace {
    header: Header,
    measured: Measured,
    script: Arc<Script>,
}

/// The numbers that a traced run came to.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TracedRun {
    /// The time from its start to the departure of its last unit.
    pub wall: Duration,
    /// Units that left, done.
    pub retired: u64,
    /// Units that failed for good.
    pub dead_lettered: u64,
    /// Half of the units took at most this from their admission to their departure.
    pub latency_p50: Duration,
    /// 99 % of the units took at most this.
    pub latency_p99: Duration,
    /// The mean of that time.
    pub latency_mean: Duration,
    /// The bottleneck, in words.
    pub bottleneck: String,
    /// The cap on units in flight at the end.
    pub inflight: u64,
    /// Shared workers at the end.
    pub workers: u64,
    /// Settings were changed while it ran.
    pub was_steered: bool,
}

/// The outcome of a replay.
#[derive(Debug)]
#[non_exhaustive]
pub struct Replayed {
    /// The report of the simulated run.
    pub report: Report,
}

impl Trace {
    /// Reads a trace.
    ///
    /// The reader holds one chunk at a time, and of each run of a unit in a stage what a replay needs: about 90 bytes.
    ///
    /// # Errors
    /// See [`TraceError`].
    pub fn read(input: impl BufRead) -> Result<Self, TraceError> {
        let (header, measured, script) = Script::read(input)?;
        Ok(Trace { header, measured, script: Arc::new(script) })
    }

    /// The name of the flow.
    pub fn flow(&self) -> &str {
        &self.header.model.flow
    }

    /// The note that the program gave to the recording.
    pub fn note(&self) -> &serde_json::Value {
        &self.header.note
    }

    /// The names of the stages, in the order they were declared.
    pub fn stages(&self) -> impl Iterator<Item = &str> {
        self.header.model.stages.iter().map(|stage| &*stage.name)
    }

    /// The resources, in the order they were declared.
    pub fn resources(&self) -> Vec<crate::plan::PlanResource> {
        self.header.model.resources.iter().map(ModelResource::as_plan).collect()
    }

    /// The cores of the machine.
    pub fn cores(&self) -> usize {
        self.header.machine.cores
    }

    /// The processor time of all stages' code together, programs included.
    pub fn cpu_time(&self) -> Duration {
        Duration::from_nanos(self.script.account().cpu_ns)
    }

    /// The time for which all stages' code together waited for something else than a processor.
    pub fn waiting_time(&self) -> Duration {
        Duration::from_nanos(self.script.account().wait_ns)
    }

    /// The time for which stages' code was ready to run and had no processor, as far as the kernel tells.
    pub fn delayed_time(&self) -> Duration {
        Duration::from_nanos(self.script.account().delayed_ns)
    }

    /// The number of units that the source brought.
    pub fn units(&self) -> usize {
        self.script.roots().len()
    }

    /// The number of runs of units in stages.
    pub fn visits(&self) -> usize {
        self.script.visits().len()
    }

    /// The numbers that the run came to.
    pub fn measured(&self) -> TracedRun {
        let Measured { wall_ns, retired, dead_lettered, latency_p50_ns, latency_p99_ns, latency_mean_ns, .. } =
            self.measured;
        let model = &self.header.model;
        let capacities = model.resources.iter().map(ModelResource::capacity);
        TracedRun {
            wall: Duration::from_nanos(wall_ns),
            retired,
            dead_lettered,
            latency_p50: Duration::from_nanos(latency_p50_ns),
            latency_p99: Duration::from_nanos(latency_p99_ns),
            latency_mean: Duration::from_nanos(latency_mean_ns),
            bottleneck: self.measured.bottleneck.clone(),
            inflight: self.measured.inflight,
            workers: self.measured.workers,
            was_steered: self.measured.inflight != model.inflight
                || self.measured.workers != model.workers as u64
                || !self.measured.capacities.iter().copied().take(model.resources.len()).eq(capacities),
        }
    }

    /// Replays the run with other settings, in simulated time: each unit goes the way that it went, and takes the time in
    /// each stage that it took.
    ///
    /// The engine's own rules decide which unit waits for which. The processor's part of the time is shared among the cores; the
    /// other part lasts as long as it did, whatever else runs: a disk that slows down under more requests is not in the
    /// model.
    ///
    /// # Errors
    /// See [`ReplayError`].
    pub fn replay(&self, what_if: &WhatIf) -> Result<Replayed, ReplayError> {
        self.replay_in(what_if, (0..self.script.roots().len()).collect())
    }

    /// The bottleneck law: the least time that the work of the run can take with these settings, whatever the order of its
    /// units, and the name of what sets it. A replay takes at least as long.
    ///
    /// # Errors
    /// As for [`replay`](Self::replay).
    pub fn at_least(&self, what_if: &WhatIf) -> Result<(Duration, String), ReplayError> {
        let (mut model, mut machine) = (self.header.model.clone(), self.header.machine);
        let factors = what_if.apply(&mut model, &mut machine)?;
        Ok(bound::at_least(&model, &factors, machine.cores, &self.script))
    }

    /// [`replay`](Self::replay) with units that are drawn at random from those of the run, as many as there were, each as
    /// often as it comes. Several such replays show how far an answer depends on the units that the run happened to have.
    ///
    /// # Errors
    /// As for `replay`.
    pub fn replay_resampled(&self, what_if: &WhatIf, seed: u64) -> Result<Replayed, ReplayError> {
        let roots = self.script.roots().len();
        let draw = |nth| ((u128::from(mix(seed ^ mix(nth))) * roots as u128) >> 64) as usize;
        self.replay_in(what_if, (0..roots as u64).map(draw).collect())
    }

    /// Replays the units with these places among those of the source, in this order.
    fn replay_in(&self, what_if: &WhatIf, order: Vec<usize>) -> Result<Replayed, ReplayError> {
        let Header { model, machine, .. } = &self.header;
        if self.measured.left > 0 {
            return Err(ReplayError::NoModel(format!("the run left {} units in flight", self.measured.left)));
        }
        let (mut model, mut machine) = (model.clone(), *machine);
        let factors = what_if.apply(&mut model, &mut machine)?;
        let costs = Costs { cores: machine.cores, wake_ns: machine.wake_ns, start_ns: machine.start_ns };
        play(&model, &factors, &self.script, order, costs).map(|report| Replayed { report })
    }
}

/// Plays a script on the stand-in of a model. `order` has the places of its roots.
pub(super) fn play(
    model: &Model,
    factors: &[f64],
    script: &Arc<Script>,
    order: Vec<usize>,
    costs: Costs,
) -> Result<Report, ReplayError> {
    let meter = Arc::new(Meter::default());
    let flow = build(model, factors, script, &meter)?;
    let roots: Vec<Shade> = order.iter().map(|&place| Shade::new(script.roots()[place])).collect();
    flow.give_source(roots.into_iter());
    let mut pulls = ScriptedPulls { script, order: order.into_iter() };
    let max_events = 10_000 + 64 * (script.visits().len() + script.units()) as u64;
    simulate(&flow.shared, &meter, costs, &mut pulls, max_events).map_err(|no_end| match no_end {
        NoEnd::Stuck { left, held_by } => ReplayError::NoEnd { left, held_by },
        NoEnd::TooManyEvents => {
            ReplayError::NoEnd { left: 0, held_by: format!("after {max_events} events it still goes on") }
        }
    })
}

struct ScriptedPulls<'a> {
    script: &'a Script,
    order: std::vec::IntoIter<usize>,
}

impl Pulls for ScriptedPulls<'_> {
    fn next(&mut self, units: usize) -> Spent {
        let mut spent = Spent::default();
        for place in self.order.by_ref().take(units) {
            let Spent { cpu_ns, wait_ns } = self.script.pull(place);
            spent.cpu_ns += cpu_ns;
            spent.wait_ns += wait_ns;
        }
        spent
    }
}
