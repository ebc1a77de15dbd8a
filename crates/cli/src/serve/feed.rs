//! The states of a run that the page shows. At most two states a second are computed, whatever the number of clients.
//! The frozen page contains the last state.
//!
//! The main loop [passes](Feed::note) its snapshots to the feed. A state is a list of members, and each member is
//! rendered as JSON only once. A client receives the members that have changed since the last state that was sent to
//! it. A slow client misses intermediate states: the feed stores only the newest state.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use millstream_flow::{Phase, Plan, Snapshot, StageSnapshot};
use millstream_runner::file::FlowFile;
use serde::Serialize;
use serde_json::{Value, json};

use super::history::History;
use crate::causes::{Causes, Group, Groups, Newest};
use crate::retry::live::{Facts as Retry, Readmission};
use crate::screen::meter::{Meter, Pace};
use crate::screen::throughput::Sample;
use crate::steer::facts::{Audit, Steered};

/// The minimum time between two states.
const EVERY_NS: u64 = 500_000_000;
/// The time between two samples of the lanes, which show each stage's waiting units and rate.
const LANE_EVERY_NS: u64 = 2_000_000_000;
/// The maximum number of samples of the lanes, which thus cover five minutes.
const MAX_LANES: usize = 150;
/// The maximum number of changes shown. The newest changes are chosen.
const MAX_CHANGES: usize = 20;
/// The maximum number of failure causes shown. The most frequent causes are chosen.
const MAX_CAUSES: usize = 20;

/// The maximum length of a unit's text in the list of causes, in characters.
const MAX_EXAMPLE: usize = 120;

/// Members of a state: name and JSON.
pub(super) type State = Vec<(&'static str, Arc<str>)>;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Feed {
    /// The constant facts about the flow, as JSON without the outer braces.
    flow: String,
    /// Whether there is a page that shows the states. Without a page, only the last state is computed.
    is_live: bool,
    causes: Arc<Causes>,
    audit: Audit,
    /// Runs dead letters again; `None` if there is no live run.
    readmission: Option<Readmission>,
    /// The minimum time between two states.
    every_ns: u64,
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Debug)]
struct Inner {
    state: State,
    /// The number of states so far.
    version: u64,
    over: bool,
    meter: Meter,
    next_ns: u64,
    /// Each sample consists of the time, the waiting units of each stage, and the rate of each stage.
    lanes: VecDeque<(f64, Vec<u64>, Vec<f64>)>,
    history: History,
}

/// The parts of a run that are not in its flow.
#[derive(Debug)]
pub(crate) struct Beside {
    pub(crate) causes: Arc<Causes>,
    pub(crate) audit: Audit,
    pub(crate) readmission: Readmission,
}

/// A state that a client has not seen.
pub(super) struct News {
    pub(super) state: State,
    pub(super) version: u64,
    /// Whether this is the last state.
    pub(super) is_last: bool,
}

/// The names of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names<'a> {
    /// The name of the run.
    pub(crate) run: &'a str,
    /// The argument by which a command line names the run, quoted for a shell; `None` if no command can reach the run.
    pub(crate) reach: Option<&'a str>,
}

impl Feed {
    /// A feed of the run with these names. `begin` is the state of the flow before the start.
    pub(crate) fn new(names: Names<'_>, file: &FlowFile, begin: &Snapshot, is_live: bool, beside: Beside) -> Self {
        let place = |name: &String| file.stages.iter().position(|stage| stage.name == *name);
        let stages = file.stages.iter().map(|stage| {
            let otherwise = stage.otherwise.as_ref().filter(|_| stage.op.has_else());
            let mut next: Vec<usize> = stage.next.iter().chain(otherwise).filter_map(place).collect();
            next.dedup();
            json!({ "name": stage.name, "next": next })
        });
        let flow = facts(&file.name, names, &stages.collect::<Vec<_>>(), begin);
        let Beside { causes, audit, readmission } = beside;
        Self::of(flow, begin, is_live, EVERY_NS, causes, audit, Some(readmission))
    }

    /// A feed for the recorded snapshots of a finished run. It makes a state of every snapshot, because a short run has
    /// only a few.
    pub(crate) fn recorded(plan: &Plan, begin: &Snapshot) -> Self {
        let place = |name: &String| plan.stages.iter().position(|stage| stage.name == *name);
        let stages = plan.stages.iter().map(|stage| {
            let next: Vec<usize> = stage.next.iter().filter_map(place).collect();
            json!({ "name": stage.name, "next": next })
        });
        let flow = facts(&plan.flow, Names { run: &plan.flow, reach: None }, &stages.collect::<Vec<_>>(), begin);
        Self::of(flow, begin, false, 0, Arc::default(), Audit::begin(), None)
    }

    fn of(
        flow: String,
        begin: &Snapshot,
        is_live: bool,
        every_ns: u64,
        causes: Arc<Causes>,
        audit: Audit,
        readmission: Option<Readmission>,
    ) -> Self {
        let inner = Mutex::new(Inner {
            state: State::new(),
            version: 0,
            over: false,
            meter: Meter::default(),
            next_ns: 0,
            lanes: VecDeque::new(),
            history: History::new(begin),
        });
        Self { flow, is_live, causes, audit, readmission, every_ns, inner, changed: Condvar::new() }
    }

    /// Adds a snapshot from the main loop. `total` is the number of units that the run will admit, if that number is
    /// known.
    pub(crate) fn note(&self, now: &Snapshot, total: Option<u64>) {
        let mut inner = self.inner();
        if now.wall_ns >= inner.next_ns {
            inner.next_ns = now.wall_ns + self.every_ns;
            inner.history.note(now);
            let pace = inner.meter.read(now, total);
            if self.is_live {
                self.make(&mut inner, now, &pace);
            }
        }
    }

    /// Adds the last snapshot.
    pub(crate) fn end(&self, now: &Snapshot) {
        let mut inner = self.inner();
        inner.history.end(now);
        let pace = inner.meter.read(now, Some(now.admitted));
        self.make(&mut inner, now, &pace);
        inner.over = true;
        self.changed.notify_all();
    }

    /// The facts about the flow, and its lanes so far, as JSON.
    pub(super) fn flow(&self, steerable: bool) -> String {
        let lanes = render(&self.inner().lanes);
        format!("{{{},\"steerable\":{steerable},\"lanes\":{lanes}}}", self.flow)
    }

    /// The facts and the last state, with the lanes of the whole run, as members of a JSON object.
    pub(crate) fn frozen(&self) -> String {
        let inner = self.inner();
        let state: Vec<String> = inner.state.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        let (flow, lanes) = (&self.flow, render(&inner.history.lanes()));
        format!("\"flow\":{{{flow},\"steerable\":false,\"lanes\":{lanes}}},\"state\":{{{}}}", state.join(","))
    }

    /// Waits for a state newer than state number `seen`. Returns `None` if `time` passes first.
    pub(super) fn after(&self, seen: u64, time: Duration) -> Option<News> {
        let waits = |inner: &mut Inner| inner.version <= seen && !inner.over;
        let inner = self.inner();
        let (inner, _) = self.changed.wait_timeout_while(inner, time, waits).unwrap_or_else(PoisonError::into_inner);
        let Inner { state, version, over, .. } = &*inner;
        (*version > seen || *over).then(|| News { state: state.clone(), version: *version, is_last: *over })
    }

    fn make(&self, inner: &mut Inner, now: &Snapshot, pace: &Pace) {
        let due = inner.lanes.back().is_none_or(|(s, ..)| seconds(now.wall_ns) >= s + seconds(LANE_EVERY_NS));
        if due {
            let waiting = now.stages.iter().map(|stage| stage.waiting).collect();
            let rates = pace.stages_per_s.iter().map(|rate| (rate * 10.0).round() / 10.0).collect();
            inner.lanes.push_back((seconds(now.wall_ns), waiting, rates));
            if inner.lanes.len() > MAX_LANES {
                inner.lanes.pop_front();
            }
        }
        inner.state = state(&Parts {
            now,
            pace,
            history: &inner.history.over_time(),
            causes: &self.causes.groups(),
            letters: &self.causes.newest(),
            retry: &self.readmission.as_ref().map(|again| again.facts(now.phase)).unwrap_or_default(),
            steered: &self.audit.steered(),
        });
        inner.version += 1;
        self.changed.notify_all();
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The data from the report of a finished run. It is used if only the report of the run exists.
pub(crate) struct Reported<'a> {
    /// The run's last state, with the names of the stages.
    pub(crate) now: &'a Snapshot,
    /// The run's name.
    pub(crate) run: &'a str,
    pub(crate) samples: &'a [Sample],
    pub(crate) causes: &'a Groups,
    pub(crate) steered: &'a Steered,
    pub(crate) retry: Retry,
}

/// The facts and the last state of a run, as far as the report contains them. The form is that of [`Feed::frozen`],
/// without the edges between the stages and without the lanes.
pub(crate) fn reported(run: &Reported<'_>) -> String {
    let stages: Vec<Value> = run.now.stages.iter().map(|stage| json!({ "name": stage.name })).collect();
    let flow = facts(&run.now.flow, Names { run: run.run, reach: None }, &stages, run.now);
    let none = Sample::default();
    let samples = [&none].into_iter().chain(run.samples);
    let moments: Vec<_> =
        samples.map(|sample| json!([sample.at_s, sample.retired, sample.dead_lettered, []])).collect();
    let state = state(&Parts {
        now: run.now,
        pace: &Meter::default().read(run.now, Some(run.now.admitted)),
        history: &json!({ "names": [], "moments": moments }),
        causes: run.causes,
        letters: &[],
        retry: &run.retry,
        steered: run.steered,
    });
    let state: Vec<String> = state.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("\"flow\":{{{flow},\"steerable\":false,\"lanes\":[]}},\"state\":{{{}}}", state.join(","))
}

/// The parts of a state.
struct Parts<'a> {
    now: &'a Snapshot,
    pace: &'a Pace,
    history: &'a Value,
    causes: &'a Groups,
    letters: &'a [Newest],
    retry: &'a Retry,
    steered: &'a Steered,
}

fn state(parts: &Parts<'_>) -> State {
    let Parts { now, pace, .. } = parts;
    let mut causes: Vec<Group> = parts.causes.groups.iter().take(MAX_CAUSES).cloned().collect();
    causes.iter_mut().for_each(|group| shorten(&mut group.example));
    let changes: Vec<_> = parts.steered.changes.iter().rev().take(MAX_CHANGES).collect();
    vec![
        ("totals", render(&totals(now, pace)).into()),
        ("stages", render(&now.stages.iter().zip(&pace.stages_per_s).map(stage).collect::<Vec<_>>()).into()),
        ("waits", render(&waits(now)).into()),
        ("resources", render(&resources(now)).into()),
        ("history", render(parts.history).into()),
        ("causes", render(&causes).into()),
        ("letters", render(&parts.letters).into()),
        ("retry", render(parts.retry).into()),
        ("changes", render(&changes).into()),
    ]
}

/// The constant facts about a flow as JSON, without the surrounding braces.
fn facts(flow: &str, names: Names<'_>, stages: &[Value], begin: &Snapshot) -> String {
    let resources: Vec<Value> = begin.resources.iter().map(|r| json!({ "name": r.name, "kind": r.kind })).collect();
    let facts =
        json!({ "flow": flow, "run": names.run, "reach": names.reach, "stages": stages, "resources": resources });
    facts.to_string().trim_start_matches('{').trim_end_matches('}').to_owned()
}

fn render(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("states have only string keys and plain values")
}

/// Cuts a text that is too long for a list.
fn shorten(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(MAX_EXAMPLE) {
        text.truncate(end);
        text.push('…');
    }
}

fn seconds(ns: u64) -> f64 {
    (ns as f64 / 1e6).round() / 1e3
}

fn totals(now: &Snapshot, pace: &Pace) -> Value {
    let limit = now.stages.iter().max_by_key(|stage| stage.waiting).filter(|stage| stage.waiting > 0);
    json!({
        "wall_s": seconds(now.wall_ns),
        "phase": now.phase,
        "held_by": now.held_by(),
        "limit": limit.filter(|_| now.phase != Phase::Done).map(|stage| &stage.name),
        "rate": pace.gone_per_s,
        "left_s": pace.left_ns.map(seconds),
        "admitted": now.admitted,
        "split": now.split,
        "retired": now.retired,
        "dead": now.dead_lettered,
        "gathered": now.gathered,
        "in_flight": now.in_flight,
        "inflight_cap": now.inflight_cap,
        "bytes": now.bytes_in_flight,
        "memory_cap": Some(now.memory_cap).filter(|cap| *cap != u64::MAX),
        "workers": now.workers,
        "workers_busy": now.workers_busy,
    })
}

fn stage((now, rate): (&StageSnapshot, &f64)) -> Value {
    let q = &now.service_ns;
    let service = [q.p50, q.p90, q.p99, q.max];
    json!({
        "waiting": now.waiting,
        "granted": now.granted,
        "running": now.running,
        "done": now.units,
        "rate": (rate * 10.0).round() / 10.0,
        "failed": now.failures,
        "retried": now.retries,
        "requeued": now.requeued,
        "dead": now.dead_lettered,
        "busy_s": seconds(now.busy_ns),
        "oldest_s": seconds(now.oldest_ns),
        "wait": [now.wait_ns.p50 as f64 / 1e9, now.wait_ns.p99 as f64 / 1e9],
        "service": service.map(|ns| ns as f64 / 1e9),
        "busy": now.workers_busy,
        "min": now.workers_min,
        "max": now.workers_max,
    })
}

/// Returns, for each stage and resource, the number of waiting units and the total time of waits that have ended.
fn waits(now: &Snapshot) -> Vec<(usize, &str, u64, f64)> {
    let mut all: Vec<(usize, &str, u64, f64)> = Vec::new();
    for (place, stage) in now.stages.iter().enumerate() {
        for wait in &stage.waited_for {
            all.push((place, &wait.resource, 0, seconds(wait.total_ns)));
        }
        for waiting in &stage.waiting_for {
            match all.iter_mut().find(|(at, resource, ..)| *at == place && *resource == waiting.resource) {
                Some((.., units, _)) => *units += waiting.units,
                None => all.push((place, &waiting.resource, waiting.units, 0.0)),
            }
        }
    }
    all
}

fn resources(now: &Snapshot) -> Vec<Value> {
    let one = |r: &millstream_flow::ResourceSnapshot| json!({ "used": r.in_use, "peak": r.peak_in_use, "cap": r.capacity, "rate": r.rate_per_s, "waiting": r.waiters, "keys": r.keys });
    now.resources.iter().map(one).collect()
}
