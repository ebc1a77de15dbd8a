//! The model of a flow: everything that its scheduling depends on, apart from its code.

use serde::{Deserialize, Serialize};

use crate::draft::Draft;
use crate::engine::units::groups::GroupRules;
use crate::need::Hold;
use crate::plan::PlanResource;
use crate::policy::AfterFailure;
use crate::resource::{Rate, ResourceSpec, Supply};

/// A flow without its code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Model {
    pub(crate) flow: String,
    pub(crate) inflight: u64,
    /// The byte budget, if there is one.
    pub(crate) memory: Option<u64>,
    pub(crate) workers: usize,
    pub(crate) entry: u16,
    pub(crate) stages: Vec<ModelStage>,
    pub(crate) resources: Vec<ModelResource>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ModelStage {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) needs: Vec<ModelNeed>,
    pub(crate) next: Vec<u16>,
    pub(crate) retires: bool,
    /// The floor and the ceiling, if the program set them.
    pub(crate) workers: Option<(usize, usize)>,
    pub(crate) blocking: bool,
    /// Whether the stage's workers are fibers. Such a stage is also `blocking`.
    #[serde(default)]
    pub(crate) fibers: bool,
    pub(crate) batch: Option<usize>,
    pub(crate) batch_wait_ns: u64,
    pub(crate) queue: Option<u64>,
    /// Whether the stage weighs its units.
    pub(crate) weighs: bool,
    pub(crate) retries: u32,
    pub(crate) after_failure: After,
    pub(crate) idempotent: bool,
}

/// The effect of a stage on the number of units.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Plain,
    Split,
    Gather {
        by: GatherBy,
        units: u64,
        bytes: u64,
        wait_ns: u64,
        max_groups: u64,
        even_if_torn: bool,
        /// Whether the program's own code decides when a group is full.
        by_code: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GatherBy {
    All,
    Parent,
    Key,
}

/// [`AfterFailure`] in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum After {
    DeadLetter,
    Skip,
    StopFlow,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ModelNeed {
    pub(crate) resource: u16,
    pub(crate) amount: Option<u64>,
    pub(crate) keyed: bool,
    pub(crate) hold: ModelHold,
}

/// [`Hold`] in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ModelHold {
    Unit,
    Batch,
    Until(u16),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ModelResource {
    pub(crate) name: String,
    pub(crate) supply: ModelSupply,
    pub(crate) keyed: bool,
    pub(crate) pool: bool,
    pub(crate) max_keys: usize,
}

/// [`Supply`] in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ModelSupply {
    Tokens(u64),
    Rate { per_second: f64, burst: u64 },
}

impl Model {
    /// Describes an index that is out of range, if there is one.
    pub(crate) fn contradiction(&self) -> Option<String> {
        let stage = |index: u16| usize::from(index) < self.stages.len();
        if !stage(self.entry) {
            return Some(format!("units enter at stage number {}, which does not exist", self.entry));
        }
        for ModelStage { name, next, needs, .. } in &self.stages {
            if let Some(next) = next.iter().find(|&&next| !stage(next)) {
                return Some(format!("`{name}` leads to stage number {next}, which does not exist"));
            }
            for need in needs {
                if usize::from(need.resource) >= self.resources.len() {
                    return Some(format!("`{name}` needs resource number {}, which does not exist", need.resource));
                }
                if let ModelHold::Until(until) = need.hold
                    && !stage(until)
                {
                    return Some(format!("`{name}` holds a need until stage number {until}, which does not exist"));
                }
            }
        }
        None
    }

    /// Returns whether a unit's record always tells the root of its family: no child has children, and no group
    /// replaces a parent.
    pub(crate) fn tells_families(&self) -> bool {
        let is_by_parent = |stage: &ModelStage| matches!(stage.kind, Kind::Gather { by: GatherBy::Parent, .. });
        !self.nests() && !self.stages.iter().any(is_by_parent)
    }

    /// Returns whether children may have children.
    pub(crate) fn nests(&self) -> bool {
        let is_split = |stage: u16| self.stages[usize::from(stage)].kind == Kind::Split;
        let mut seen = vec![false; self.stages.len()];
        let mut ahead: Vec<u16> = (0..self.stages.len() as u16)
            .filter(|&stage| is_split(stage))
            .flat_map(|stage| self.stages[usize::from(stage)].next.clone())
            .collect();
        while let Some(stage) = ahead.pop() {
            if is_split(stage) {
                return true;
            }
            if !std::mem::replace(&mut seen[usize::from(stage)], true) {
                ahead.extend(&self.stages[usize::from(stage)].next);
            }
        }
        false
    }

    /// Returns the index of the stage with this name.
    pub(crate) fn stage(&self, name: &str) -> Option<usize> {
        self.stages.iter().position(|stage| stage.name == name)
    }

    /// Returns the index of the resource with this name.
    pub(crate) fn resource(&self, name: &str) -> Option<usize> {
        self.resources.iter().position(|resource| resource.name == name)
    }
}

impl ModelStage {
    pub(crate) fn of(draft: &Draft) -> Self {
        ModelStage {
            name: draft.config.name.to_string(),
            kind: match draft.wired.groups {
                Some(rules) => Kind::gather(rules),
                None if draft.wired.splits => Kind::Split,
                None => Kind::Plain,
            },
            needs: draft
                .needs
                .iter()
                .map(|need| ModelNeed {
                    resource: need.resource,
                    amount: need.amount,
                    keyed: need.keyed,
                    hold: match need.hold {
                        Hold::Unit => ModelHold::Unit,
                        Hold::Batch => ModelHold::Batch,
                        Hold::Until(stage) => ModelHold::Until(stage),
                    },
                })
                .collect(),
            next: draft.wired.edges.clone(),
            retires: draft.wired.retires,
            workers: draft.workers,
            blocking: draft.blocking,
            fibers: draft.fibers,
            batch: draft.batch.size,
            batch_wait_ns: crate::engine::pace::nanos(draft.batch.wait),
            queue: draft.queue,
            weighs: draft.wired.weighs,
            retries: draft.config.retry.times,
            after_failure: match draft.config.after_failure {
                AfterFailure::DeadLetter => After::DeadLetter,
                AfterFailure::Skip => After::Skip,
                AfterFailure::StopFlow => After::StopFlow,
            },
            idempotent: draft.config.idempotent,
        }
    }
}

impl Kind {
    fn gather(rules: GroupRules) -> Self {
        Kind::Gather {
            by: match (rules.by_family, rules.by_key) {
                (true, _) => GatherBy::Parent,
                (_, true) => GatherBy::Key,
                _ => GatherBy::All,
            },
            units: rules.max_units,
            bytes: rules.max_bytes,
            wait_ns: rules.wait_ns,
            max_groups: rules.max_groups,
            even_if_torn: rules.goes_on_torn,
            by_code: rules.by_code,
        }
    }
}

impl ModelResource {
    /// Returns the number of tokens or objects, or a rate's burst.
    pub(crate) fn capacity(&self) -> u64 {
        match self.supply {
            ModelSupply::Tokens(tokens) => tokens,
            ModelSupply::Rate { burst, .. } => burst,
        }
    }

    /// Returns the resource as a plan shows it.
    pub(crate) fn as_plan(&self) -> PlanResource {
        let supply = match self.supply {
            ModelSupply::Tokens(tokens) => Supply::Tokens(tokens),
            ModelSupply::Rate { per_second, burst } => Supply::Rate(Rate::per_second(per_second).burst(burst)),
        };
        let (name, keyed, max_keys) = (self.name.clone(), self.keyed, self.max_keys);
        PlanResource::of(&ResourceSpec { name, supply, keyed, pool: self.pool, max_keys })
    }

    pub(crate) fn of(spec: &ResourceSpec) -> Self {
        ModelResource {
            name: spec.name.clone(),
            supply: match spec.supply {
                Supply::Tokens(tokens) => ModelSupply::Tokens(tokens),
                Supply::Rate(rate) => ModelSupply::Rate { per_second: rate.per_second, burst: rate.burst },
            },
            keyed: spec.keyed,
            pool: spec.pool,
            max_keys: spec.max_keys,
        }
    }
}
