//! Builds an engine flow from a flow file: every stage becomes an op on [`Record`]s, with the edges, needs and policies
//! of the file.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use millstream_flow::{
    AfterFailure, Batch, BuildError, Cx, DeadLetter, Failure, Flow, FlowBuilder, HoldAndAsk, Inlet, Need, NeedsCycle,
    Rate, Resource, Retry, StageBuilder, select,
};

use crate::descriptors;
use crate::file::model::{self, FlowFile, Hold, NeedSpec, OpSpec, ResourceKind, StageSpec};
use crate::file::{FlowError, Problem, Refusal};
use crate::machine::Machine;
use crate::ops::{self, Gathered, Op, RunEnd, Surroundings};
use crate::printer::Printer;
use crate::record::Record;
use crate::stand_ins::StandIns;

/// The pause of a unit in a run that has halted. The run ends before the pause does.
const LONG: Duration = Duration::from_secs(3600);

/// The maximum number of bytes of output that wait to be printed. While there are more, no program starts. A flow with
/// less memory has a lower maximum.
const MAX_UNPRINTED: u64 = 64 << 20;

/// An engine flow, with the ops that its stages run.
pub struct Wired {
    /// The flow, whose units are records.
    pub flow: Flow<Record, Record>,
    /// The ops, which are finished when the run is over.
    pub ops: Ops,
    /// Prints the outputs of units.
    pub printer: Arc<Printer>,
    /// Decides whether programs may start.
    pub machine: Arc<Machine>,
    /// The file descriptors for the flow's units.
    pub descriptors: descriptors::Share,
}

/// The ops of a flow's stages. The ops outlive the flow, because some ops have work to finish after the last unit.
pub struct Ops {
    stages: Vec<(String, Arc<dyn Op>)>,
}

impl fmt::Debug for Wired {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wired").field("ops", &self.ops).finish_non_exhaustive()
    }
}

impl fmt::Debug for Ops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.stages.iter().map(|(stage, _)| stage)).finish()
    }
}

impl Ops {
    /// Finishes every op, in the order of the stages. Returns the fate of each stage's gathered file, or the reason why
    /// the file could not be given its name.
    pub fn finish(&self, end: &RunEnd<'_>) -> Vec<(String, Result<Gathered, Failure>)> {
        let finished = self.stages.iter().map(|(stage, op)| Some((stage.clone(), op.finish(end).transpose()?)));
        finished.flatten().collect()
    }
}

/// Called with each unit that is retired with a result.
pub type OnRetire = Box<dyn Fn(Record) + Send + Sync>;

/// Builds the engine flow that `file` describes. `on_dead_letter` is called with each unit that has failed for good. No
/// op starts after `halted` is set.
///
/// # Errors
/// An op cannot run here, or the engine's static checks refuse the flow. The errors show the position in the flow file.
pub fn wire(
    file: &FlowFile,
    on_dead_letter: impl Fn(DeadLetter) + Send + Sync + 'static,
    on_retire: Option<OnRetire>,
    halted: Arc<AtomicBool>,
) -> Result<Wired, FlowError> {
    wire_with(file, on_dead_letter, on_retire, halted, None)
}

/// Builds the engine flow of a case of `millstream test`. In a case, `stand_ins` replace programs and servers, and no
/// op accesses files outside the folder of the case.
///
/// # Errors
/// As [`wire`].
pub fn wire_case(
    file: &FlowFile,
    on_dead_letter: impl Fn(DeadLetter) + Send + Sync + 'static,
    on_retire: OnRetire,
    stand_ins: &StandIns,
) -> Result<Wired, FlowError> {
    wire_with(file, on_dead_letter, Some(on_retire), Arc::default(), Some(stand_ins))
}

fn wire_with(
    file: &FlowFile,
    on_dead_letter: impl Fn(DeadLetter) + Send + Sync + 'static,
    on_retire: Option<OnRetire>,
    halted: Arc<AtomicBool>,
    stand_ins: Option<&StandIns>,
) -> Result<Wired, FlowError> {
    let refuse = |problems| FlowError::from(Refusal::new(&file.path, file.text.clone(), problems));
    let printer = Arc::new(Printer::new(file.memory.map_or(MAX_UNPRINTED, |memory| memory.min(MAX_UNPRINTED))));
    let machine = Arc::new(Machine::new(file.machine));
    let ops = build_ops(file, &printer, &machine, stand_ins).map_err(refuse)?;
    let mut builder = Flow::builder::<Record>(file.name.clone());
    builder.inflight(file.inflight).on_dead_letter(on_dead_letter);
    if let Some(on_retire) = on_retire {
        builder.on_retire(on_retire);
    }
    if let Some(bytes) = file.memory {
        builder.memory(bytes);
    }
    if let Some(threads) = file.workers {
        builder.workers(threads);
    }
    let resources: Vec<Resource> = file.resources.iter().map(|spec| declare(&mut builder, spec)).collect();
    let threads = file.workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let blocking: Vec<bool> = file.stages.iter().zip(&ops.stages).map(|(spec, (_, op))| blocks(spec, &**op)).collect();
    let share = descriptors::share(file, threads, &blocking);
    let descriptors = share.to_share().map(|most| builder.tokens(descriptors::NAME, most));
    let inlets: Vec<Inlet<Record>> = file.stages.iter().map(|stage| builder.inlet(stage.name.clone())).collect();
    let mut wiring = Wiring { file, builder, threads, blocking, resources, share, descriptors, inlets, halted };
    for (index, (_, op)) in ops.stages.iter().enumerate() {
        wiring.define(index, Arc::clone(op));
    }
    let Wiring { builder, inlets, .. } = wiring;
    let flow = builder.build(inlets[0]).map_err(|error| refuse(vec![build_problem(file, &error)]))?;
    Ok(Wired { flow, ops, printer, machine, descriptors: share })
}

/// Builds the stages' ops.
///
/// # Errors
/// The reasons for all ops that cannot run.
fn build_ops(
    file: &FlowFile,
    printer: &Arc<Printer>,
    machine: &Arc<Machine>,
    stand_ins: Option<&StandIns>,
) -> Result<Ops, Vec<Problem>> {
    let mut stages = Vec::new();
    let mut problems = Vec::new();
    for stage in &file.stages {
        let retries = stage.retry.as_ref().map_or(0, |retry| retry.times);
        let around = Surroundings {
            most_in_memory: file.most_in_memory(),
            open_lists: descriptors::open_lists(file),
            attempts: retries.saturating_add(1),
            fibers: stage.fibers.is_some(),
            printer,
            machine,
            stand_ins,
        };
        match ops::build(&stage.op, &around) {
            Ok(op) => stages.push((stage.name.clone(), Arc::from(op))),
            Err(error) => {
                let place = stage.exec_span.clone().unwrap_or_else(|| stage.op_span.clone());
                let problem = Problem::new(error.message).at(place, "this stage cannot run");
                problems.push(problem.help(error.help));
            }
        }
    }
    if problems.is_empty() { Ok(Ops { stages }) } else { Err(problems) }
}

/// Whether a stage has threads of its own.
fn blocks(spec: &StageSpec, op: &dyn Op) -> bool {
    spec.fibers.is_some() || spec.blocking.unwrap_or_else(|| op.blocking(!spec.needs.is_empty()))
}

fn declare(builder: &mut FlowBuilder<Record>, spec: &model::ResourceSpec) -> Resource {
    let rate = |rate: model::RateSpec| Rate::per_second(rate.per_second).burst(rate.burst);
    let resource = match spec.kind {
        ResourceKind::Tokens(tokens) => builder.tokens(&spec.name, tokens),
        ResourceKind::KeyedTokens(tokens) => builder.keyed_tokens(&spec.name, tokens),
        ResourceKind::Rate(spec_rate) => builder.rate(&spec.name, rate(spec_rate)),
        ResourceKind::KeyedRate(spec_rate) => builder.keyed_rate(&spec.name, rate(spec_rate)),
    };
    if let Some(keys) = spec.max_keys {
        builder.max_keys(resource, usize::try_from(keys).unwrap_or(usize::MAX));
    }
    resource
}

/// The state of the construction. All stages and resources have been declared; the stages are then defined one after
/// another.
struct Wiring<'a> {
    file: &'a FlowFile,
    builder: FlowBuilder<Record>,
    /// The number of shared workers.
    threads: usize,
    /// For each stage, whether it has threads of its own.
    blocking: Vec<bool>,
    resources: Vec<Resource>,
    share: descriptors::Share,
    /// The file descriptors as a resource, if the process may run out of them.
    descriptors: Option<Resource>,
    inlets: Vec<Inlet<Record>>,
    /// Whether the run has halted. Relaxed: the flag publishes no other data.
    halted: Arc<AtomicBool>,
}

impl Wiring<'_> {
    fn inlet(&self, name: &str) -> Inlet<Record> {
        let index = self.file.stages.iter().position(|stage| stage.name == name);
        self.inlets[index.expect("the parser has resolved every stage's name")]
    }

    fn define(&mut self, index: usize, op: Arc<dyn Op>) {
        let spec = &self.file.stages[index];
        let mut needs: Vec<Need<Record>> = spec.needs.iter().map(|need| self.need(need)).collect();
        if let (Some(resource), amount @ 1..) = (self.descriptors, self.share.needed(&spec.op)) {
            needs.push(Need::tokens(resource, amount));
        }
        let next = spec.next.as_deref().map(|name| self.inlet(name));
        let otherwise = spec.otherwise.as_deref().map(|name| self.inlet(name));
        let retire = self.builder.retire();
        let idempotent = spec.idempotent.unwrap_or_else(|| op.idempotent());
        let (blocking, threads) = (self.blocking[index], self.threads);

        let halted = Arc::clone(&self.halted);
        let may_run = move |record: &Record| match &record.rare.fault {
            _ if halted.load(Ordering::Relaxed) => Err(Failure::requeue("the run has halted").not_before(LONG)),
            Some(fault) => Err(Failure::permanent(fault.clone())),
            None => Ok(()),
        };
        let policies = Policies { spec, needs, idempotent, blocking, threads };
        let exit = |inlet: Option<Inlet<Record>>| inlet.map_or_else(|| retire.into(), Into::into);
        if let OpSpec::Split(split) = &spec.op {
            let copies: Option<Vec<_>> =
                split.copies().map(|stages| stages.iter().map(|stage| self.inlet(stage).into()).collect());
            let stage = self.builder.split(self.inlets[index], move |record: &mut Record, cx: &mut Cx<'_>| {
                may_run(record)?;
                op.open(record, cx)
            });
            let stage = policies.apply(stage);
            return match (copies, next) {
                (Some(copies), _) => stage.to(select(|copy: &Record| copy.part() as usize - 1, copies)),
                (None, Some(next)) => stage.to(next),
                (None, None) => stage.to(retire),
            };
        }
        if let OpSpec::Gather(gather) = &spec.op {
            let stage = policies.apply(self.builder.gather(self.inlets[index], ops::gather::rules(gather, may_run)));
            return match next {
                Some(next) => stage.to(next),
                None => stage.to(retire),
            };
        }
        let stage = self.builder.update(self.inlets[index], move |record: &mut Record, cx: &mut Cx<'_>| {
            may_run(record)?;
            op.run(record, cx)
        });
        let stage = policies.apply(stage);
        match (&spec.op, next) {
            (op, _) if op.has_else() => {
                stage.to(select(|record: &Record| usize::from(record.filtered), [exit(next), exit(otherwise)]));
            }
            (_, Some(next)) => stage.to(next),
            (_, None) => stage.to(retire),
        }
    }

    fn need(&self, spec: &NeedSpec) -> Need<Record> {
        let index = self.file.resources.iter().position(|resource| resource.name == spec.resource);
        let index = index.expect("the parser has resolved every resource's name");
        let mut need = match spec.key.clone() {
            // All units without a value for the key, such as units whose lines are not URLs, share the empty key. The
            // stage's op later reports the problem.
            Some(key) => Need::keyed(self.resources[index], move |record: &Record| {
                String::from_utf8_lossy(&key.render(record).unwrap_or_default()).into_owned()
            })
            .amount(spec.amount),
            None => Need::tokens(self.resources[index], spec.amount),
        };
        if let Some(until) = &spec.until {
            need = need.until(self.inlet(until));
        }
        if self.file.resources[index].hold == Hold::Batch {
            need = need.per_batch();
        }
        need
    }
}

/// The settings of a stage except its op and its exits.
struct Policies<'a> {
    spec: &'a StageSpec,
    needs: Vec<Need<Record>>,
    idempotent: bool,
    blocking: bool,
    /// The number of shared workers.
    threads: usize,
}

impl Policies<'_> {
    fn apply<'b, B>(self, stage: StageBuilder<'b, Record, Record, B>) -> StageBuilder<'b, Record, Record, B> {
        let Self { spec, needs, idempotent, blocking, threads } = self;
        let mut stage = stage.bytes(Record::bytes);
        for need in needs {
            stage = stage.need(need);
        }
        if let Some(retry) = &spec.retry {
            stage = stage.retry(Retry::times(retry.times).backoff(retry.backoff.clone()));
        }
        if let Some(limit) = spec.timeout {
            stage = stage.timeout(limit);
        }
        if idempotent {
            stage = stage.idempotent();
        }
        if blocking {
            stage = stage.blocking();
        }
        if let Some(fibers) = &spec.fibers {
            stage = stage.fibers(fibers.most).stack(fibers.stack_bytes);
        } else if let Some((floor, ceiling)) = spec.workers {
            let floor = floor.resolve(threads);
            // `"4..cores"` means at least four workers, even on a machine with fewer cores.
            stage = stage.workers(floor..=ceiling.resolve(threads).max(floor));
        } else if matches!(spec.op, OpSpec::Unique { .. }) {
            // The op lets the first unit with each text pass, so the order of the units matters, and a second worker
            // could change this order.
            stage = stage.workers(0..=1);
        }
        if let Some(batch) = spec.batch {
            stage = stage.batch(Batch::of(batch.size).wait(batch.wait));
        }
        if let Some(units) = spec.queue {
            stage = stage.queue(units);
        }
        stage.after_failure(match spec.after_failure {
            model::AfterFailure::DeadLetter => AfterFailure::DeadLetter,
            model::AfterFailure::Skip => AfterFailure::Skip,
            model::AfterFailure::Stop => AfterFailure::StopFlow,
        })
    }
}

/// A refusal by the engine's checks, with positions in the flow file.
fn build_problem(file: &FlowFile, error: &BuildError) -> Problem {
    let problem = Problem::new(error.to_string());
    match error {
        BuildError::NeedsCycle(cycle) => cycle_problem(file, cycle),
        BuildError::NeedTooLarge { stage, resource, .. } => {
            problem.at(need_span(file, stage, resource), "too much").help("ask for less, or declare more")
        }
        BuildError::UntilUnreachable { stage, resource, .. }
        | BuildError::HeldThroughSplit { stage, resource, .. }
        | BuildError::HeldThroughGather { stage, resource, .. } => {
            problem.at(need_span(file, stage, resource), "this need")
        }
        BuildError::QueueAfterSplit { next, .. } => problem.at(stage_span(file, next), "this stage"),
        BuildError::Workers { stage, .. }
        | BuildError::Stack { stage, .. }
        | BuildError::BatchSize { stage, .. }
        | BuildError::Unreachable { stage, .. }
        | BuildError::QueueAtSplit { stage }
        | BuildError::NeverRetires { stage } => problem.at(stage_span(file, stage), "this stage"),
        BuildError::DuplicateResource { resource } => match file.resources.iter().find(|spec| spec.name == *resource) {
            Some(spec) => problem.at(spec.span.clone(), "this resource"),
            None => problem,
        },
        _ => problem,
    }
}

/// The error about a cycle of needs, with a caret at every stage in the cycle.
fn cycle_problem(file: &FlowFile, cycle: &NeedsCycle) -> Problem {
    let mut problem = Problem::new("a cycle of needs: units could wait for one another forever");
    for HoldAndAsk { holds, asks, stage, .. } in &cycle.0 {
        let label = format!("asks for {} while holding {}", quoted(asks), quoted(holds));
        problem = problem.at(need_span(file, stage, asks), label);
    }
    let mut resources: Vec<&str> = cycle.0.iter().map(|step| step.holds.as_str()).collect();
    resources.sort_unstable();
    resources.dedup();
    let queues: Vec<String> =
        resources.iter().filter_map(|name| queue_of(name)).map(|stage| format!("`{stage}`")).collect();
    problem.help(if !queues.is_empty() {
        format!(
            "a place in a bounded queue is taken in the stage before it and held until the unit leaves the queue's stage: leave \
             `queue` out of {}",
            queues.join(" or ")
        )
    } else if let [one] = resources.as_slice() {
        format!("a unit asks for more of `{one}` while it still holds some: let it end earlier what `until` holds")
    } else {
        let names: Vec<String> = resources.iter().map(|name| quoted(name)).collect();
        format!(
            "take {} in the same order everywhere, or together in one stage, or give one back (leave `until` out) before asking \
             for the other",
            names.join(" and ")
        )
    })
}

/// A resource as an error names it.
fn quoted(resource: &str) -> String {
    queue_of(resource).map_or_else(|| format!("`{resource}`"), |stage| format!("a place in the queue of `{stage}`"))
}

/// The stage whose bounded queue has this name in the engine; `None` if the resource is not a queue.
fn queue_of(resource: &str) -> Option<&str> {
    resource.strip_prefix("queue of ")
}

fn stage_spec<'a>(file: &'a FlowFile, name: &str) -> Option<&'a StageSpec> {
    file.stages.iter().find(|stage| stage.name == name)
}

fn stage_span(file: &FlowFile, name: &str) -> Range<usize> {
    stage_spec(file, name).map_or(0..0, |stage| stage.span.clone())
}

/// The position at which `stage` needs `resource`. The need for a slot in the next queue is not in the flow file; its
/// position is that of the stage.
fn need_span(file: &FlowFile, stage: &str, resource: &str) -> Range<usize> {
    let need = stage_spec(file, stage).and_then(|spec| spec.needs.iter().find(|need| need.resource == resource));
    need.map_or_else(|| stage_span(file, stage), |need| need.span.clone())
}
