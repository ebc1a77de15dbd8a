//! A flow and its stages before they are built. The static checks examine this form.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use crate::check::error::BuildError;
use crate::check::graph::{Asked, Node};
use crate::engine::claims::{NO_STAGE, Want, Wants};
use crate::engine::run::lane::Lane;
use crate::engine::run::site::{Letters, StageConfig};
use crate::engine::settings::Workers;
use crate::engine::stages::stage::StageSetup;
use crate::engine::units::groups::GroupRules;
use crate::limits::{DEFAULT_BLOCKING_WORKERS, DEFAULT_MAX_KEYS, MAX_FIBERS, MAX_WORKERS, MAX_WORKERS_BY_NEEDS};
use crate::need::{Hold, Need};
use crate::policy::{AfterFailure, Batch, Retry};
use crate::resource::{Resource, ResourceSpec, Supply};

/// A flow without the type of its results, so that the checks and the build are compiled only once.
pub(crate) struct FlowDraft {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) inflight: u64,
    pub(crate) memory: u64,
    pub(crate) workers: usize,
    pub(crate) fiber_threads: usize,
    pub(crate) resources: Vec<ResourceSpec>,
    pub(crate) names: Vec<String>,
    pub(crate) stages: Vec<Option<Draft>>,
    /// The entries of all stages, by index, each an `Arc<Entry<T>>`.
    pub(crate) entries: Vec<Box<dyn Any + Send>>,
    pub(crate) columns: HashMap<TypeId, Box<dyn Any + Send>>,
    pub(crate) letters: Option<Letters>,
    /// The clock of a simulated flow.
    pub(crate) simulated: Option<Arc<AtomicU64>>,
    pub(crate) errors: Vec<BuildError>,
}

/// The settings of a stage.
pub(crate) struct Policies {
    pub(crate) retry: Retry,
    pub(crate) after_failure: AfterFailure,
    pub(crate) timeout: Option<Duration>,
    pub(crate) idempotent: bool,
    pub(crate) workers: Option<(usize, usize)>,
    pub(crate) blocking: bool,
    pub(crate) fibers: bool,
    pub(crate) stack: Option<usize>,
    pub(crate) batch: Batch,
    pub(crate) queue: Option<u64>,
}

/// A stage's code and exits, and the properties of these that the engine needs to know.
pub(crate) struct Wired {
    pub(crate) lane: Box<dyn Lane>,
    pub(crate) edges: Vec<u16>,
    pub(crate) retires: bool,
    pub(crate) splits: bool,
    /// Whether the stage weighs its units.
    #[cfg_attr(not(feature = "trace"), expect(dead_code, reason = "traces are a feature"))]
    pub(crate) weighs: bool,
    pub(crate) groups: Option<GroupRules>,
}

/// A stage as its [`StageBuilder`](crate::stage_builder::StageBuilder) leaves it.
pub(crate) struct Draft {
    pub(crate) wired: Wired,
    pub(crate) config: StageConfig,
    pub(crate) needs: Vec<NeedDraft>,
    pub(crate) workers: Option<(usize, usize)>,
    pub(crate) blocking: bool,
    /// Whether the stage's workers are fibers. Such a stage is also `blocking`.
    pub(crate) fibers: bool,
    /// The size of the fibers' stacks in bytes, if the program sets one.
    pub(crate) stack: Option<usize>,
    pub(crate) batch: Batch,
    pub(crate) queue: Option<u64>,
}

/// A need without its payload type.
#[derive(Clone, Copy)]
pub(crate) struct NeedDraft {
    /// Whether the need is for a slot in a bounded queue: the queue of the stage that `hold` names.
    pub(crate) place: bool,
    pub(crate) resource: u16,
    pub(crate) amount: Option<u64>,
    pub(crate) keyed: bool,
    pub(crate) hold: Hold,
}

impl Default for Policies {
    fn default() -> Self {
        Policies {
            retry: Retry::never(),
            after_failure: AfterFailure::DeadLetter,
            timeout: None,
            idempotent: false,
            workers: None,
            blocking: false,
            fibers: false,
            stack: None,
            batch: Batch::auto(),
            queue: None,
        }
    }
}

impl FlowDraft {
    /// Declares a resource.
    pub(crate) fn resource(&mut self, name: String, supply: Supply, keyed: bool, pool: bool) -> Resource {
        if self.resources.iter().any(|spec| spec.name == name) {
            self.errors.push(BuildError::DuplicateResource { resource: name.clone() });
        }
        match supply {
            Supply::Tokens(0) => self.errors.push(BuildError::ZeroCapacity { resource: name.clone() }),
            Supply::Rate(rate) if !rate.is_valid() => self.errors.push(BuildError::BadRate {
                resource: name.clone(),
                per_second: rate.per_second,
                burst: rate.burst,
            }),
            _ => {}
        }
        let index = self.resources.len() as u16;
        self.resources.push(ResourceSpec { name, supply, keyed, pool, max_keys: DEFAULT_MAX_KEYS });
        Resource { index, flow: self.id }
    }

    /// Declares the next stage, with its `Arc<Entry<T>>`.
    pub(crate) fn declare(&mut self, name: String, entry: Box<dyn Any + Send>) {
        if self.names.contains(&name) {
            self.errors.push(BuildError::DuplicateStage { stage: name.clone() });
        }
        self.names.push(name);
        self.stages.push(None);
        self.entries.push(entry);
    }

    fn stage_name(&self, stage: usize) -> &str {
        self.names.get(stage).map_or("?", String::as_str)
    }

    /// Records that a stage's inlet, exit or needs belong to another flow.
    pub(crate) fn refuse_foreign(&mut self, stage: usize) {
        let stage = self.stage_name(stage).to_owned();
        self.errors.push(BuildError::Foreign { stage });
    }

    /// Records that a stage is defined a second time.
    pub(crate) fn refuse_second(&mut self, stage: usize) {
        let stage = self.stage_name(stage).to_owned();
        self.errors.push(BuildError::DefinedTwice { stage });
    }

    /// Sets the definition of a stage.
    pub(crate) fn define(&mut self, stage: usize, mut wired: Wired, needs: Vec<NeedDraft>, policies: Policies) {
        wired.edges.sort_unstable();
        wired.edges.dedup();
        let is_pool = |need: &NeedDraft| self.resources[usize::from(need.resource)].pool;
        let objects = needs.iter().filter(|need| need.hold == Hold::Batch || is_pool(need));
        let config = StageConfig {
            name: self.stage_name(stage).into(),
            retry: policies.retry,
            after_failure: policies.after_failure,
            timeout: policies.timeout,
            idempotent: policies.idempotent,
            objects: objects.map(|need| need.resource).collect(),
        };
        let Policies { workers, blocking, fibers, stack, batch, queue, .. } = policies;
        self.stages[stage] = Some(Draft {
            wired,
            config,
            needs,
            workers,
            blocking,
            fibers,
            stack,
            batch: if fibers { batch.or_of(1) } else { batch },
            queue,
        });
    }
}

impl<T> From<&Need<T>> for NeedDraft {
    fn from(need: &Need<T>) -> Self {
        NeedDraft {
            place: false,
            resource: need.resource.index,
            amount: need.amount_with.is_none().then_some(need.amount),
            keyed: need.key.is_some(),
            hold: need.hold,
        }
    }
}

impl NeedDraft {
    /// Whether the need limits how many units (or batches) can run at once.
    fn bounds_workers(&self, resources: &[ResourceSpec]) -> bool {
        let supply = resources[usize::from(self.resource)].supply;
        !self.place && !self.keyed && self.amount.is_some() && matches!(supply, Supply::Tokens(_))
    }
}

impl Draft {
    /// The maximum number of workers that the stage can have.
    pub(crate) fn most_workers(&self) -> usize {
        if self.fibers { MAX_FIBERS } else { MAX_WORKERS }
    }

    /// The floor and the ceiling of the stage's workers. The default depends on the needs: threads of a blocking stage
    /// start only for granted units, so a need for tokens already limits these threads, even when the number of tokens
    /// changes.
    pub(crate) fn workers(&self, shared: usize, resources: &[ResourceSpec]) -> Workers {
        let default = match self.blocking {
            false => shared,
            true if self.needs.iter().any(|need| need.bounds_workers(resources)) => MAX_WORKERS_BY_NEEDS,
            true => DEFAULT_BLOCKING_WORKERS,
        };
        let (floor, ceiling) = self.workers.unwrap_or((0, default));
        Workers { floor, ceiling, follows_shared: self.workers.is_none() && !self.blocking }
    }

    pub(crate) fn node(&self, name: &str) -> Node {
        let asks = self.needs.iter().map(|need| Asked {
            resource: need.resource,
            until: if let Hold::Until(stage) = need.hold { Some(stage) } else { None },
            place: need.place,
        });
        Node {
            name: name.into(),
            next: self.wired.edges.clone(),
            retires: self.wired.retires,
            splits: self.wired.splits,
            gathers: self.wired.groups.is_some(),
            asks: asks.collect(),
        }
    }

    /// Returns the engine's settings for the stage. If the stage splits units, `splits` is its number among the stages
    /// that split, counted from 1 in the order from the entry. `leads_to` is the number of stages that a unit may reach
    /// from here.
    pub(crate) fn setup(&self, resources: usize, splits: Option<u64>, leads_to: usize) -> StageSetup {
        let mut wants = Wants::new();
        let mut permits = Wants::new();
        for need in self.needs.iter().filter(|need| !need.keyed) {
            let Some(amount) = need.amount else { continue };
            let for_batch = need.hold == Hold::Batch;
            let list = if for_batch { &mut permits } else { &mut wants };
            let until = if let Hold::Until(stage) = need.hold { stage } else { NO_STAGE };
            let instance = u32::from(need.resource);
            match list.iter_mut().find(|want| want.instance == instance) {
                Some(want) => {
                    want.amount += amount;
                    want.until = if want.until == NO_STAGE { until } else { want.until };
                }
                None => list.push(Want { instance, until, for_batch, amount }),
            }
        }
        StageSetup {
            places: self.needs.iter().filter(|need| need.place).map(|need| u32::from(need.resource)).collect(),
            name: self.config.name.clone(),
            blocking: self.blocking,
            dynamic: self.needs.iter().any(|need| need.keyed || need.amount.is_none()),
            wants,
            permits,
            batch: self.batch,
            splits,
            groups: self.wired.groups.map(|rules| GroupRules { leads_to, ..rules }),
            resources,
        }
    }
}
