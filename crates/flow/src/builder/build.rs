//! Building a flow: the static checks, the plan, and the flow itself.

use std::sync::{Arc, Mutex, PoisonError};

use super::FlowBuilder;
use crate::check::error::BuildError;
use crate::check::graph::Graph;
use crate::check::proof::Proof;
use crate::draft::{Draft, FlowDraft, NeedDraft};
use crate::engine::intake::gate::TypedGate;
use crate::engine::run::lane::Lane;
use crate::engine::run::site::{Letters, Site};
use crate::engine::settings::{LiveSettings, Settings, Workers};
use crate::engine::state::State;
#[cfg(feature = "fibers")]
use crate::engine::threads::fibers::FiberSeats;
use crate::engine::threads::shared::Shared;
use crate::engine::threads::spawn::start_worker;
use crate::engine::units::column::Column;
use crate::entry::Entry;
use crate::failure::DeadLetter;
use crate::flow::Flow;
use crate::inlet::Inlet;
#[cfg(feature = "fibers")]
use crate::limits::DEFAULT_FIBER_STACK;
use crate::limits::{DEFAULT_MAX_KEYS, FIBER_STACKS, MAX_WORKERS};
use crate::need::Hold;
use crate::plan::{Plan, PlanNeed, PlanResource, PlanStage};
use crate::policy::Batch;
use crate::report::Report;
use crate::resource::{ResourceSpec, Supply};
#[cfg(feature = "trace")]
use crate::trace::model::{Model, ModelResource, ModelStage};
#[cfg(feature = "trace")]
use crate::trace::present::Built;

impl<R: Send + 'static> FlowBuilder<R> {
    /// Runs the static checks and makes the flow. Units enter it at `entry`.
    ///
    /// # Errors
    /// Returns the first fault of the flow (see [`BuildError`]). If there is none, the flow's [`plan`](Flow::plan)
    /// shows the results of the checks.
    pub fn build<In: Send + 'static>(self, entry: Inlet<In>) -> Result<Flow<In, R>, BuildError> {
        let FlowBuilder { mut draft, sink } = self;
        if let Some(error) = draft.errors.drain(..).next() {
            return Err(error);
        }
        let handle = draft.entries.get(usize::from(entry.index)).and_then(|e| e.downcast_ref::<Arc<Entry<In>>>());
        let Some(handle) = handle.filter(|_| entry.flow == draft.id).cloned() else {
            return Err(BuildError::Foreign { stage: "the entry".into() });
        };
        let parts = draft.check(entry.index)?;
        let gate = Arc::new(TypedGate::new(handle, parts.settings.clone()));
        Ok(Flow {
            shared: Shared::new(
                parts.site,
                parts.settings,
                parts.lanes,
                gate.clone(),
                parts.state,
                start_worker,
                #[cfg(feature = "fibers")]
                parts.fibers,
            ),
            gate,
            sink,
            kept: parts.kept,
            plan: parts.plan,
            #[cfg(feature = "trace")]
            built: parts.built,
            #[cfg(feature = "trace")]
            tape: std::sync::OnceLock::new(),
        })
    }
}

/// The parts of a flow that has passed its checks, except those that depend on the types of its units and results.
struct Parts {
    settings: Arc<LiveSettings>,
    site: Site,
    lanes: Vec<Box<dyn Lane>>,
    state: State,
    plan: Plan,
    kept: Arc<Mutex<Vec<DeadLetter>>>,
    #[cfg(feature = "fibers")]
    fibers: FiberSeats,
    #[cfg(feature = "trace")]
    built: Arc<Built>,
}

impl FlowDraft {
    fn check(mut self, entry: u16) -> Result<Parts, BuildError> {
        self.check_limits()?;
        let mut drafts = Vec::with_capacity(self.stages.len());
        for (draft, name) in std::mem::take(&mut self.stages).into_iter().zip(&self.names) {
            drafts.push(draft.ok_or_else(|| BuildError::UndefinedStage { stage: name.clone() })?);
        }
        for draft in &drafts {
            self.check_needs(draft)?;
        }
        #[cfg(feature = "trace")]
        let model = self.model(entry, &drafts);
        let places = self.add_queue_places(&mut drafts);
        let entry_place = places.get(usize::from(entry)).copied().flatten();
        let graph = Graph {
            entry,
            entry_place,
            resources: self.resources.iter().map(|spec| spec.name.clone()).collect(),
            stages: drafts.iter().zip(&self.names).map(|(draft, name)| draft.node(name)).collect(),
        };
        let proof = graph.check()?;

        let n = self.resources.len();
        let mut order: Vec<u16> = (0..drafts.len() as u16).collect();
        order.sort_by_key(|&s| (proof.distance[usize::from(s)], std::cmp::Reverse(s)));
        let mut nth = vec![None; drafts.len()];
        let splitting = order.iter().rev().filter(|&&s| drafts[usize::from(s)].wired.splits);
        (1..).zip(splitting).for_each(|(n, &s)| nth[usize::from(s)] = Some(n));
        let setups = drafts.iter().zip(nth).zip(&proof.leads_to);
        let setups = setups.map(|((draft, nth), &leads_to)| draft.setup(n, nth, leads_to)).collect();
        let ranks = proof.ranks.clone();
        let plan = self.plan(&drafts, proof, &places);
        let settings = Arc::new(LiveSettings::new(Settings {
            inflight: self.inflight,
            memory: self.memory,
            shared_workers: self.workers,
            workers: drafts.iter().map(|draft| draft.workers(self.workers, &self.resources)).collect(),
        }));
        let state = State::new(&settings.get(), setups, &self.resources, &ranks, order, entry, entry_place);
        let (kept, letters) = keep_letters(self.letters);
        #[cfg(feature = "fibers")]
        let fibers = fiber_seats(&drafts, self.fiber_threads);
        let (lanes, configs) = drafts.into_iter().map(|draft| (draft.wired.lane, draft.config)).unzip();
        let mut site = Site::new(self.name, self.id, configs, state.columns(), letters);
        if let Some(now) = self.simulated {
            site.simulate(now);
        }
        #[cfg(feature = "trace")]
        let built = Arc::new(Built { model, workers: settings.get().workers.clone() });
        Ok(Parts {
            settings,
            site,
            lanes,
            state,
            plan,
            kept,
            #[cfg(feature = "fibers")]
            fibers,
            #[cfg(feature = "trace")]
            built,
        })
    }

    /// The flow without its code, before its bounded queues become resources.
    #[cfg(feature = "trace")]
    fn model(&self, entry: u16, drafts: &[Draft]) -> Model {
        Model {
            flow: self.name.clone(),
            inflight: self.inflight,
            memory: (self.memory != u64::MAX).then_some(self.memory),
            workers: self.workers,
            entry,
            stages: drafts.iter().map(ModelStage::of).collect(),
            resources: self.resources.iter().map(ModelResource::of).collect(),
        }
    }

    fn check_limits(&self) -> Result<(), BuildError> {
        const MAX_STAGES: usize = 1024;
        const MAX_RESOURCES: usize = 1024;
        if self.inflight == 0 {
            return Err(BuildError::ZeroInflight);
        }
        if self.memory == 0 {
            return Err(BuildError::ZeroMemory);
        }
        if self.workers == 0 {
            return Err(BuildError::ZeroWorkers);
        }
        if self.fiber_threads == 0 {
            return Err(BuildError::ZeroFiberThreads);
        }
        if self.fiber_threads > MAX_WORKERS {
            return Err(BuildError::TooMany {
                what: "threads for fibers",
                count: self.fiber_threads,
                most: MAX_WORKERS,
            });
        }
        if self.workers > MAX_WORKERS {
            return Err(BuildError::TooMany { what: "workers", count: self.workers, most: MAX_WORKERS });
        }
        for (what, count, most) in [
            ("stages", self.names.len(), MAX_STAGES),
            ("resources", self.resources.len(), MAX_RESOURCES),
            ("units in flight", usize::try_from(self.inflight).unwrap_or(usize::MAX), Column::<u8>::MAX_ROWS),
        ] {
            if count > most {
                return Err(BuildError::TooMany { what, count, most });
            }
        }
        match self.resources.iter().find(|spec| spec.max_keys == 0) {
            Some(spec) => Err(BuildError::ZeroKeys { resource: spec.name.clone() }),
            None => Ok(()),
        }
    }

    fn check_needs(&self, draft: &Draft) -> Result<(), BuildError> {
        let stage = || draft.config.name.to_string();
        for need in &draft.needs {
            let spec = &self.resources[usize::from(need.resource)];
            let resource = spec.name.clone();
            let capacity = match spec.supply {
                Supply::Tokens(tokens) => tokens,
                Supply::Rate(rate) => rate.burst,
            };
            let total: u128 = if need.keyed {
                need.amount.unwrap_or(1).into()
            } else {
                let amounts = draft.needs.iter().filter(|n| n.resource == need.resource).filter_map(|n| n.amount);
                amounts.map(u128::from).sum()
            };
            if spec.keyed && !need.keyed {
                return Err(BuildError::KeyMissing { stage: stage(), resource });
            }
            if !spec.keyed && need.keyed {
                return Err(BuildError::KeyUnexpected { stage: stage(), resource });
            }
            if need.hold == Hold::Batch && (need.keyed || need.amount.is_none()) {
                return Err(BuildError::BatchNeedByUnit { stage: stage(), resource });
            }
            if need.amount == Some(0) {
                return Err(BuildError::NeedOfZero { stage: stage(), resource });
            }
            let same = draft.needs.iter().filter(|other| other.resource == need.resource);
            if same.clone().any(|other| other.hold != need.hold) {
                return Err(BuildError::MixedHolds { stage: stage(), resource });
            }
            let keys = same.filter(|other| other.keyed).count();
            if keys > spec.max_keys {
                return Err(BuildError::TooFewKeys { stage: stage(), resource, keys, max_keys: spec.max_keys });
            }
            if total > capacity.into() {
                let amount = u64::try_from(total).unwrap_or(u64::MAX);
                return Err(BuildError::NeedTooLarge { stage: stage(), resource, amount, capacity });
            }
        }
        let most = draft.most_workers();
        let sensible = |floor, ceiling| ceiling > 0 && ceiling <= most && floor <= ceiling;
        if let Some((floor, ceiling)) = draft.workers.filter(|&(floor, ceiling)| !sensible(floor, ceiling)) {
            return Err(BuildError::Workers { stage: stage(), floor, ceiling, most });
        }
        if let Some(bytes) = draft.stack {
            let (least, most) = FIBER_STACKS.into_inner();
            if !draft.fibers {
                return Err(BuildError::StackWithoutFibers { stage: stage() });
            }
            if !FIBER_STACKS.contains(&bytes) {
                return Err(BuildError::Stack { stage: stage(), bytes, least, most });
            }
        }
        if let Some(size) = draft.batch.size.filter(|&size| size == 0 || size > Batch::MAX_SIZE) {
            return Err(BuildError::BatchSize { stage: stage(), size, most: Batch::MAX_SIZE });
        }
        if draft.queue == Some(0) {
            return Err(BuildError::ZeroQueue { stage: stage() });
        }
        Ok(())
    }

    /// Turns each bound on a queue into a resource, whose tokens are the slots of the queue. The previous stages ask
    /// for a slot, and a unit holds its slot until it leaves the stage.
    fn add_queue_places(&mut self, drafts: &mut [Draft]) -> Vec<Option<u16>> {
        let mut places = Vec::with_capacity(drafts.len());
        for s in 0..drafts.len() {
            let Some(bound) = drafts[s].queue else {
                places.push(None);
                continue;
            };
            let index = self.resources.len() as u16;
            self.resources.push(ResourceSpec {
                name: format!("queue of {}", self.names[s]),
                supply: Supply::Tokens(bound),
                keyed: false,
                pool: false,
                max_keys: DEFAULT_MAX_KEYS,
            });
            let need =
                NeedDraft { place: true, resource: index, amount: Some(1), keyed: false, hold: Hold::Until(s as u16) };
            drafts
                .iter_mut()
                .filter(|draft| draft.wired.edges.contains(&(s as u16)))
                .for_each(|draft| draft.needs.push(need));
            places.push(Some(index));
        }
        places
    }

    fn plan(&self, drafts: &[Draft], proof: Proof, places: &[Option<u16>]) -> Plan {
        let mut order: Vec<usize> = (0..self.resources.len()).collect();
        order.sort_by_key(|&r| proof.ranks[r]);
        let name_of = |s: &u16| self.names[usize::from(*s)].clone();
        let stages = drafts.iter().zip(&self.names).zip(places).map(|((draft, name), place)| {
            let Workers { floor: workers_min, ceiling: workers_max, .. } = draft.workers(self.workers, &self.resources);
            PlanStage {
                name: name.clone(),
                queue_bound: place.map_or(self.inflight, |_| draft.queue.unwrap_or(self.inflight)),
                workers_min: workers_min as u64,
                workers_max: workers_max as u64,
                blocking: draft.blocking,
                fibers: draft.fibers,
                batch: draft.batch,
                idempotent: draft.config.idempotent,
                timeout: draft.config.timeout,
                retries: draft.config.retry.times,
                after_failure: draft.config.after_failure,
                needs: draft
                    .needs
                    .iter()
                    .map(|need| PlanNeed {
                        resource: self.resources[usize::from(need.resource)].name.clone(),
                        amount: need.amount,
                        keyed: need.keyed,
                        per_batch: need.hold == Hold::Batch,
                        until: if let Hold::Until(stage) = need.hold { Some(name_of(&stage)) } else { None },
                    })
                    .collect(),
                next: draft.wired.edges.iter().map(name_of).collect(),
                retires: draft.wired.retires,
            }
        });
        Plan {
            flow: self.name.clone(),
            inflight: self.inflight,
            memory: self.memory,
            workers: self.workers as u64,
            stages: stages.collect(),
            resources: self.resources.iter().map(PlanResource::of).collect(),
            order: order.into_iter().map(|r| self.resources[r].name.clone()).collect(),
            pairs: proof.pairs,
        }
    }
}

/// Returns the function that gets dead letters of units without a ticket. If the program has not set this function, the
/// returned function keeps the letters in the returned list.
fn keep_letters(listener: Option<Letters>) -> (Arc<Mutex<Vec<DeadLetter>>>, Letters) {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let ours = kept.clone();
    let keep = move |letter| {
        let mut kept = ours.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < Report::DEAD_LETTERS_KEPT {
            kept.push(letter);
        }
    };
    (kept, listener.unwrap_or_else(|| Box::new(keep)))
}

/// The stages whose workers are fibers. All their stacks have the size that the stage with the largest stacks asks for.
#[cfg(feature = "fibers")]
fn fiber_seats(drafts: &[Draft], threads: usize) -> FiberSeats {
    let stacks = drafts.iter().filter(|draft| draft.fibers).map(|draft| draft.stack.unwrap_or(DEFAULT_FIBER_STACK));
    let stack_bytes = stacks.max().unwrap_or(DEFAULT_FIBER_STACK);
    let options = millstream_fiber::Options::new(millstream_fiber::Threads::Workers(threads));
    FiberSeats::new(drafts.iter().map(|draft| draft.fibers).collect(), stack_bytes, options)
}
