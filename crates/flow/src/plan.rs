//! The results of the static checks of a flow.

use std::time::Duration;

use crate::check::pairs::PlanPairs;
use crate::policy::{AfterFailure, Batch};
use crate::resource::{ResourceSpec, Supply};

/// A flow as the checks saw it: its graph, bounds and needs, and why it can't deadlock.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Plan {
    /// The flow's name.
    pub flow: String,
    /// The cap on units in flight.
    pub inflight: u64,
    /// The cap on payload bytes in flight; `u64::MAX` if there is none.
    pub memory: u64,
    /// Shared workers.
    pub workers: u64,
    /// The stages, in the order they were declared.
    pub stages: Vec<PlanStage>,
    /// The resources, bounded queues included, in the order they were declared.
    pub resources: Vec<PlanResource>,
    /// The resources in an order that respects every one of `pairs`. A unit that holds one resource and waits for
    /// another waits for one further on, so no cycle of waiting units can arise.
    pub order: Vec<String>,
    /// Every "asks for *b* while holding *a*" that can occur to a unit.
    pub pairs: PlanPairs,
}

/// One stage of a [`Plan`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PlanStage {
    /// The stage's name.
    pub name: String,
    /// The maximum number of units in the stage at once.
    pub queue_bound: u64,
    /// The stage's floor of workers.
    pub workers_min: u64,
    /// The stage's ceiling of workers.
    pub workers_max: u64,
    /// Whether the stage has threads of its own.
    pub blocking: bool,
    /// Whether its workers are fibers.
    pub fibers: bool,
    /// The number of units that a worker takes at once.
    pub batch: Batch,
    /// Whether its units may be cancelled and run again to keep the byte budget.
    pub idempotent: bool,
    /// The time one attempt may take.
    pub timeout: Option<Duration>,
    /// The number of attempts after the first.
    pub retries: u32,
    /// The policy after the last failed attempt.
    pub after_failure: AfterFailure,
    /// The needs of a unit here.
    pub needs: Vec<PlanNeed>,
    /// The stages to which the stage's units may go.
    pub next: Vec<String>,
    /// Whether its units may retire.
    pub retires: bool,
}

/// One need of a stage of a [`Plan`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PlanNeed {
    /// The resource's name.
    pub resource: String,
    /// The amount; `None` if it differs by unit.
    pub amount: Option<u64>,
    /// Whether each unit names a key.
    pub keyed: bool,
    /// Whether the need is taken once per batch.
    pub per_batch: bool,
    /// The stage after which the need is given back, if that is another one.
    pub until: Option<String>,
}

/// One resource of a [`Plan`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PlanResource {
    /// The resource's name.
    pub name: String,
    /// `tokens`, `rate`, `keyed tokens`, `keyed rate` or `pool`.
    pub kind: String,
    /// Tokens, objects, or a rate's burst; of each key where keyed.
    pub capacity: u64,
    /// Tokens a second, for rates.
    pub rate_per_s: Option<f64>,
    /// The maximum number of keys that may exist at once, where keyed.
    pub max_keys: Option<u64>,
}

impl PlanResource {
    pub(crate) fn of(spec: &ResourceSpec) -> Self {
        let (capacity, rate_per_s) = match spec.supply {
            Supply::Tokens(tokens) => (tokens, None),
            Supply::Rate(rate) => (rate.burst, Some(rate.per_second)),
        };
        PlanResource {
            name: spec.name.clone(),
            kind: spec.kind().into(),
            capacity,
            rate_per_s,
            max_keys: spec.keyed.then_some(spec.max_keys as u64),
        }
    }
}

impl Batch {
    /// The maximum number of units of a batch; `None` if measured service time decides.
    pub fn size(&self) -> Option<usize> {
        self.size
    }

    /// The time that a batch that is not full waits.
    pub fn longest_wait(&self) -> Duration {
        self.wait
    }
}
