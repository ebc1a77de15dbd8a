//! `[[stage]]`: the keys that all stages have in common.

use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use millstream_flow::MAX_WORKERS_BY_NEEDS;

use super::super::error::Problem;
use super::super::graph::{Exit, Node};
use super::super::model::{
    AfterFailure, BatchSpec, FibersSpec, Hold, MAX_FIBERS, MAX_WORKERS, NeedSpec, OpSpec, ResourceKind, ResourceSpec,
    RetrySpec, SplitBy, SplitSpec, StageSpec, WorkersBound,
};
use super::super::reader::{Entry, Section, Text};
use super::super::suggest;
use super::super::template::Field;
use super::op;
use super::resource::Declared;

/// The maximum number of units in a batch.
const MAX_BATCH: i64 = millstream_flow::Batch::MAX_SIZE as i64;
/// The maximum number of retries.
const MAX_RETRIES: i64 = 1_000_000;
/// The maximum number of stages in a flow.
const MAX_STAGES: usize = 1024;
/// The pauses between attempts if `retry` has no `backoff`: the engine's defaults.
const DEFAULT_BACKOFF: Range<Duration> = Duration::from_millis(100)..Duration::from_secs(5);

/// Reads all stages. Returns `None` if not even their number is known; that mistake has been reported.
pub(super) fn stages(entry: &Entry<'_>, resources: &[Declared]) -> Option<Vec<Draft>> {
    let reading = entry.reading;
    if entry.is_table() {
        let problem = Problem::new("a stage is written with two brackets").at(entry.key_span.clone(), "one bracket");
        reading.report(problem.help("write `[[stage]]`"));
        return None;
    }
    let elements = entry.elements("an array of tables, `[[stage]]`")?;
    if elements.is_empty() {
        entry.senseless("the flow has no stages", "empty");
        return None;
    }
    if elements.len() > MAX_STAGES {
        entry.senseless(format!("the flow has {} stages; the most is {MAX_STAGES}", elements.len()), "too many");
        return None;
    }
    let mut sections: Vec<Section<'_>> =
        elements.iter().filter_map(|element| element.section("a stage", "tables, `[[stage]]`")).collect();
    let names: Vec<Option<Text>> = sections.iter_mut().map(name).collect();
    let mut twice = false;
    for (index, name) in names.iter().enumerate() {
        let Some(name) = name else { continue };
        if let Some(first) = names[..index].iter().flatten().find(|first| first.value == name.value) {
            let problem = Problem::new(format!("two stages are called `{}`", name.value));
            reading.report(
                problem
                    .at(name.span.clone(), "the second")
                    .at(first.span.clone(), "the first")
                    .help("give each its own name"),
            );
            twice = true;
        }
    }
    let known: Vec<&str> = names.iter().flatten().map(|name| name.value.as_str()).collect();
    let scope = Scope { stages: &known, resources };
    let mut drafts = Vec::new();
    for (index, section) in sections.into_iter().enumerate() {
        let following = match names.get(index + 1) {
            None => Some(None),
            Some(name) => name.as_ref().map(|name| Some(name.value.clone())),
        };
        drafts.push(stage(section, names[index].as_ref(), following, &scope));
    }
    Some(drafts).filter(|drafts| !twice && drafts.len() == elements.len())
}

/// A stage as far as it could be read. Parts that could not be read have been reported and are `None`.
pub(super) struct Draft {
    name: Option<Text>,
    op_name: Option<Text>,
    op: Option<OpSpec>,
    exec_span: Option<Range<usize>>,
    needs: Option<Vec<NeedSpec>>,
    retry: Option<Option<RetrySpec>>,
    timeout: Option<Option<Duration>>,
    idempotent: Option<Option<bool>>,
    workers: Option<Option<(WorkersBound, WorkersBound)>>,
    blocking: Option<Option<bool>>,
    fibers: Option<Option<FibersSpec>>,
    batch: Option<Option<BatchSpec>>,
    queue: Option<Option<u64>>,
    after_failure: Option<AfterFailure>,
    next: Option<Option<String>>,
    otherwise: Option<Option<String>>,
    fields: Vec<(Field, Range<usize>)>,
}

impl Draft {
    /// The facts for the checks of the graph.
    pub(super) fn node(&self) -> Node<'_> {
        let exit = |exit: &'_ Option<Option<String>>| match exit {
            None => Exit::Unknown,
            Some(None) => Exit::End,
            Some(Some(stage)) => Exit::Stage(stage.clone()),
        };
        let op_name = self.op_name.as_ref().map(|name| name.value.as_str()).filter(|name| op::is_known(name));
        let mut exits = match &self.op {
            Some(OpSpec::Split(SplitSpec { by: SplitBy::Copies(stages), .. })) if self.next.is_some() => {
                stages.iter().map(|stage| Exit::Stage(stage.to_string())).collect()
            }
            _ => vec![exit(&self.next)],
        };
        match op_name {
            Some(op) if op::WITH_ELSE.contains(&op) => exits.push(exit(&self.otherwise)),
            Some(_) => {}
            // The op is unknown, so it may have been meant to have a second exit.
            None => exits.push(Exit::Unknown),
        }
        let name = self.name.as_ref();
        Node {
            name: name.map_or("", |name| &name.value),
            span: name.map_or(0..0, |name| name.span.clone()),
            op_name,
            op_span: self.op_name.as_ref().map_or(0..0, |name| name.span.clone()),
            op: self.op.as_ref(),
            needs: self.needs.as_deref().unwrap_or_default(),
            fields: &self.fields,
            exits,
        }
    }

    /// The stage, if all of it could be read.
    pub(super) fn finish(self) -> Option<StageSpec> {
        let name = self.name?;
        Some(StageSpec {
            name: name.value,
            op: self.op?,
            needs: self.needs?,
            retry: self.retry?,
            timeout: self.timeout?,
            idempotent: self.idempotent?,
            workers: self.workers?,
            blocking: self.blocking?,
            fibers: self.fibers?,
            batch: self.batch?,
            queue: self.queue?,
            after_failure: self.after_failure?,
            next: self.next?,
            otherwise: self.otherwise?,
            fields: self.fields,
            span: name.span,
            op_span: self.op_name?.span,
            exec_span: self.exec_span,
        })
    }
}

/// The names to which a stage can refer.
struct Scope<'a> {
    stages: &'a [&'a str],
    resources: &'a [Declared],
}

fn name(section: &mut Section<'_>) -> Option<Text> {
    let name = section.require("name", "name = \"…\"").and_then(|entry| entry.identifier())?;
    section.what = format!("stage `{}`", name.value);
    section.span = name.span.clone();
    Some(name)
}

fn stage(mut section: Section<'_>, name: Option<&Text>, following: Option<Option<String>>, scope: &Scope<'_>) -> Draft {
    let needs = section.or("needs", Vec::new(), |entry| needs(entry, scope));
    let retry = section.optional("retry", retry);
    let timeout = section.optional("timeout", timeout);
    let idempotent = section.optional("idempotent", Entry::boolean);
    let workers = section.optional("workers", workers);
    let blocking = section.optional("blocking", Entry::boolean);
    let batch = section.optional("batch", batch);
    let queue = section.optional("queue", Entry::count);
    let after_failure = section.or("after_failure", AfterFailure::default(), |entry| {
        entry.choice(&[
            ("dead-letter", AfterFailure::DeadLetter),
            ("skip", AfterFailure::Skip),
            ("stop", AfterFailure::Stop),
        ])
    });
    let next = section.get("next");
    let ways = (section.get("workers"), section.get("blocking"), section.get("stack"));
    let fibers_entry = section.get("fibers");
    let op_name = section
        .get("op")
        .and_then(|op| op.as_text().map(|name| Text { value: name.to_owned(), span: op.span.clone() }));
    let op = op::op(&mut section);
    // The keys of a stage depend only on the name of its op, even if the stage has mistakes.
    let is = |name: &str| op_name.as_ref().is_some_and(|op| op.value == name);
    let exec_span = if is(op::EXEC) { section.get("exec").map(|entry| entry.span) } else { None };
    let fibers = fibers(fibers_entry.as_ref(), ways, op_name.as_ref());
    let otherwise = if op::WITH_ELSE.iter().any(|op| is(op)) {
        section.or("else", None, |entry| edge(entry, scope))
    } else {
        Some(None)
    };
    let next = match (&next, is(op::COPY)) {
        (Some(entry), true) => {
            entry.senseless("a `copy` has no `next`: its units go to the stages of `to`", "leave it out");
            None
        }
        (None, true) => section.get("to").and_then(|entry| first_copy(&entry, scope)),
        (Some(entry), false) => edge(entry, scope),
        (None, false) => following,
    };
    let fields = section.reading.take_fields();
    // Without an op, only the keys common to all stages are known, so other keys are not reported.
    if op_name.as_ref().is_some_and(|name| op::is_known(&name.value)) {
        section.finish();
    }
    Draft {
        name: name.map(|name| Text { value: name.value.clone(), span: name.span.clone() }),
        op_name,
        op,
        exec_span,
        needs,
        retry,
        timeout,
        idempotent,
        workers,
        blocking,
        fibers,
        batch,
        queue,
        after_failure,
        next,
        otherwise,
        fields,
    }
}

/// Reads the value of `next` or `else`: a stage's name, or `"end"`. The outer `None` means that the value is wrong, the
/// inner `None` that units retire.
fn edge(entry: &Entry<'_>, scope: &Scope<'_>) -> Option<Option<String>> {
    let text = entry.text("the name of a stage in quotes, or \"end\"")?;
    if scope.stages.contains(&text.value.as_str()) {
        return Some(Some(text.value));
    }
    if text.value == "end" {
        return Some(None);
    }
    no_stage(entry, &text, scope);
    None
}

/// The first stage named by `to` of a `copy`, if all of them exist. The op reports elements that are not names.
fn first_copy(entry: &Entry<'_>, scope: &Scope<'_>) -> Option<Option<String>> {
    if !entry.is_array() {
        return None;
    }
    let stages = entry.elements("an array of the names of stages")?;
    let known = |stage: &Entry<'_>| {
        let name = Text { value: stage.as_text()?.to_owned(), span: stage.span.clone() };
        if !scope.stages.contains(&name.value.as_str()) {
            no_stage(stage, &name, scope);
            return None;
        }
        Some(name.value)
    };
    let names: Vec<Option<String>> = stages.iter().map(known).collect();
    names.into_iter().collect::<Option<Vec<_>>>()?.into_iter().next().map(Some)
}

fn no_stage(entry: &Entry<'_>, text: &Text, scope: &Scope<'_>) {
    let problem = Problem::new(format!("`{}` leads to `{}`, but no stage has that name", entry.name, text.value));
    let help = match suggest::closest(&text.value, scope.stages.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the stages are {}", scope.stages.join(", ")),
    };
    entry.reading.report(problem.at(text.span.clone(), "no such stage").help(help));
}

fn needs(entry: &Entry<'_>, scope: &Scope<'_>) -> Option<Vec<NeedSpec>> {
    let section = entry.section("`needs`", "a table such as `{ net = 1 }`")?;
    let read: Vec<Option<NeedSpec>> = section.entries().iter().map(|entry| need(entry, scope)).collect();
    read.into_iter().collect()
}

fn need(entry: &Entry<'_>, scope: &Scope<'_>) -> Option<NeedSpec> {
    let reading = entry.reading;
    let (resource, key) =
        entry.name.split_once(':').map_or((entry.name.as_str(), None), |(name, key)| (name, Some(key)));
    let Some(declared) = scope.resources.iter().find(|declared| declared.name == resource) else {
        let problem = Problem::new(format!("`{resource}` is needed, but [resources] does not declare it"));
        let help = match suggest::closest(resource, scope.resources.iter().map(|declared| declared.name.as_str())) {
            Some(near) => format!("did you mean `{near}`?"),
            None if key.is_some() => format!("declare it: `\"{resource}:*\" = 2` under [resources]"),
            None => format!("declare it: `{resource} = 2` under [resources]"),
        };
        reading.report(problem.at(entry.key_span.clone(), "no such resource").help(help));
        return None;
    };
    let spec = declared.spec.as_ref()?;
    let refuse = |problem: Problem, label: &str, help: String| {
        reading.report(problem.at(entry.key_span.clone(), label).at(spec.span.clone(), "declared here").help(help));
        None
    };
    let key = match (key, spec.kind.is_keyed()) {
        (None, false) => None,
        (Some(key), true) if !key.is_empty() => {
            // The key starts after the resource's name and the colon.
            Some(reading.template(&entry.name, resource.len() + 1, &entry.key_span)?)
        }
        (Some(_), false) => {
            let problem = Problem::new(format!("resource `{resource}` has no keys, but this need names one"));
            return refuse(
                problem,
                "has a key",
                format!("write `{resource}`, or declare the resource as `\"{resource}:*\"`"),
            );
        }
        (_, true) => {
            let problem = Problem::new(format!("resource `{resource}` has keys, but this need names none"));
            return refuse(problem, "needs a key", format!("write `\"{resource}:{{host}}\"`, with what names the key"));
        }
    };
    let (amount, until) = if entry.is_table() {
        let mut section = entry.section(format!("the need of `{resource}`"), "a table")?;
        let amount = section.or("amount", 1, Entry::count);
        let until = section.optional("until", |until| held_until(until, scope));
        section.finish();
        (amount?, until?)
    } else {
        (entry.count()?, None)
    };
    if amount > spec.kind.capacity() {
        let has = if spec.kind.is_rate() { "has a burst of" } else { "has" };
        let message = format!(
            "{amount} of `{resource}` are needed, and it {has} {}: the unit would wait forever",
            spec.kind.capacity()
        );
        return refuse(Problem::new(message), "too much", "ask for less, or declare more".to_owned());
    }
    if until.is_some() && (spec.kind.is_rate() || spec.hold == Hold::Batch) {
        let why = if spec.kind.is_rate() { "a rate is spent and never given back" } else { "it is held by a batch" };
        let message = format!("`{resource}` cannot be held until a later stage: {why}");
        return refuse(Problem::new(message), "has `until`", "leave `until` out".to_owned());
    }
    Some(NeedSpec { resource: resource.to_owned(), key, amount, until, span: entry.key_span.clone() })
}

fn held_until(entry: &Entry<'_>, scope: &Scope<'_>) -> Option<String> {
    let text = entry.text("the name of a stage in quotes")?;
    if !scope.stages.contains(&text.value.as_str()) {
        no_stage(entry, &text, scope);
        return None;
    }
    Some(text.value)
}

fn retry(entry: &Entry<'_>) -> Option<RetrySpec> {
    let times = |entry: &Entry<'_>| entry.integer(1..=MAX_RETRIES).and_then(|times| u32::try_from(times).ok());
    if !entry.is_table() {
        return Some(RetrySpec { times: times(entry)?, backoff: DEFAULT_BACKOFF });
    }
    let mut section = entry.section("`retry`", "a table")?;
    let times = section.require("times", "times = 3").and_then(|entry| times(&entry));
    let backoff = section.or("backoff", DEFAULT_BACKOFF, Entry::duration_range);
    section.finish();
    Some(RetrySpec { times: times?, backoff: backoff? })
}

fn timeout(entry: &Entry<'_>) -> Option<Duration> {
    let timeout = entry.duration()?;
    if timeout.is_zero() {
        entry.senseless("`timeout` is zero, so every unit would fail", "must be more than zero");
        return None;
    }
    Some(timeout)
}

fn batch(entry: &Entry<'_>) -> Option<BatchSpec> {
    let size = |entry: &Entry<'_>| entry.integer(1..=MAX_BATCH).and_then(|size| usize::try_from(size).ok());
    if !entry.is_table() {
        return Some(BatchSpec { size: size(entry)?, wait: Duration::ZERO });
    }
    let mut section = entry.section("`batch`", "a table")?;
    let size = section.require("size", "size = 16").and_then(|entry| size(&entry));
    let wait = section.or("wait", Duration::ZERO, Entry::duration);
    section.finish();
    Some(BatchSpec { size: size?, wait: wait? })
}

/// The ops whose waits suspend a fiber.
const ON_FIBERS: [&str; 3] = [op::EXEC, op::HTTP_GET, op::HTTP];

/// The stack of a fiber if the flow file sets none: several times the size that a TLS handshake needs.
const DEFAULT_STACK: usize = 256 << 10;

/// The sizes that a stack can have, in bytes.
const STACKS: RangeInclusive<u64> = 32 << 10..=1 << 30;

/// Reads `fibers` and `stack`, and reports if they contradict `workers` or `blocking`.
fn fibers(
    entry: Option<&Entry<'_>>,
    (workers, blocking, stack): (Option<Entry<'_>>, Option<Entry<'_>>, Option<Entry<'_>>),
    op_name: Option<&Text>,
) -> Option<Option<FibersSpec>> {
    let Some(entry) = entry else {
        if let Some(stack) = stack {
            stack.senseless(
                "`stack` is the size of a fiber's stack, but the stage has no `fibers`",
                "set `fibers` as well",
            );
            return None;
        }
        return Some(None);
    };
    let waits = op_name.is_none_or(|op| !op::is_known(&op.value) || ON_FIBERS.contains(&op.value.as_str()));
    if let Some(op) = op_name.filter(|_| !waits) {
        let [first, second, last] = ON_FIBERS;
        let message = format!(
            "the waits of `{}` cannot suspend a fiber: only those of `{first}`, `{second}` and `{last}` can",
            op.value
        );
        entry.senseless(message, "leave it out");
    }
    if let Some(workers) = &workers {
        workers
            .senseless("`fibers` is the most units at once, and `workers` the most threads", "leave one of them out");
    }
    let is_off = blocking.as_ref().filter(|blocking| blocking.as_flag() == Some(false));
    if let Some(blocking) = is_off {
        blocking.senseless("a stage on `fibers` runs beside the workers, as a blocking one does", "leave it out");
    }
    let most = entry.integer(1..=MAX_FIBERS as i64).and_then(|most| usize::try_from(most).ok());
    let stack_bytes = match &stack {
        None => Some(DEFAULT_STACK),
        Some(stack) => stack.bytes().and_then(|bytes| match STACKS.contains(&bytes) {
            true => usize::try_from(bytes).ok(),
            false => {
                stack.senseless("a fiber's stack has from 32 KiB to 1 GiB", "outside of that");
                None
            }
        }),
    };
    let sound = waits && workers.is_none() && is_off.is_none();
    Some(Some(FibersSpec { most: most?, stack_bytes: stack_bytes? })).filter(|_| sound)
}

/// The default fibers of a stage that sets neither `workers` nor `blocking`. If its needs allow more units at once than
/// a stage has threads by default, it gets as many fibers as the needs allow.
pub(super) fn beyond_threads(stage: &StageSpec, resources: &[ResourceSpec], inflight: u64) -> Option<FibersSpec> {
    let says_nothing = stage.workers.is_none() && stage.blocking.is_none();
    if !says_nothing || !ON_FIBERS.contains(&stage.op.name()) {
        return None;
    }
    let bound = |need: &NeedSpec| match resources.iter().find(|resource| resource.name == need.resource)?.kind {
        ResourceKind::Tokens(tokens) => Some(tokens / need.amount.max(1)),
        _ => None,
    };
    let most = stage.needs.iter().filter_map(bound).min()?.min(inflight).min(MAX_FIBERS as u64);
    (most > MAX_WORKERS_BY_NEEDS as u64).then_some(FibersSpec { most: most as usize, stack_bytes: DEFAULT_STACK })
}

/// `workers`: `4` means at most four; `"1..cores"` is a minimum and a maximum.
fn workers(entry: &Entry<'_>) -> Option<(WorkersBound, WorkersBound)> {
    if entry.as_integer().is_some() {
        let count = usize::try_from(entry.integer(1..=MAX_WORKERS as i64)?).ok()?;
        return Some((WorkersBound::Count(0), WorkersBound::Count(count)));
    }
    entry.parsed("a number or a range such as \"1..cores\"", |text| {
        let bound = |text: &str| match text.trim() {
            "cores" => Ok(WorkersBound::Cores),
            number => match number.parse() {
                Ok(count) if count <= MAX_WORKERS => Ok(WorkersBound::Count(count)),
                Ok(_) => Err(format!("a flow has at most {MAX_WORKERS} workers")),
                Err(_) => Err(match number.split_once('-') {
                    Some((from, to)) => format!("a range is written with two dots: `{}..{}`", from.trim(), to.trim()),
                    None => format!("`{number}` is neither a number nor `cores`"),
                }),
            },
        };
        let (from, to) = match text.split_once("..") {
            Some((from, to)) => (bound(from)?, bound(to.strip_prefix('=').unwrap_or(to))?),
            None => (WorkersBound::Count(0), bound(text)?),
        };
        match (from, to) {
            (_, WorkersBound::Count(0)) => Err("at most zero workers would do nothing".to_owned()),
            (WorkersBound::Count(from), WorkersBound::Count(to)) if from > to => {
                Err(format!("the range is the wrong way round: write `{to}..{from}`"))
            }
            (WorkersBound::Cores, WorkersBound::Count(count)) => {
                Err(format!("the range is the wrong way round: write `{count}..cores`"))
            }
            bounds => Ok(bounds),
        }
    })
}
