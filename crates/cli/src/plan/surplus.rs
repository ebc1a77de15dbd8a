//! Finds resources with more tokens than the workers can use, and says what to write instead.

use millstream_command::screen::text;
use millstream_flow::{Plan, PlanStage};
use millstream_runner::file::model::{FlowFile, MAX_WORKERS, NeedSpec, ResourceKind, ResourceSpec, StageSpec};

/// A sentence for each resource whose tokens can never all be in use, because too few units that need it run at once.
pub(super) fn warnings(file: &FlowFile, plan: &Plan) -> Vec<String> {
    file.resources.iter().filter_map(|resource| warning(file, plan, resource)).collect()
}

/// A stage, with its need for the resource in question.
struct Asks<'a> {
    spec: &'a StageSpec,
    stage: &'a PlanStage,
    need: &'a NeedSpec,
}

impl Asks<'_> {
    /// The maximum number of units that the stage's workers run at once.
    fn runs(&self, plan: &Plan) -> u64 {
        let beside = if self.stage.blocking { u64::MAX } else { self.stage.workers_min + plan.workers };
        self.stage.workers_max.min(beside)
    }
}

fn warning(file: &FlowFile, plan: &Plan, resource: &ResourceSpec) -> Option<String> {
    let (ResourceKind::Tokens(capacity) | ResourceKind::KeyedTokens(capacity)) = resource.kind else { return None };
    let stages = file.stages.iter().zip(&plan.stages);
    let asks: Vec<Asks<'_>> = stages
        .flat_map(|(spec, stage)| spec.needs.iter().map(move |need| Asks { spec, stage, need }))
        .filter(|asks| asks.need.resource == resource.name)
        .collect();
    // There is no warning if a unit may hold the tokens until a later stage: units that no worker runs can then hold
    // tokens as well.
    let first = asks.first().filter(|_| asks.iter().all(|asks| asks.need.until.is_none()))?;
    let in_flight = plan.inflight.saturating_mul(asks.iter().map(|asks| asks.need.amount).max()?);
    let name = format!("`{}` has {}", resource.name, text::counted(capacity, "token"));
    let name = if resource.kind.is_keyed() { format!("{name} for each key") } else { name };
    if in_flight < capacity {
        let units = text::counted(plan.inflight, "unit");
        let wanted = capacity.div_ceil(first.need.amount);
        return Some(format!(
            "{name}, and at most {units} are in flight: write `inflight = {wanted}`, or declare fewer."
        ));
    }
    let usable = usable(&asks, plan);
    if usable >= capacity {
        return None;
    }
    let names: Vec<String> = asks.iter().map(|asks| format!("`{}`", text::printable(&asks.spec.name))).collect();
    let workers = match first.stage.blocking {
        _ if first.stage.fibers => text::counted(first.runs(plan), "fiber"),
        true => format!("{} of its own", text::counted(first.runs(plan), "thread")),
        false => format!("the flow's {}", text::counted(plan.workers, "worker")),
    };
    let runs = if names.len() == 1 { "runs" } else { "run" };
    let most = text::count(usable);
    let what =
        format!("{name}, and at most {most} can be in use at once: {} {runs} on {workers}.", names.join(" and "));
    Some(format!("{what} {}", advice(first, capacity)))
}

/// The maximum number of tokens that running units can hold at once.
fn usable(asks: &[Asks<'_>], plan: &Plan) -> u64 {
    let (own, shared): (Vec<&Asks<'_>>, Vec<&Asks<'_>>) = asks.iter().partition(|asks| asks.stage.blocking);
    let tokens = |asks: &&Asks<'_>| asks.runs(plan).saturating_mul(asks.need.amount);
    // These stages share the flow's workers, and each stage gets its minimum of workers in addition.
    let threads = plan.workers + shared.iter().map(|asks| asks.stage.workers_min).sum::<u64>();
    let most = shared.iter().map(|asks| asks.need.amount).max().unwrap_or(0);
    let in_shared = shared.iter().map(tokens).fold(0, u64::saturating_add).min(threads.saturating_mul(most));
    own.iter().map(tokens).fold(in_shared, u64::saturating_add)
}

/// The change that lets the stage use the whole resource.
fn advice(asks: &Asks<'_>, capacity: u64) -> String {
    let name = text::printable(&asks.spec.name);
    let wanted = capacity.div_ceil(asks.need.amount);
    if asks.stage.fibers {
        return format!("Write `fibers = {wanted}` in `{name}`, or declare fewer.");
    }
    if wanted > MAX_WORKERS as u64 {
        return format!("A flow has at most {MAX_WORKERS} workers: declare fewer tokens.");
    }
    match (asks.stage.blocking, asks.spec.workers.is_some()) {
        (true, true) => format!("Write `workers = {wanted}` in `{name}`, leave `workers` out, or declare fewer."),
        (true, false) => format!("Write `workers = {wanted}` in `{name}`, or declare fewer."),
        (false, true) => format!("Write `blocking = true` and `workers = {wanted}` in `{name}`, or declare fewer."),
        (false, false) => format!(
            "Write `blocking = true` in `{name}` if it waits more than it computes, `workers = {wanted}` in the flow, or declare fewer."
        ),
    }
}
