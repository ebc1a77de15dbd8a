//! The plan as one JSON object, for programs: the same facts as the page, under the names that the report and the
//! snapshot use for them. Times are in nanoseconds. `null` means no limit; in place of a stage, it means the flow's
//! end.

use std::collections::BTreeMap;
use std::time::Duration;

use millstream_flow::{HoldAndAsk, Plan, PlanStage};
use millstream_runner::file::model::{AfterFailure, FlowFile, Hold, NeedSpec, ResourceSpec, StageSpec};
use serde::Serialize;

use super::joins::{self, Gathering};
use super::most_workers;

/// The plan of `file` as pretty-printed JSON with a newline at its end.
pub(super) fn describe(file: &FlowFile, plan: &Plan) -> String {
    let page = Page {
        flow: &plan.flow,
        file: file.path.to_string_lossy().into_owned(),
        source: super::source(file),
        group: file.group,
        uses_input: file.input_span.is_some(),
        params: &file.params,
        inflight: plan.inflight,
        memory: Some(plan.memory).filter(|bytes| *bytes != u64::MAX),
        workers: plan.workers,
        halt: file.halt.map(|halt| halt.to_string()),
        machine: Machine { load: file.machine.load, memory_free: file.machine.memory_free },
        stages: file.stages.iter().zip(&plan.stages).map(|(spec, stage)| Stage::of(spec, stage, plan)).collect(),
        // The slots of a bounded queue are resources of the engine. Here they appear as the `queue_bound` of their
        // stage, and as `queue of STAGE` in `order` and `pairs`.
        resources: file.resources.iter().filter_map(|spec| Resource::of(spec, plan)).collect(),
        joins: joins::gatherings(file, plan),
        order: &plan.order,
        pairs: plan.pairs.iter().map(Pair::of).collect(),
        warnings: super::told(file, plan),
    };
    serde_json::to_string_pretty(&page).expect("a plan has only string keys and plain values") + "\n"
}

#[derive(Serialize)]
struct Page<'a> {
    flow: &'a str,
    file: String,
    /// The source in words, as the page shows it; its keys are in the flow file.
    source: String,
    /// The number of the source's items in one unit.
    group: usize,
    /// Whether `{input}` occurs in the file, so that a run needs an INPUT.
    uses_input: bool,
    params: &'a BTreeMap<String, String>,
    inflight: u64,
    memory: Option<u64>,
    workers: u64,
    /// The condition under which the run halts, as a flow file writes it; `null` if there is none.
    halt: Option<String>,
    machine: Machine,
    stages: Vec<Stage<'a>>,
    resources: Vec<Resource<'a>>,
    joins: Vec<Gathering<'a>>,
    order: &'a [String],
    pairs: Vec<Pair>,
    warnings: Vec<String>,
}

/// The limits at which no program starts.
#[derive(Serialize)]
struct Machine {
    load: Option<u64>,
    memory_free: Option<u64>,
}

#[derive(Serialize)]
struct Stage<'a> {
    name: &'a str,
    op: &'static str,
    queue_bound: u64,
    workers_min: u64,
    workers_max: u64,
    /// Whether the stage has threads of its own.
    blocking: bool,
    /// The number of units that a worker takes at once; `null` if the engine derives the number from measured times.
    batch_size: Option<usize>,
    batch_wait_ns: u64,
    idempotent: bool,
    timeout_ns: Option<u64>,
    retries: u32,
    /// The first pause before a retry and the longest; `null` if the stage does not retry.
    backoff_ns: Option<[u64; 2]>,
    after_failure: &'static str,
    needs: Vec<Need<'a>>,
    next: Option<&'a str>,
    /// The stage at the second exit of a `filter` or `unique`; absent if the op has no second exit.
    #[serde(rename = "else", skip_serializing_if = "Option::is_none")]
    otherwise: Option<Option<&'a str>>,
    /// The stages that get a copy; absent if the stage makes no copies.
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<Vec<&'a str>>,
}

impl<'a> Stage<'a> {
    fn of(spec: &'a StageSpec, stage: &PlanStage, plan: &Plan) -> Self {
        Self {
            name: &spec.name,
            op: spec.op.name(),
            queue_bound: stage.queue_bound,
            workers_min: stage.workers_min,
            workers_max: most_workers(stage, plan),
            blocking: stage.blocking,
            batch_size: stage.batch.size(),
            batch_wait_ns: nanoseconds(stage.batch.longest_wait()),
            idempotent: stage.idempotent,
            timeout_ns: stage.timeout.map(nanoseconds),
            retries: stage.retries,
            backoff_ns: spec.retry.as_ref().map(|retry| [retry.backoff.start, retry.backoff.end].map(nanoseconds)),
            after_failure: match spec.after_failure {
                AfterFailure::DeadLetter => "dead-letter",
                AfterFailure::Skip => "skip",
                AfterFailure::Stop => "stop",
            },
            needs: spec.needs.iter().map(Need::of).collect(),
            next: spec.next.as_deref(),
            otherwise: spec.op.has_else().then_some(spec.otherwise.as_deref()),
            to: spec.op.copies().map(|stages| stages.iter().map(|stage| &**stage).collect()),
        }
    }
}

#[derive(Serialize)]
struct Need<'a> {
    resource: &'a str,
    amount: u64,
    /// The key's template; `null` if the resource has no keys.
    key: Option<String>,
    /// The unit holds the amount until it leaves this later stage; `null` means until it leaves the stage of the need.
    until: Option<&'a str>,
}

impl<'a> Need<'a> {
    fn of(need: &'a NeedSpec) -> Self {
        Self {
            resource: &need.resource,
            amount: need.amount,
            key: need.key.as_ref().map(ToString::to_string),
            until: need.until.as_deref(),
        }
    }
}

#[derive(Serialize)]
struct Resource<'a> {
    name: &'a str,
    kind: &'a str,
    capacity: u64,
    rate_per_s: Option<f64>,
    max_keys: Option<u64>,
    /// `unit` or `batch`.
    held_by: &'static str,
}

impl<'a> Resource<'a> {
    fn of(spec: &'a ResourceSpec, plan: &'a Plan) -> Option<Self> {
        let resource = plan.resources.iter().find(|resource| resource.name == spec.name)?;
        Some(Self {
            name: &resource.name,
            kind: &resource.kind,
            capacity: resource.capacity,
            rate_per_s: resource.rate_per_s,
            max_keys: resource.max_keys,
            held_by: match spec.hold {
                Hold::Unit => "unit",
                Hold::Batch => "batch",
            },
        })
    }
}

/// A unit at `stage` holds one resource and asks for another.
#[derive(Serialize)]
struct Pair {
    stage: String,
    holds: String,
    asks: String,
}

impl Pair {
    fn of(pair: HoldAndAsk) -> Self {
        Self { stage: pair.stage, holds: pair.holds, asks: pair.asks }
    }
}

/// The nanoseconds of `time`; a time of more than 584 years exceeds 64 bits and becomes the largest number of 64 bits.
fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
