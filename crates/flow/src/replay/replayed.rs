//! A trace, and its replays.

use std::io::{BufRead, Seek};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::draft::Draft;
use super::loss::fit_loss;
use super::play::{Replayed, play};
use super::script::Script;
use super::stand_in::build;
use super::what_if::{ReplayError, WhatIf};
use super::{bound, sample};
use crate::engine::run::front::mix;
use crate::engine::simulate::drive::{Costs, Viewer};
use crate::engine::simulate::meter::Meter;
use crate::plan::Plan;
use crate::snapshot::Snapshot;
use crate::trace::file::{Header, Machine, MeanTimes, Measured, TraceError, read_trace};
use crate::trace::model::{ModelResource, ModelStage};
use crate::trace::run::Record;

/// The maximum number of runs of units in stages for [`Trace::read`], which cannot read its input a second time.
const MAX_VISITS: usize = 8_000_000;

/// The trace of a run, written by [`Flow::record`](crate::Flow::record).
#[derive(Debug)]
pub struct Trace {
    header: Header,
    measured: Measured,
    script: Arc<Script>,
    /// The number of units of the run that each unit of the script represents.
    weight: f64,
    /// See [`fit_loss`].
    loss: OnceLock<f64>,
}

/// The measurements of a traced run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TracedRun {
    /// The time from the start to the departure of the last unit.
    pub wall: Duration,
    /// The number of units that retired.
    pub retired: u64,
    /// The number of units that failed for good.
    pub dead_lettered: u64,
    /// The median of the time from a unit's admission to its departure.
    pub latency_p50: Duration,
    /// The 99th percentile of the same time.
    pub latency_p99: Duration,
    /// The mean of the same time.
    pub latency_mean: Duration,
    /// A description of the bottleneck.
    pub bottleneck: String,
    /// The cap on units in flight at the end.
    pub inflight: u64,
    /// The number of shared workers at the end.
    pub workers: u64,
    /// Whether settings were changed during the run.
    pub was_steered: bool,
}

impl Trace {
    /// Reads a trace.
    ///
    /// Reading takes memory for one chunk at a time, and about 90 bytes for each run of a unit in a stage. From a [live
    /// trace](crate::LiveTrace), the reader keeps the newest 100,000 complete units and the units that still wait. The
    /// rest of a waiting unit's path is copied from a similar unit that has left.
    ///
    /// # Errors
    /// See [`TraceError`]. A trace with more than eight million runs of units in stages is refused.
    pub fn read(input: impl BufRead) -> Result<Self, TraceError> {
        let mut draft = Draft::of(MAX_VISITS);
        let (header, mut measured) = read_trace(input, |header, _, record| {
            if let Record::Run { began_ns, .. } | Record::Pull { began_ns, .. } = record
                && !Draft::is_within(header.window, began_ns)
            {
                return Ok(());
            }
            draft.take(header, record, |_| true)
        })?;
        if header.window.is_some() {
            draft.keep_whole(&header, &mut measured);
        }
        Self::of(header, measured, draft)
    }

    /// Reads a trace in bounded memory. If the trace has more than two million runs of units in stages, only a sample
    /// is kept.
    ///
    /// A sample consists of whole families, has about one million runs, and represents the whole run: see
    /// [`weight`](Self::weight). To sample, the input is read twice. If the flow splits its units, the input is read
    /// up to four times, and once more for each additional generation.
    ///
    /// # Errors
    /// See [`TraceError`].
    pub fn read_or_sample(input: impl BufRead + Seek) -> Result<Self, TraceError> {
        Self::sample(input, sample::WHOLE_VISITS)
    }

    /// Like [`read_or_sample`](Self::read_or_sample), but samples a trace with more than `most_visits` runs. The sample
    /// has about half as many runs, which bounds the time of a replay.
    ///
    /// # Errors
    /// See [`TraceError`].
    pub fn sample(input: impl BufRead + Seek, most_visits: usize) -> Result<Self, TraceError> {
        let (header, measured, draft) = sample::read(input, most_visits)?;
        Self::of(header, measured, draft)
    }

    fn of(header: Header, measured: Measured, mut draft: Draft) -> Result<Self, TraceError> {
        draft.even_out(&header);
        let is_sample = draft.is_sample();
        let script = draft.script(&header)?;
        let (units, children) = (script.roots().len() as u64, script.children() as u64);
        // Units that never ran in a stage are in no record. They are the units that were dropped from the first queue for a
        // newer one, which count as dead letters, and units that were left when the run ended. If any unit was left, the
        // numbers of units are not compared.
        let is_whole = units <= measured.admitted && units + measured.dead_lettered >= measured.admitted;
        if measured.left == 0 && !is_sample && !(is_whole && children == measured.split) {
            return Err(TraceError::Contradiction(format!(
                "its records have {units} units and {children} children, and its summary {} and {}",
                measured.admitted, measured.split
            )));
        }
        let weight = if is_sample { measured.admitted as f64 / units.max(1) as f64 } else { 1.0 };
        Ok(Trace { header, measured, script: Arc::new(script), weight, loss: OnceLock::new() })
    }

    /// The number of units of the run that each unit of a replay represents: 1, unless the trace was
    /// [sampled](Self::read_or_sample). Multiply counts of units by this weight, and also times that grow with the
    /// number of units.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// Whether the trace is a part of a run that had not ended (see [`LiveTrace`](crate::LiveTrace)). The
    /// [measurements](Self::measured) of a live trace refer only to its own units, and its wall time is computed from
    /// the pace at which units left.
    pub fn is_live(&self) -> bool {
        self.header.window.is_some()
    }

    /// Returns the name of the flow.
    pub fn flow(&self) -> &str {
        &self.header.model.flow
    }

    /// Returns the note that the program passed to the recording.
    pub fn note(&self) -> &serde_json::Value {
        &self.header.note
    }

    /// Returns the names of the stages, in the order of their declaration.
    pub fn stages(&self) -> impl Iterator<Item = &str> {
        self.header.model.stages.iter().map(|stage| &*stage.name)
    }

    /// Returns the resources, in the order of their declaration.
    pub fn resources(&self) -> Vec<crate::plan::PlanResource> {
        self.header.model.resources.iter().map(ModelResource::as_plan).collect()
    }

    /// Returns the number of cores of the machine.
    pub fn cores(&self) -> usize {
        self.header.machine.cores
    }

    /// Returns the total processor time of all stages' code, including the time that the code has
    /// [charged](crate::Cx::charge_cpu).
    pub fn cpu_time(&self) -> Duration {
        self.weighed(self.script.account().cpu_ns)
    }

    /// Returns the total time for which stages' code waited for anything except a processor.
    pub fn waiting_time(&self) -> Duration {
        self.weighed(self.script.account().wait_ns)
    }

    /// Returns the total time for which stages' code was ready to run but had no processor, as far as the kernel
    /// reports it.
    pub fn delayed_time(&self) -> Duration {
        self.weighed(self.script.account().delayed_ns)
    }

    fn weighed(&self, ns: u64) -> Duration {
        Duration::from_nanos((ns as f64 * self.weight) as u64)
    }

    /// The number of replayed units that came from the source.
    pub fn units(&self) -> usize {
        self.script.roots().len()
    }

    /// The number of units that left in the window of a [live trace](crate::LiveTrace), including units that were
    /// admitted before the window. Replays also have units that represent waiting units.
    pub fn departed(&self) -> u64 {
        self.measured.departed
    }

    /// The time that [`departed`](Self::departed) units take to leave, at the pace of the window.
    pub fn departed_in(&self) -> Duration {
        Duration::from_nanos(self.measured.departed_ns)
    }

    /// The number of units that waited in lines at the end of the window of a [live trace](crate::LiveTrace). A waiting
    /// unit counts only if the window has a similar unit that has left. A replay begins with all of these units or, if
    /// there are many, with an even sample of them.
    pub fn waiting(&self) -> u64 {
        let one_in = self.header.window.map_or(0, |window| window.waiting_one_in);
        (self.script.standing() as u64).saturating_mul(one_in)
    }

    /// The number of replayed runs of units in stages.
    pub fn visits(&self) -> usize {
        self.script.visits().len()
    }

    /// Returns the measurements of the run.
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

    /// Replays the run with other settings, in simulated time. Each unit takes its recorded path, and its recorded time
    /// in each stage.
    ///
    /// The engine's own rules decide when each unit waits. Processor time is shared among the cores. All other time is
    /// as long as recorded, whatever else runs. For example, the model has no disk that slows down with more requests.
    ///
    /// # Errors
    /// See [`ReplayError`].
    pub fn replay(&self, what_if: &WhatIf) -> Result<Replayed, ReplayError> {
        self.replay_in(what_if, (0..self.script.roots().len()).collect(), None)
    }

    /// Like [`replay`](Self::replay), and passes snapshots of the simulated flow to `see`: at the beginning, after each
    /// interval of `every` in simulated time, and at the end. A trace tells how long units were in stages; only a
    /// replay shows what they waited for.
    ///
    /// The interval is at least a microsecond, and doubles after each 4,096 snapshots. Each snapshot costs a few
    /// microseconds.
    ///
    /// # Errors
    /// See [`ReplayError`]. `see` may have been called before the error.
    pub fn replay_watched(
        &self,
        what_if: &WhatIf,
        every: Duration,
        mut see: impl FnMut(&Snapshot),
    ) -> Result<Replayed, ReplayError> {
        let every_ns = u64::try_from(every.as_nanos()).unwrap_or(u64::MAX).max(1_000);
        let all = (0..self.script.roots().len()).collect();
        self.replay_in(what_if, all, Some(Viewer::new(every_ns, &mut see)))
    }

    /// The plan of the traced flow with these settings.
    ///
    /// # Errors
    /// See [`ReplayError`].
    pub fn plan(&self, what_if: &WhatIf) -> Result<Plan, ReplayError> {
        let (mut model, mut machine) = (self.header.model.clone(), self.header.machine);
        let factors = what_if.apply(&mut model, &mut machine)?;
        Ok(build(&model, &factors, &self.script, &Arc::new(Meter::default()))?.plan().clone())
    }

    /// The minimum time that the work of the run can take with these settings, whatever the order of its units (the
    /// bottleneck law), and the name of the resource that determines this time. A replay of the whole run takes at
    /// least this time.
    ///
    /// # Errors
    /// Returns the errors of [`replay`](Self::replay).
    pub fn at_least(&self, what_if: &WhatIf) -> Result<(Duration, String), ReplayError> {
        let (mut model, mut machine) = (self.header.model.clone(), self.header.machine);
        let factors = what_if.apply(&mut model, &mut machine)?;
        let (least, by) = bound::at_least(&model, &factors, machine.cores, &self.script);
        Ok((least.mul_f64(self.weight), by))
    }

    /// The mean time of a unit in a stage's code, without its waits for a processor. `None` if there is no such stage,
    /// or no unit was in it.
    pub fn service_time(&self, stage: &str) -> Option<Duration> {
        let stage = self.header.model.stage(stage)?;
        let visits = self.script.visits().iter().filter(|visit| usize::from(visit.stage) == stage);
        let (units, ns) = visits.fold((0u64, 0u128), |(units, ns), visit| {
            (units + 1, ns + u128::from(visit.cpu_ns) + u128::from(visit.wait_ns))
        });
        (units > 0).then(|| Duration::from_nanos((ns / u128::from(units)) as u64))
    }

    /// The names of the stages whose units need the resource.
    pub fn stages_that_need(&self, resource: &str) -> Vec<&str> {
        let Some(resource) = self.header.model.resource(resource) else { return Vec::new() };
        let needs = |stage: &&ModelStage| stage.needs.iter().any(|need| usize::from(need.resource) == resource);
        self.header.model.stages.iter().filter(needs).map(|stage| &*stage.name).collect()
    }

    /// Like [`replay`](Self::replay), with units that are drawn at random, with replacement, from those of the run;
    /// their number stays the same. Several such replays show how much an answer depends on the units that the run
    /// happened to have. A unit whose failure ended the run keeps its position and is not drawn again.
    ///
    /// # Errors
    /// Returns the errors of [`replay`](Self::replay).
    pub fn replay_resampled(&self, what_if: &WhatIf, seed: u64) -> Result<Replayed, ReplayError> {
        let roots = self.script.roots().len();
        let ends_run = self.script.roots_that_end_it(&self.header.model);
        let draw = |nth: usize| {
            let drawn = ((u128::from(mix(seed ^ mix(nth as u64))) * roots as u128) >> 64) as usize;
            if ends_run.contains(&nth) || ends_run.contains(&drawn) { nth } else { drawn }
        };
        self.replay_in(what_if, (0..roots).map(draw).collect(), None)
    }

    /// Replays the source's units with these indices, in this order.
    fn replay_in(
        &self,
        what_if: &WhatIf,
        mut order: Vec<usize>,
        viewer: Option<Viewer<'_>>,
    ) -> Result<Replayed, ReplayError> {
        let Header { model, machine, .. } = &self.header;
        if self.measured.left > 0 {
            return Err(ReplayError::NoModel(format!("the run left {} units in flight", self.measured.left)));
        }
        let (mut model, mut machine) = (model.clone(), *machine);
        let factors = what_if.apply(&mut model, &mut machine)?;
        let costs = Costs { cores: machine.cores, loss: self.crowding_loss(), ..self.costs() };
        let standing = self.lengthen_line(&mut order, model.inflight);
        play(&model, &factors, &self.script, order, standing, costs, viewer)
    }

    /// Returns the number of units that wait when a replay begins. Makes the line longer if the replay has a higher cap
    /// on units in flight than the run. If the waiting units take up at least half of the run's cap, a real run with
    /// the higher cap would have more waiting units. A window is too short to show that growth. So copies of units in
    /// line replace the last units that arrived.
    fn lengthen_line(&self, order: &mut Vec<usize>, inflight: u64) -> usize {
        let (standing, before) = (self.script.standing(), self.header.model.inflight);
        if standing == 0 || inflight <= before || self.waiting() < before / 2 {
            return standing;
        }
        let growth = standing as u128 * u128::from(inflight - before) / u128::from(before);
        let later = order.split_off(standing.min(order.len()));
        let more = growth.min(later.len() as u128 / 2) as usize;
        let line = std::mem::take(order);
        order.extend(line.iter().cycle().take(line.len() + more));
        order.extend(&later[..later.len() - more]);
        standing + more
    }

    /// The costs of the run's machine, without the loss of crowded cores.
    fn costs(&self) -> Costs {
        let Machine { cores, wake_ns, start_ns } = self.header.machine;
        let MeanTimes { between_ns, wake_delay_ns, fiber_start_ns } = self.measured.times;
        let wake_ns = wake_ns.saturating_add(wake_delay_ns);
        Costs { cores, wake_ns, start_ns, fiber_start_ns, between_ns, loss: 0.0 }
    }

    /// The part of the cores' speed, from 0 to 0.5, that was lost while all of them were computing. A real system does
    /// not share its cores as evenly as a simulated one, and other programs compute as well.
    ///
    /// With this loss, units of a replay wait for processors as long as the kernel reported. The loss is 0 if sharing
    /// alone explains that wait, or if no loss can explain it. The first call, or the first replay, costs up to eight
    /// replays of at most about 20,000 runs of units in stages.
    pub fn crowding_loss(&self) -> f64 {
        *self.loss.get_or_init(|| fit_loss(&self.header.model, &self.script, self.costs()))
    }
}
