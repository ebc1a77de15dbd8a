//! The report of a flow, from its start to its end.

use crate::failure::DeadLetter;
use crate::snapshot::{Quantiles, WaitedFor};

/// The way in which a flow ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Outcome {
    /// The source ended, or the service was drained; every unit left.
    Complete,
    /// [`Control::stop`](crate::Control::stop) closed admission; every unit admitted before left.
    Stopped,
    /// A stage with [`AfterFailure::StopFlow`](crate::AfterFailure::StopFlow) gave a unit up.
    StoppedByFailure,
    /// [`Control::abandon`](crate::Control::abandon) was called.
    Abandoned,
}

/// The report of one stage.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct StageReport {
    /// The stage's name.
    pub name: String,
    /// Units that left the stage with success.
    pub units: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// Failed attempts that were followed by another.
    pub retries: u64,
    /// Units that failed for good here.
    pub dead_lettered: u64,
    /// Times a unit went back to the stage's queue although nothing had failed: cancelled to keep the byte budget, or sent there by
    /// [`Failure::requeue`](crate::Failure::requeue).
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
    /// The waits of the stage's units, longest first.
    pub waited_for: Vec<WaitedFor>,
}

/// The use of one resource.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ResourceReport {
    /// The resource's name.
    pub name: String,
    /// `tokens`, `rate`, `keyed tokens`, `keyed rate` or `pool`.
    pub kind: String,
    /// Tokens, objects, or a rate's burst; of each key where keyed.
    pub capacity: u64,
    /// Tokens a second, for rates.
    pub rate_per_s: Option<f64>,
    /// The most tokens held at once; where keyed, of any one key.
    pub peak_in_use: u64,
}

/// The report of a flow. Always: `admitted + split = retired + dead_lettered + gathered + left`.
#[derive(Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Report {
    /// The flow's name.
    pub flow: String,
    /// The way in which the flow ended.
    pub outcome: Outcome,
    /// Units admitted.
    pub admitted: u64,
    /// Units that came into flight because a stage split their parents.
    pub split: u64,
    /// Units that left, done (skipped ones included).
    pub retired: u64,
    /// Units retired without a result, by [`AfterFailure::Skip`](crate::AfterFailure::Skip).
    pub skipped: u64,
    /// Units that failed for good.
    pub dead_lettered: u64,
    /// Units that joined groups, which went on in their place.
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
    /// The cap on payload bytes, as it was at the end; `u64::MAX` if there is none.
    pub memory_cap: u64,
    /// Shared workers.
    pub workers: u64,
    /// The bottleneck of the flow, in words.
    pub bottleneck: String,
    /// The time from a unit's admission to its departure.
    pub latency_ns: Quantiles,
    /// The stages, in the order they were declared.
    pub stages: Vec<StageReport>,
    /// The resources, in the order they were declared.
    pub resources: Vec<ResourceReport>,
    /// The first dead letters, at most [`Report::DEAD_LETTERS_KEPT`], if no
    /// [`on_dead_letter`](crate::FlowBuilder::on_dead_letter) took them.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub dead_letters: Vec<DeadLetter>,
}

impl Report {
    /// The number of dead letters that a report keeps when the flow has no listener for them.
    pub const DEAD_LETTERS_KEPT: usize = 1024;

    /// Units that came into flight: admitted ones, and those that others were split into.
    pub fn units(&self) -> u64 {
        self.admitted + self.split
    }
}
