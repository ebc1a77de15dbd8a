//! The results of the static checks of a flow.

use std::time::Duration;

use crate::check::pairs::PlanPairs;
use crate::policy::{AfterFailure, Batch};
use crate::resource::{ResourceSpec, Supply};

/// A flow as the checks examined it: its graph, bounds and needs, and the proof that it cannot deadlock.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Plan {
    /// The flow's name.
    pub flow: String,
    /// The cap on units in flight.
    pub inflight: u64,
    /// The cap on payload bytes in flight; `u64::MAX` if there is none.
    pub memory: u64,
    /// The number of shared workers.
    pub workers: u64,
    /// The stages, in the order in which they were declared.
    pub stages: Vec<PlanStage>,
    /// The resources, including bounded queues, in the order in which they were declared.
    pub resources: Vec<PlanResource>,
    /// The resources in an order that respects all of `pairs`. A unit waits only for resources that come later in
    /// this order than every resource that it holds, so units cannot wait for each other in a cycle.
    pub order: Vec<String>,
    /// Every possible pair "asks for *b* while holding *a*".
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
    /// Whether the stage has its own threads.
    pub blocking: bool,
    /// Whether its workers are fibers.
    pub fibers: bool,
    /// How many units a worker takes at once.
    pub batch: Batch,
    /// Whether its units may be cancelled and run again to keep the byte budget.
    pub idempotent: bool,
    /// The time limit of one attempt.
    pub timeout: Option<Duration>,
    /// The maximum number of attempts after the first.
    pub retries: u32,
    /// The policy for a unit whose last attempt has failed.
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
    /// The amount; `None` if it differs from unit to unit.
    pub amount: Option<u64>,
    /// Whether each unit names a key.
    pub keyed: bool,
    /// Whether the need is taken once per batch.
    pub per_batch: bool,
    /// The stage after which the need is released, if that is another stage.
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
    /// Tokens, objects, or a rate's burst; if keyed, those of each key.
    pub capacity: u64,
    /// Tokens a second, for rates.
    pub rate_per_s: Option<f64>,
    /// The maximum number of keys that may exist at once, if keyed.
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

    /// The longest time that a partial batch waits for more units.
    pub fn longest_wait(&self) -> Duration {
        self.wait
    }
}
