//! The stand-in: a flow with the model's stages, needs and policies, whose code follows the script.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::script::{Script, UnitIndex, Visit};
use super::what_if::ReplayError;
use crate::builder::FlowBuilder;
use crate::cx::Cx;
use crate::engine::run::lane::Code;
use crate::engine::simulate::meter::{Meter, Spent};
use crate::exit::{Either, select};
use crate::failure::Failure;
use crate::flow::Flow;
use crate::gather::Gather;
use crate::inlet::Inlet;
use crate::need::Need;
use crate::policy::{AfterFailure, Batch, Retry};
use crate::resource::{Rate, Resource};
use crate::stage_builder::StageBuilder;
use crate::trace::model::{After, GatherBy, Kind, Model, ModelHold, ModelNeed, ModelStage, ModelSupply};
use crate::trace::run::End;

/// A unit of the stand-in: a unit of the script, and its progress.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shade {
    unit: UnitIndex,
    /// The index of the unit's next visit.
    at: u32,
    /// The index of the current stage's exit.
    exit: u32,
    /// For a group: the number of its key.
    key: u64,
    /// For a group: the number of members so far.
    members: u32,
    /// For a group: the recorded number of members.
    most: u32,
}

impl Shade {
    pub(crate) fn new(unit: UnitIndex) -> Self {
        Shade { unit, at: 0, exit: 0, key: 0, members: 0, most: u32::MAX }
    }
}

/// The code of a stage.
pub(crate) struct Stage {
    script: Arc<Script>,
    meter: Arc<Meter>,
    index: u16,
    /// The factor by which the stage's time changes.
    factor: f64,
    /// The stage to which each exit leads. The last exit is retirement if units may retire here.
    next: Vec<u16>,
    retires: bool,
    /// In a stage that gathers: the units that continued as groups in the recorded run, by the number of their key.
    /// Closed groups follow the remaining visits of these units.
    groups: Mutex<HashMap<u64, VecDeque<Shade>>>,
    /// How many groups of each key have been opened.
    opened: Mutex<HashMap<u64, usize>>,
}

impl Stage {
    /// Returns the unit's next visit, which is to this stage. Skips runs that were cancelled for memory.
    fn visit(&self, shade: &mut Shade) -> Option<Visit> {
        if shade.unit == UnitIndex::MAX {
            return None;
        }
        let visits = self.script.visits_of(shade.unit);
        while visits.get(shade.at as usize).is_some_and(|visit| visit.end == End::AwaitMemory) {
            shade.at += 1;
        }
        if let Some(visit) = visits.get(shade.at as usize).filter(|visit| visit.stage == self.index) {
            return Some(*visit);
        }
        // The result of the previous visit may have been dropped for lack of memory. Then the unit has returned to
        // repeat that visit.
        let before = (shade.at as usize).checked_sub(1)?;
        let again = *visits.get(before)?;
        let again = (again.stage == self.index && matches!(again.end, End::Go(_))).then_some(again)?;
        shade.at = before as u32;
        Some(again)
    }

    /// Returns the unit's weight on arrival at this stage.
    fn weight(&self, shade: &Shade) -> u64 {
        let visits = if shade.unit == UnitIndex::MAX { &[] } else { self.script.visits_of(shade.unit) };
        visits.get(shade.at as usize).filter(|visit| visit.stage == self.index).map_or(0, |visit| visit.bytes)
    }

    /// Returns the weight to which the unit grows in a visit, which is its weight in the next visit.
    fn grows_to(&self, visit: &Visit, shade: &Shade) -> u64 {
        let next = self.script.visits_of(shade.unit).get(shade.at as usize + 1);
        next.map_or(0, |next| next.bytes).max(visit.bytes)
    }

    fn spend(&self, Spent { cpu_ns, wait_ns }: Spent) {
        let scaled = |ns: u64| (ns as f64 * self.factor) as u64;
        self.meter.spend(Spent { cpu_ns: scaled(cpu_ns), wait_ns: scaled(wait_ns) });
    }

    fn exit_to(&self, end: End) -> u32 {
        let place = match end {
            End::Go(stage) => self.next.iter().position(|&next| next == stage),
            _ => None,
        };
        let out = if self.retires { self.next.len() } else { 0 };
        place.unwrap_or(out) as u32
    }

    /// Ends a visit of a stage that neither splits nor gathers.
    fn run(&self, shade: &mut Shade, cx: &mut Cx<'_>) -> Result<(), Failure> {
        let Some(visit) = self.visit(shade) else {
            return Err(Failure::permanent("the trace has no such visit"));
        };
        // A unit that grows reserves room first, and waits for it as it would in a real run.
        cx.reserve_first(self.grows_to(&visit, shade))?;
        self.spend(visit.spent());
        shade.at += 1;
        self.conclude(&visit, shade, cx)
    }

    fn conclude(&self, visit: &Visit, shade: &mut Shade, cx: &mut Cx<'_>) -> Result<(), Failure> {
        match visit.end {
            End::Go(_) | End::Retire => {
                shade.exit = self.exit_to(visit.end);
                if visit.delay_ns > 0 {
                    cx.delay(Duration::from_nanos(visit.delay_ns));
                }
                Ok(())
            }
            End::Retry { pause_ns } => Err(Failure::msg("again").not_before(Duration::from_nanos(pause_ns))),
            End::Requeue { pause_ns } => Err(Failure::requeue("again").not_before(Duration::from_nanos(pause_ns))),
            _ => Err(Failure::permanent("it failed")),
        }
    }

    /// Splits a unit into its children.
    fn open(self: &Arc<Self>, shade: &mut Shade) -> Children {
        let children = self.script.children_of(shade.unit);
        let visits = self.script.visits_of(shade.unit);
        let mut spent = Spent::default();
        let mut end = End::Unfolded;
        while let Some(visit) = visits.get(shade.at as usize).filter(|visit| visit.stage == self.index) {
            spent.cpu_ns += visit.cpu_ns;
            spent.wait_ns += visit.wait_ns;
            end = visit.end;
            shade.at += 1;
            if !matches!(end, End::Unfold | End::AwaitMemory) {
                break;
            }
        }
        let shares = children.len().max(1) as u64;
        let each = Spent { cpu_ns: spent.cpu_ns / shares, wait_ns: spent.wait_ns / shares };
        if children.is_empty() {
            self.spend(each);
        }
        Children { stage: self.clone(), unit: shade.unit, next: 0, each, fails: end != End::Unfolded }
    }

    /// Adds a unit to the group whose key has this number.
    fn join(&self, group: &mut Shade, shade: &mut Shade, key: u64) -> Result<(), Failure> {
        let Some(visit) = self.visit(shade) else {
            return Err(Failure::permanent("the trace has no such visit"));
        };
        if group.members == 0 {
            let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
            let nth = opened.entry(key).or_default();
            (group.key, group.most) = (key, self.script.group_size(self.index, key, *nth).unwrap_or(u32::MAX));
            *nth += 1;
        }
        let mut holder = None;
        match visit.end {
            // The unit held a group; its later visits belong to the group.
            End::Hold => holder = Some(Shade { at: shade.at + 1, key, ..*shade }),
            // In the recorded run, the unit's group was closed in the visit in which the unit opened it.
            End::Go(_) | End::Retire => {
                group.members += 1;
                self.groups().entry(key).or_default().push_back(*shade);
                return Ok(());
            }
            _ => {}
        }
        self.spend(visit.spent());
        shade.at += 1;
        match visit.end {
            End::Retry { pause_ns } => Err(Failure::msg("again").not_before(Duration::from_nanos(pause_ns))),
            End::Dead | End::Skip => Err(Failure::permanent("it failed")),
            _ => {
                group.members += 1;
                self.groups().entry(key).or_default().extend(holder);
                Ok(())
            }
        }
    }

    /// Continues a closed group as one of the recorded groups of its key did.
    fn close(&self, group: &mut Shade) {
        let next = self.groups().get_mut(&group.key).and_then(VecDeque::pop_front);
        // There may be more groups than in the trace. The additional groups have no visits.
        *group = next.unwrap_or(Shade::new(UnitIndex::MAX));
        match self.visit(group) {
            Some(visit) => {
                self.spend(visit.spent());
                group.at += 1;
                group.exit = self.exit_to(visit.end);
            }
            None => group.exit = self.exit_to(End::Retire),
        }
    }

    fn groups(&self) -> std::sync::MutexGuard<'_, HashMap<u64, VecDeque<Shade>>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The children of a unit, in the order of their creation.
struct Children {
    stage: Arc<Stage>,
    unit: UnitIndex,
    next: usize,
    each: Spent,
    /// Whether the unit failed after its last child.
    fails: bool,
}

impl Iterator for Children {
    type Item = Result<Shade, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        let Some(&child) = self.stage.script.children_of(self.unit).get(self.next) else {
            return std::mem::take(&mut self.fails).then(|| Err(Failure::permanent("it failed")));
        };
        self.next += 1;
        self.stage.spend(self.each);
        let first = self.stage.script.visits_of(child).first();
        let exit = first.map_or(End::Retire, |visit| End::Go(visit.stage));
        Some(Ok(Shade { exit: self.stage.exit_to(exit), ..Shade::new(child) }))
    }
}

/// Builds the stand-in of a model. `factors` has, for each stage, the factor by which its time changes.
pub(crate) fn build(
    model: &Model,
    factors: &[f64],
    script: &Arc<Script>,
    meter: &Arc<Meter>,
) -> Result<Flow<Shade, Shade>, ReplayError> {
    let mut flow = Flow::builder::<Shade>(model.flow.clone());
    flow.simulate(meter.clock());
    flow.inflight(model.inflight).workers(model.workers);
    if let Some(bytes) = model.memory {
        flow.memory(bytes);
    }
    flow.on_dead_letter(drop);
    let resources: Vec<Resource> = model
        .resources
        .iter()
        .map(|resource| {
            let name = resource.name.clone();
            let handle = match (resource.supply, resource.keyed) {
                (ModelSupply::Tokens(tokens), false) => flow.tokens(name, tokens),
                (ModelSupply::Tokens(tokens), true) => flow.keyed_tokens(name, tokens),
                (ModelSupply::Rate { per_second, burst }, false) => {
                    flow.rate(name, Rate::per_second(per_second).burst(burst))
                }
                (ModelSupply::Rate { per_second, burst }, true) => {
                    flow.keyed_rate(name, Rate::per_second(per_second).burst(burst))
                }
            };
            flow.max_keys(handle, resource.max_keys);
            handle
        })
        .collect();
    let inlets: Vec<Inlet<Shade>> = model.stages.iter().map(|stage| flow.inlet(stage.name.clone())).collect();
    for (index, (stage, &factor)) in (0..).zip(model.stages.iter().zip(factors)) {
        let shared = Arc::new(Stage {
            script: script.clone(),
            meter: meter.clone(),
            index,
            factor,
            next: stage.next.clone(),
            retires: stage.retires,
            groups: Mutex::default(),
            opened: Mutex::default(),
        });
        define(&mut flow, model, stage, &shared, &inlets, &resources)?;
    }
    let entry = inlets.get(usize::from(model.entry)).ok_or_else(|| ReplayError::Refused("it has no entry".into()))?;
    flow.build(*entry).map_err(|error| ReplayError::Refused(error.to_string()))
}

fn define(
    flow: &mut FlowBuilder<Shade>,
    model: &Model,
    stage: &ModelStage,
    shared: &Arc<Stage>,
    inlets: &[Inlet<Shade>],
    resources: &[Resource],
) -> Result<(), ReplayError> {
    let inlet = inlets[usize::from(shared.index)];
    let exits = stage.next.iter().map(|&next| Either::Left(inlets[usize::from(next)]));
    let exits: Vec<_> = exits.chain(stage.retires.then(|| Either::Right(flow.retire()))).collect();
    let exit = select(|shade: &Shade| shade.exit as usize, exits);
    let code = shared.clone();
    let wire = Wire { stage, shared, inlets, resources };
    match stage.kind {
        Kind::Plain => wire.all(flow.update(inlet, move |shade: &mut Shade, cx| code.run(shade, cx))).to(exit),
        Kind::Split => wire.all(flow.split(inlet, move |shade: &mut Shade, _| Ok(code.open(shade)))).to(exit),
        Kind::Gather { by_code: true, by: GatherBy::Parent, .. } => {
            let (stage, flow) = (&stage.name, &model.flow);
            let what = format!("stage `{stage}` of flow `{flow}` closes parts of a family by its own code");
            return Err(ReplayError::NoModel(what));
        }
        Kind::Gather { by, units, bytes, wait_ns, max_groups, even_if_torn, by_code } => {
            let closing = shared.clone();
            let of_key = shared.clone();
            let key = move |shade: &Shade| of_key.visit(&mut { *shade }).map_or(0, |visit| visit.group);
            let key_of = key.clone();
            let gather = Gather::fold(
                || Shade::new(UnitIndex::MAX),
                move |group: &mut Shade, shade: &mut Shade, cx| {
                    let key = match by {
                        GatherBy::All => 0,
                        GatherBy::Parent => cx.parent().map_or(u64::MAX, |parent| parent),
                        GatherBy::Key => key_of(shade),
                    };
                    code.join(group, shade, key)
                },
            );
            let gather = gather.finish(move |group| closing.close(group)).max_groups(max_groups);
            let gather = gather.units(units).bytes(bytes).wait(Duration::from_nanos(wait_ns));
            // The rule of the program's code is unknown. Its groups are closed at their recorded sizes.
            let gather = if by_code { gather.full(|group: &Shade| group.members >= group.most) } else { gather };
            let gather = if even_if_torn { gather.even_if_torn() } else { gather };
            match by {
                GatherBy::All => wire.all(flow.gather(inlet, gather)).to(exit),
                GatherBy::Parent => wire.all(flow.gather(inlet, gather.by_parent())).to(exit),
                GatherBy::Key => wire.all(flow.gather(inlet, gather.by_key(key))).to(exit),
            }
        }
    }
    Ok(())
}

/// The parts of a stage that define its needs and policies.
struct Wire<'a> {
    stage: &'a ModelStage,
    shared: &'a Arc<Stage>,
    inlets: &'a [Inlet<Shade>],
    resources: &'a [Resource],
}

impl Wire<'_> {
    fn all<'b, B: Code<Shade>>(&self, builder: StageBuilder<'b, Shade, Shade, B>) -> StageBuilder<'b, Shade, Shade, B> {
        let ModelStage { batch, batch_wait_ns, queue, workers, .. } = self.stage;
        let sized = batch.map_or(Batch::auto(), Batch::of);
        // The script itself determines the number of retries and their pauses.
        let retry = Retry::times(u32::MAX).backoff(Duration::ZERO..Duration::ZERO);
        let mut builder = builder.batch(sized.wait(Duration::from_nanos(*batch_wait_ns))).retry(retry);
        builder = builder.after_failure(match self.stage.after_failure {
            After::DeadLetter => AfterFailure::DeadLetter,
            After::Skip => AfterFailure::Skip,
            After::StopFlow => AfterFailure::StopFlow,
        });
        for need in self.needs() {
            builder = builder.need(need);
        }
        if let Some((floor, ceiling)) = *workers {
            builder = builder.workers(floor..=ceiling);
        }
        if let Some(units) = *queue {
            builder = builder.queue(units);
        }
        if self.stage.blocking {
            builder = builder.blocking();
        }
        if self.stage.fibers {
            builder = builder.on_fibers();
        }
        if self.stage.idempotent {
            builder = builder.idempotent();
        }
        if self.stage.weighs {
            let stage = self.shared.clone();
            builder = builder.bytes(move |shade| stage.weight(shade));
        }
        builder
    }

    fn needs(&self) -> impl Iterator<Item = Need<Shade>> {
        let needs = &self.stage.needs;
        needs.iter().enumerate().map(|(place, model)| {
            let resource = self.resources[usize::from(model.resource)];
            let differs = |need: &&ModelNeed| need.keyed || need.amount.is_none();
            // A visit has only the needs that differ from unit to unit, in the order of the stage's needs. So this need is
            // the `nth` of the visit's needs of this resource.
            let nth = needs[..place].iter().filter(differs).filter(|need| need.resource == model.resource).count();
            let (stage, index) = (self.shared.clone(), model.resource);
            let asked = move |shade: &Shade| {
                let visit = stage.visit(&mut { *shade })?;
                stage.script.asks_of(&visit).iter().filter(|ask| ask.resource == index).nth(nth).copied()
            };
            let amount = asked.clone();
            let mut need = if model.keyed {
                Need::keyed(resource, move |shade| match asked(shade).and_then(|ask| ask.key) {
                    Some(key) => format!("{key:x}"),
                    None => String::new(),
                })
            } else {
                Need::tokens(resource, model.amount.unwrap_or(1))
            };
            match model.amount {
                Some(tokens) => need = need.amount(tokens),
                None => need = need.amount_with(move |shade| amount(shade).map_or(0, |ask| ask.amount)),
            }
            match model.hold {
                ModelHold::Unit => need,
                ModelHold::Batch => need.per_batch(),
                ModelHold::Until(stage) => need.until(self.inlets[usize::from(stage)]),
            }
        })
    }
}
