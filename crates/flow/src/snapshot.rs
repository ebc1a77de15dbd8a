//! The state of a flow at one moment.
//!
//! The structs will gain fields. To construct a value in a test, begin with the default value and set its fields.

/// Quantiles of a distribution of times, in nanoseconds. Each is within 1 % of a recorded value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Quantiles {
    /// Half of the values are at most this.
    pub p50: u64,
    /// 90 % of the values are at most this.
    pub p90: u64,
    /// 99 % of the values are at most this.
    pub p99: u64,
    /// The largest value.
    pub max: u64,
    /// The mean.
    pub mean: u64,
    /// The number of recorded values.
    pub count: u64,
    /// The sum of the recorded values.
    #[cfg_attr(feature = "serde", serde(default))]
    pub total: u64,
}

/// The number of units that wait for one resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Waiting {
    /// The resource's name, or `room` for units that are to be split, if the flow has no room for their children.
    pub resource: String,
    /// Units that wait for the resource now.
    pub units: u64,
}

/// The time that units have waited for one resource so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct WaitedFor {
    /// The resource's name, or `a worker`, `memory` or `room`.
    pub resource: String,
    /// The sum over all units, in nanoseconds.
    pub total_ns: u64,
    /// The number of waits.
    pub units: u64,
}

/// The phase of a flow's life.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Phase {
    /// The flow is built, but not started.
    #[default]
    Ready,
    /// The flow admits units.
    Running,
    /// Admission is closed; units in flight continue.
    Draining,
    /// No more runs start, and running code was told to end.
    Abandoned,
    /// All units have left, and no more will be admitted.
    Done,
}

/// One stage at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct StageSnapshot {
    /// The stage's name.
    pub name: String,
    /// Units in the stage's queue, whatever they wait for.
    pub waiting: u64,
    /// The units in the queue that wait for a resource, by resource.
    pub waiting_for: Vec<Waiting>,
    /// Units that have all they need and wait for a worker (part of `waiting`).
    pub granted: u64,
    /// Units that workers have taken.
    pub running: u64,
    /// Units that left the stage with success.
    pub units: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// Failed attempts that were followed by another attempt.
    pub retries: u64,
    /// Units that failed for good here.
    pub dead_lettered: u64,
    /// How often a unit returned to the stage's queue although nothing had failed: cancelled to keep the byte budget,
    /// or sent there by [`Failure::requeue`](crate::Failure::requeue).
    pub requeued: u64,
    /// The number of open groups, if the stage gathers its units.
    #[cfg_attr(feature = "serde", serde(default))]
    pub open_groups: u64,
    /// Groups that were closed early, because the stage or the flow had no room for them.
    #[cfg_attr(feature = "serde", serde(default))]
    pub torn: u64,
    /// Time spent in the stage's code, summed over workers.
    pub busy_ns: u64,
    /// Workers in the stage's code.
    pub workers_busy: u64,
    /// The stage's floor of workers.
    pub workers_min: u64,
    /// The stage's ceiling of workers.
    pub workers_max: u64,
    /// Whether the stage is a blocking one, with its own workers.
    pub blocking: bool,
    /// The time that the longest waiter has been in the queue; 0 if the queue is empty.
    pub oldest_ns: u64,
    /// The time that a unit spends in the stage's code.
    pub service_ns: Quantiles,
    /// The time that a unit spends in the stage's queue.
    pub wait_ns: Quantiles,
    /// The waits of the stage's units by resource, the longest first.
    pub waited_for: Vec<WaitedFor>,
}

/// One resource at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ResourceSnapshot {
    /// The resource's name.
    pub name: String,
    /// `tokens`, `rate`, `keyed tokens`, `keyed rate` or `pool`.
    pub kind: String,
    /// Tokens, objects, or a rate's burst; if keyed, those of each key.
    pub capacity: u64,
    /// Tokens a second, for rates.
    pub rate_per_s: Option<f64>,
    /// Tokens held now, over all keys.
    pub in_use: u64,
    /// The most tokens held at once; if keyed, the most of any one key.
    pub peak_in_use: u64,
    /// Units that wait for the resource.
    pub waiters: u64,
    /// Keys that exist now; 0 if not keyed.
    pub keys: u64,
}

/// One key of a resource at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct KeySnapshot {
    /// The resource's name.
    pub resource: String,
    /// The key.
    pub key: String,
    /// Units that wait for the key.
    pub waiters: u64,
    /// Tokens of the key that are held.
    pub in_use: u64,
}

/// The state of a flow at one moment. All its numbers refer to that moment.
#[derive(Debug, Clone, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Snapshot {
    /// The flow's name.
    pub flow: String,
    /// The time since the start, in nanoseconds.
    pub wall_ns: u64,
    /// Units admitted so far.
    pub admitted: u64,
    /// Units created because a stage split their parents.
    #[cfg_attr(feature = "serde", serde(default))]
    pub split: u64,
    /// Units that retired, including skipped ones.
    pub retired: u64,
    /// Units retired without a result, by [`AfterFailure::Skip`](crate::AfterFailure::Skip).
    pub skipped: u64,
    /// Units that failed for good.
    pub dead_lettered: u64,
    /// Units that joined a group, which continued in their place.
    #[cfg_attr(feature = "serde", serde(default))]
    pub gathered: u64,
    /// Units that have entered the flow and not left it.
    pub in_flight: u64,
    /// The cap on units in flight.
    pub inflight_cap: u64,
    /// Payload bytes in flight.
    pub bytes_in_flight: u64,
    /// The cap on payload bytes in flight; `u64::MAX` if there is none.
    pub memory_cap: u64,
    /// The most units that were in flight at once.
    pub peak_in_flight: u64,
    /// The most payload bytes that were in flight at once.
    pub peak_bytes_in_flight: u64,
    /// Units larger than the whole byte budget, which ran alone.
    pub oversize: u64,
    /// Units that were cancelled to keep the byte budget and wait to run again.
    pub waiting_for_memory: u64,
    /// Units in a pause: before a retry, or because their stage's code asked for a delay.
    pub delayed: u64,
    /// The phase of the flow's life.
    pub phase: Phase,
    /// The number of shared workers.
    pub workers: u64,
    /// Workers that run a stage's code, including those of blocking stages.
    pub workers_busy: u64,
    /// The stages, in the order in which they were declared.
    pub stages: Vec<StageSnapshot>,
    /// The resources, in the order in which they were declared.
    pub resources: Vec<ResourceSnapshot>,
}

impl Snapshot {
    /// Describes the current bottleneck of the flow, or its phase if the flow is not running.
    pub fn held_by(&self) -> String {
        match self.phase {
            Phase::Ready => return "not started".into(),
            Phase::Done => return "done".into(),
            Phase::Abandoned => return format!("abandoned: {} left in flight", self.in_flight),
            Phase::Running | Phase::Draining => {}
        }
        let parked = self
            .stages
            .iter()
            .flat_map(|stage| stage.waiting_for.iter().map(move |w| (w.units, stage, w)))
            .max_by_key(|(units, ..)| *units);
        let queued = self
            .stages
            .iter()
            .map(|stage| (stage.waiting_for.iter().fold(stage.waiting, |rest, w| rest.saturating_sub(w.units)), stage))
            .max_by_key(|(units, _)| *units);
        let resting = self.delayed.saturating_add(self.waiting_for_memory);
        let parked_units = parked.map_or(0, |(units, ..)| units);
        let queued_units = queued.map_or(0, |(units, _)| units);
        if resting > parked_units && resting > queued_units {
            return if self.delayed >= self.waiting_for_memory {
                format!("{} out a pause", count(self.delayed, "unit waits", "units wait"))
            } else {
                format!("memory: {} for bytes", count(self.waiting_for_memory, "unit waits", "units wait"))
            };
        }
        if let Some((units, stage, waiting)) = parked.filter(|(units, ..)| *units > 0 && *units >= queued_units) {
            let units = count(units, "unit waits", "units wait");
            return format!("{}: {units} for it in {}", waiting.resource, stage.name);
        }
        if let Some((units, stage)) = queued.filter(|(units, _)| *units > 0) {
            let workers = if stage.workers_busy >= stage.workers_max {
                format!("{} of the stage busy", count(stage.workers_max, "worker", "workers"))
            } else {
                format!("{} busy", count(self.workers_busy, "worker", "workers"))
            };
            return format!("{}: {}, {workers}", stage.name, count(units, "unit waits", "units wait"));
        }
        if self.bytes_in_flight >= self.memory_cap {
            return "memory: the byte budget is used up".into();
        }
        if self.in_flight >= self.inflight_cap {
            return format!("the cap of {} units in flight", self.inflight_cap);
        }
        if let Some(stage) = self.stages.iter().max_by_key(|stage| stage.open_groups).filter(|s| s.open_groups > 0) {
            return format!("{}: {} for members", stage.name, count(stage.open_groups, "group waits", "groups wait"));
        }
        match self.phase {
            Phase::Draining => "its last units".into(),
            _ => "its source".into(),
        }
    }
}

fn count(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}
