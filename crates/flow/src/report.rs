//! The report of a flow, for the time from its start to its end.

use crate::failure::DeadLetter;
use crate::snapshot::{Quantiles, Snapshot, WaitedFor};

/// How a flow ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum Outcome {
    /// The source ended, or the service was drained, and every unit has left.
    Complete,
    /// [`Control::stop`](crate::Control::stop) closed admission, and every unit admitted before has left.
    Stopped,
    /// A stage with [`AfterFailure::StopFlow`](crate::AfterFailure::StopFlow) gave up on a unit.
    StoppedByFailure,
    /// [`Control::abandon`](crate::Control::abandon) was called.
    Abandoned,
}

/// The report of one stage.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct StageReport {
    /// The stage's name.
    pub name: String,
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
    /// Groups that were closed early, because the stage or the flow had no room for them (see
    /// [`Gather`](crate::Gather)).
    pub torn: u64,
    /// Time spent in the stage's code, summed over workers.
    pub busy_ns: u64,
    /// The stage's floor of workers.
    pub workers_min: u64,
    /// The stage's ceiling of workers.
    pub workers_max: u64,
    /// The time that a unit spent in the stage's code.
    pub service_ns: Quantiles,
    /// The time that a unit spent in the stage's queue.
    pub wait_ns: Quantiles,
    /// The waits of the stage's units by resource, the longest first.
    pub waited_for: Vec<WaitedFor>,
    /// The use of the stacks by the stage's fibers, if at least one fiber has ended.
    #[cfg_attr(feature = "serde", serde(default))]
    pub stacks: Option<StackUse>,
}

/// The use of the stacks of a stage's fibers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct StackUse {
    /// The size of each stack, in bytes of address space.
    pub stack_bytes: u64,
    /// The greatest depth that was ever reached on any stack on which a fiber of the stage has ended, in bytes, rounded
    /// up to pages. Stages share the stacks, so a fiber of another stage may have reached that depth. The ended fibers
    /// of this stage did not need a deeper stack.
    pub deepest_bytes: u64,
}

/// The use of one resource.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ResourceReport {
    /// The resource's name.
    pub name: String,
    /// `tokens`, `rate`, `keyed tokens`, `keyed rate` or `pool`.
    pub kind: String,
    /// Tokens, objects, or a rate's burst; if keyed, those of each key.
    pub capacity: u64,
    /// Tokens a second, for rates.
    pub rate_per_s: Option<f64>,
    /// The most tokens held at once; if keyed, the most of any one key.
    pub peak_in_use: u64,
}

/// The report of a flow. Its numbers always satisfy `admitted + split = retired + dead_lettered + gathered + left`.
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Report {
    /// The flow's name.
    pub flow: String,
    /// How the flow ended.
    pub outcome: Outcome,
    /// Units admitted.
    pub admitted: u64,
    /// Units created because a stage split their parents.
    pub split: u64,
    /// Units that retired: at the exit of the flow, as skipped units, or as parents whose children have all left.
    pub retired: u64,
    /// Units retired without a result, by [`AfterFailure::Skip`](crate::AfterFailure::Skip).
    pub skipped: u64,
    /// Units that failed for good.
    pub dead_lettered: u64,
    /// Units that joined a group, which continued in their place.
    pub gathered: u64,
    /// Units still in flight when the flow was abandoned.
    pub left: u64,
    /// Seconds from the start to the departure of the last unit.
    pub wall_s: f64,
    /// The most units that were in flight at once.
    pub peak_in_flight: u64,
    /// The most payload bytes that were in flight at once.
    pub peak_bytes_in_flight: u64,
    /// Units larger than the whole byte budget, which ran alone.
    pub oversize: u64,
    /// The cap on units in flight, as it was at the end.
    pub inflight_cap: u64,
    /// The cap on payload bytes, as it was at the end; `u64::MAX` if there is none. A serialized report may have null
    /// instead of `u64::MAX`.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "cap_or_null"))]
    pub memory_cap: u64,
    /// The number of shared workers.
    pub workers: u64,
    /// The bottleneck of the flow, in words.
    pub bottleneck: String,
    /// The time from a unit's admission to its departure.
    pub latency_ns: Quantiles,
    /// The stages, in the order in which they were declared.
    pub stages: Vec<StageReport>,
    /// The resources, in the order in which they were declared.
    pub resources: Vec<ResourceReport>,
    /// How often a fiber could not be started, for lack of a stack or of threads. The affected units ran later.
    #[cfg_attr(feature = "serde", serde(default))]
    pub refused_fibers: u64,
    /// The latest reason why a fiber could not be started.
    #[cfg_attr(feature = "serde", serde(default))]
    pub latest_refusal: Option<String>,
    /// The first dead letters, at most [`Report::DEAD_LETTERS_KEPT`], if the flow has no
    /// [`on_dead_letter`](crate::FlowBuilder::on_dead_letter).
    #[cfg_attr(feature = "serde", serde(skip))]
    pub dead_letters: Vec<DeadLetter>,
}

/// Reads a cap; null means that there is none, and becomes `u64::MAX`.
#[cfg(feature = "serde")]
fn cap_or_null<'de, D: serde::Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let cap: Option<u64> = serde::Deserialize::deserialize(from)?;
    Ok(cap.unwrap_or(u64::MAX))
}

impl Report {
    /// The number of dead letters that a report keeps when the flow has no listener for them.
    pub const DEAD_LETTERS_KEPT: usize = 1024;

    /// Makes the report of a flow that was abandoned and has not ended, from its last snapshot. Units in flight count
    /// as `left`, the bottleneck is described by [`held_by`](Snapshot::held_by), and there are neither latencies nor
    /// dead letters.
    ///
    /// ```
    /// use millstream_flow::{Report, Snapshot};
    ///
    /// let mut last = Snapshot::default();
    /// (last.admitted, last.retired, last.in_flight) = (10, 7, 3);
    /// let report = Report::unfinished(&last);
    /// assert_eq!(report.units(), report.retired + report.left);
    /// ```
    pub fn unfinished(last: &Snapshot) -> Self {
        let stages = last.stages.iter().map(|stage| StageReport {
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
            stacks: None,
        });
        let resources = last.resources.iter().map(|resource| ResourceReport {
            name: resource.name.clone(),
            kind: resource.kind.clone(),
            capacity: resource.capacity,
            rate_per_s: resource.rate_per_s,
            peak_in_use: resource.peak_in_use,
        });
        Report {
            flow: last.flow.clone(),
            outcome: Outcome::Abandoned,
            admitted: last.admitted,
            split: last.split,
            retired: last.retired,
            skipped: last.skipped,
            dead_lettered: last.dead_lettered,
            gathered: last.gathered,
            left: last.in_flight,
            wall_s: last.wall_ns as f64 / 1e9,
            peak_in_flight: last.peak_in_flight,
            peak_bytes_in_flight: last.peak_bytes_in_flight,
            oversize: last.oversize,
            inflight_cap: last.inflight_cap,
            memory_cap: last.memory_cap,
            workers: last.workers,
            bottleneck: last.held_by(),
            latency_ns: Quantiles::default(),
            stages: stages.collect(),
            resources: resources.collect(),
            refused_fibers: 0,
            latest_refusal: None,
            dead_letters: Vec::new(),
        }
    }

    /// The number of units that have been in flight: admitted units, and the children of split units.
    pub fn units(&self) -> u64 {
        self.admitted + self.split
    }
}
