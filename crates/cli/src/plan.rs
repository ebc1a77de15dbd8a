//! `millstream plan`: shows the results of the static checks of a flow, in 80 columns.

mod joins;
mod json;
mod surplus;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use millstream_command::screen::{out, shown, text};
use millstream_command::time;
use millstream_flow::{Plan, PlanResource, PlanStage};
use millstream_runner::file::model::{
    AfterFailure, FlowFile, Hold, LinesFrom, MachineSpec, NeedSpec, SourceSpec, StageSpec,
};
use millstream_runner::{descriptors, wire};

use crate::args::PlanArgs;
use crate::run;

/// The number of columns of a line.
const COLUMNS: usize = 80;
/// The maximum width of a stage's name.
const NAME_COLUMNS: usize = 24;

/// Checks the flow, prints its plan or the reason for its refusal, and returns the exit status.
pub(crate) fn plan(args: &PlanArgs) -> ExitCode {
    let described = args.flow.load().and_then(|file| {
        let wired = wire::wire(&file, |_| {}, None, Arc::default())?;
        if let Some(warnings) = file.render_warnings() {
            out::complain_page(&warnings);
        }
        let plan = wired.flow.plan();
        Ok(if args.json { json::describe(&file, plan) } else { describe(&file, plan) })
    });
    match described.map(|text| out::print(&text)) {
        Err(error) => {
            out::complain_page(&error.render());
            ExitCode::from(run::WRONG)
        }
        Ok(Err(error)) => {
            out::complain(format!("error: the plan could not be written to standard output: {error}"));
            ExitCode::from(run::NOT_WRITTEN)
        }
        Ok(Ok(())) => ExitCode::SUCCESS,
    }
}

/// The plan as text.
pub(crate) fn describe(file: &FlowFile, plan: &Plan) -> String {
    let mut page = Page::default();
    head(&mut page, file, plan);
    page.heading("graph");
    for chain in chains(file) {
        page.paragraph("  ", "    ", &chain);
    }
    stages(&mut page, file, plan);
    needs(&mut page, file);
    resources(&mut page, file, plan);
    let gatherings = joins::gatherings(file, plan);
    let joins: Vec<(&str, String)> = gatherings.iter().map(|gathering| gathering.in_words(plan)).collect();
    page.named("joins", &joins);
    failures(&mut page, file, plan);
    page.heading("order of waiting");
    order(&mut page, plan);
    page.heading("largest memory in flight");
    memory(&mut page, file, plan);
    warnings(&mut page, &told(file, plan));
    page.text
}

/// The warnings about a flow.
fn told(file: &FlowFile, plan: &Plan) -> Vec<String> {
    let mut warnings = surplus::warnings(file, plan);
    warnings.extend(descriptors::warning(file, plan));
    warnings
}

fn head(page: &mut Page, file: &FlowFile, plan: &Plan) {
    let stages = text::counted(plan.stages.len() as u64, "stage");
    page.paragraph("", "  ", &format!("{}: {stages}, from {}", text::printable(&plan.flow), shown::path(&file.path)));
    page.text.push('\n');
    page.fact("units from", &source(file));
    page.fact("in flight", &format!("at most {}", text::counted(plan.inflight, "unit")));
    page.fact(
        "payload",
        &match plan.memory {
            u64::MAX => "no cap on bytes in flight".to_owned(),
            bytes => format!("at most {} in flight; a unit larger than that goes alone", text::bytes(bytes)),
        },
    );
    if let Some(halt) = file.halt {
        page.fact("halts", &halt.in_words());
    }
    let MachineSpec { load, memory_free } = file.machine;
    let load = load.map(|load| format!("{} of the machine can run", text::counted(load, "thread")));
    let memory = memory_free.map(|bytes| format!("less than {} of its memory is available", text::bytes(bytes)));
    let limits: Vec<String> = load.into_iter().chain(memory).collect();
    if !limits.is_empty() {
        page.fact("starts", &format!("no program while {}", limits.join(", or while ")));
    }
    let own: u64 =
        plan.stages.iter().filter(|stage| stage.blocking && !stage.fibers).map(|stage| most_workers(stage, plan)).sum();
    let beside =
        if own > 0 { format!(", and up to {} for stages that block", text::count(own)) } else { String::new() };
    page.fact("workers", &format!("{} shared by all stages{beside}", text::count(plan.workers)));
    for (name, value) in &file.params {
        page.fact("param", &format!("{} = {}", text::printable(name), text::printable(value)));
    }
}

fn source(file: &FlowFile) -> String {
    let items = items(file);
    if file.group > 1 { format!("{items}, {} at once", text::count(file.group as u64)) } else { items }
}

fn items(file: &FlowFile) -> String {
    match &file.source {
        SourceSpec::Walk { root, hidden, ignored, follow, except, names } => {
            let mut said = format!("the files below {root}");
            if !names.is_all() {
                said += &format!(" named {}", text::printable(&names.to_string()));
            }
            let mut without: Vec<String> = except.iter().map(ToString::to_string).collect();
            without.extend((!hidden).then(|| "hidden ones".to_owned()));
            without.extend((!ignored).then(|| "ignored ones".to_owned()));
            if !without.is_empty() {
                said += &format!(", without {}", without.join(" and "));
            }
            if *follow {
                said += ", following symbolic links";
            }
            said
        }
        SourceSpec::Lines { from, null, block } => {
            let what = if *null { "the NUL-separated records" } else { "the lines" };
            let blocks = block.map(|size| format!("blocks of {} of ", text::bytes(size as u64))).unwrap_or_default();
            let what = &format!("{blocks}{what}");
            match from {
                LinesFrom::Stdin if file.input_span.is_some() => format!("{what} of standard input"),
                LinesFrom::Stdin => format!("{what} of standard input, or of the INPUTs"),
                LinesFrom::File(path) => format!("{what} of {path}"),
            }
        }
        SourceSpec::Args => "the INPUTs, one each".to_owned(),
    }
}

/// The graph as chains of stages: first the chain that units enter, then a chain for each edge that is not shown yet.
fn chains(file: &FlowFile) -> Vec<String> {
    let find = |name: &str| file.stages.iter().find(|stage| stage.name == *name).expect("edges lead to stages");
    let mut shown = BTreeSet::new();
    let mut chains = Vec::new();
    let mut follow = |mut chain: String, from: Option<&str>| {
        let mut at = from;
        while let Some(name) = at {
            let _ = write!(chain, " → {}", text::printable(name));
            if !shown.insert(name.to_owned()) {
                return chain;
            }
            at = find(name).next.as_deref();
        }
        chain + " → end"
    };
    let first = file.stages.first().expect("a flow has stages");
    chains.push(follow("source".to_owned(), Some(&first.name)));
    for stage in &file.stages {
        if stage.op.has_else() {
            chains.push(follow(format!("{}, else", text::printable(&stage.name)), stage.otherwise.as_deref()));
        }
        // The chain that leads to this stage continues with the first copy, so only the other copies get chains of
        // their own.
        for to in stage.op.copies().unwrap_or_default().iter().skip(1) {
            chains.push(follow(format!("{}, copy", text::printable(&stage.name)), Some(&**to)));
        }
    }
    chains
}

fn stages(page: &mut Page, file: &FlowFile, plan: &Plan) {
    let mut rows = vec![["stage", "op", "queue", "workers", "batch"].map(str::to_owned)];
    for (spec, stage) in file.stages.iter().zip(&plan.stages) {
        let own = match (stage.fibers, stage.blocking) {
            (true, _) => " fibers",
            (false, true) => " own",
            (false, false) => "",
        };
        rows.push([
            text::printable(&stage.name).into_owned(),
            spec.op.name().to_owned(),
            text::count(stage.queue_bound),
            format!("{}..{}{own}", stage.workers_min, most_workers(stage, plan)),
            batch(stage),
        ]);
    }
    page.text.push('\n');
    page.table(&rows, &[false, false, true, true, false]);
    page.paragraph(
        "",
        "",
        "queue: most units in the stage; workers: fewest..most, own: threads of its own, fibers: few threads for all",
    );
}

fn batch(stage: &PlanStage) -> String {
    match (stage.batch.size(), stage.batch.longest_wait()) {
        (None, _) => "by time".to_owned(),
        (Some(size), wait) if wait.is_zero() => text::count(size as u64),
        (Some(size), wait) => format!("{}, waits {}", text::count(size as u64), time::show(wait)),
    }
}

fn needs(page: &mut Page, file: &FlowFile) {
    let mut rows = Vec::new();
    for stage in file.stages.iter().filter(|stage| !stage.needs.is_empty()) {
        let needs: Vec<String> = stage.needs.iter().map(need).collect();
        let together = if needs.len() > 1 { "together: " } else { "" };
        rows.push((stage.name.as_str(), format!("{together}{}", needs.join(", "))));
    }
    page.named("needs", &rows);
}

fn need(need: &NeedSpec) -> String {
    let key = need.key.as_ref().map(|key| format!(":{key}")).unwrap_or_default();
    let until = need.until.as_ref().map(|until| format!(" (held until `{until}`)")).unwrap_or_default();
    format!("{} {}{key}{until}", text::count(need.amount), need.resource)
}

fn resources(page: &mut Page, file: &FlowFile, plan: &Plan) {
    let mut rows = Vec::new();
    for resource in &plan.resources {
        // The slots of a bounded queue are resources of the engine as well. They are left out here, since the table of
        // stages shows them.
        let Some(spec) = file.resources.iter().find(|spec| spec.name == resource.name) else { continue };
        let name = if spec.kind.is_keyed() { format!("{}:*", resource.name) } else { resource.name.clone() };
        let batch = if spec.hold == Hold::Batch { ", held by a batch" } else { "" };
        rows.push((name, format!("{}{batch}", supply(resource))));
    }
    let rows: Vec<(&str, String)> = rows.iter().map(|(name, said)| (name.as_str(), said.clone())).collect();
    page.named("resources", &rows);
}

fn supply(resource: &PlanResource) -> String {
    let mut said = match resource.rate_per_s {
        Some(per_second) => format!("{}, burst {}", text::rate(per_second), text::count(resource.capacity)),
        None => text::counted(resource.capacity, "token"),
    };
    if let Some(keys) = resource.max_keys {
        said += &format!(" for each key, at most {}", text::counted(keys, "key"));
    }
    said
}

fn failures(page: &mut Page, file: &FlowFile, plan: &Plan) {
    let rows: Vec<(&str, String)> = file
        .stages
        .iter()
        .zip(&plan.stages)
        .map(|(spec, stage)| (spec.name.as_str(), failure(spec, stage)))
        .filter(|(_, said)| *said != "then a dead letter")
        .collect();
    page.named("failures", &rows);
    let others = if rows.is_empty() { "every stage" } else { "other stages" };
    if rows.len() < file.stages.len() {
        if rows.is_empty() {
            page.heading("failures");
        }
        page.paragraph("  ", "  ", &format!("{others}: a failed unit is a dead letter at once"));
    }
}

fn failure(spec: &StageSpec, stage: &PlanStage) -> String {
    let mut said = Vec::new();
    if let Some(limit) = stage.timeout {
        said.push(format!("at most {} an attempt", time::show(limit)));
    }
    if let Some(retry) = &spec.retry {
        let (least, most) = (time::show(retry.backoff.start), time::show(retry.backoff.end));
        let pauses = if least == most { least } else { format!("{least}..{most}") };
        let retries = if retry.times == 1 { "retry".to_owned() } else { "retries".to_owned() };
        said.push(format!("{} {retries} after {pauses}", text::count(u64::from(retry.times))));
    }
    said.push(
        match spec.after_failure {
            AfterFailure::DeadLetter => "then a dead letter",
            AfterFailure::Skip => "then skipped",
            AfterFailure::Stop => "then a dead letter, and the flow stops",
        }
        .to_owned(),
    );
    said.join(", ")
}

fn order(page: &mut Page, plan: &Plan) {
    if plan.resources.is_empty() {
        page.paragraph("  ", "  ", "No stage needs a resource, so no unit waits for another.");
        return;
    }
    if plan.pairs.is_empty() {
        let said = "No stage asks for a resource while its units hold one: a unit gets all it needs at once or holds nothing, so no \
                    units can wait for one another.";
        page.paragraph("  ", "  ", said);
        return;
    }
    let takes_part = |name: &&String| plan.pairs.iter().any(|pair| pair.holds == **name || pair.asks == **name);
    let order: Vec<&str> = plan.order.iter().filter(takes_part).map(String::as_str).collect();
    page.paragraph("  ", "    ", &order.join(" → "));
    let said = "A unit that holds one of these and waits for another waits for one further on, so no units can wait for one \
                another in a cycle:";
    page.paragraph("  ", "  ", said);
    for pair in &plan.pairs {
        page.paragraph("  - ", "    ", &pair.to_string());
    }
}

fn memory(page: &mut Page, file: &FlowFile, plan: &Plan) {
    let units = text::counted(plan.inflight, "unit");
    if plan.memory == u64::MAX {
        let said =
            format!("Not bounded in bytes: the payloads of {units}, however large. Set `memory`, or give `--memory`.");
        page.paragraph("  ", "  ", &said);
        return;
    }
    let bytes = text::bytes(plan.memory);
    page.paragraph("  ", "  ", &format!("{bytes} of payload, in at most {units}; or one unit that is larger alone."));
    let may_exceed = |(spec, stage): &(&StageSpec, &PlanStage)| spec.op.grows_payload() && !stage.idempotent;
    for (spec, _) in file.stages.iter().zip(&plan.stages).filter(may_exceed) {
        let said = format!(
            "`{}` may go beyond that while a payload grows, because it cannot be cancelled and run again: if it can, say \
             `idempotent = true`.",
            text::printable(&spec.name)
        );
        page.paragraph("  - ", "    ", &said);
    }
}

fn warnings(page: &mut Page, warnings: &[String]) {
    if !warnings.is_empty() {
        page.heading("warnings");
    }
    for warning in warnings {
        page.paragraph("  - ", "    ", warning);
    }
}

/// The maximum number of workers of a stage: its ceiling, or the number of units for which the tokens suffice, if that is
/// smaller.
fn most_workers(stage: &PlanStage, plan: &Plan) -> u64 {
    let by_need = stage.needs.iter().filter(|need| !need.keyed).filter_map(|need| {
        let resource = plan.resources.iter().find(|resource| resource.name == need.resource)?;
        // A rate does not bound the number of workers, and a slot in the next queue is not a resource of the flow file.
        let bounds = resource.rate_per_s.is_none() && !resource.name.starts_with("queue of ");
        need.amount.filter(|_| bounds).map(|amount| resource.capacity / amount.max(1))
    });
    let most = if stage.blocking { by_need.min().unwrap_or(u64::MAX) } else { u64::MAX };
    stage.workers_max.min(most).max(stage.workers_min)
}

/// Text within [`COLUMNS`].
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn heading(&mut self, heading: &str) {
        let _ = writeln!(self.text, "\n{heading}");
    }

    fn fact(&mut self, name: &str, said: &str) {
        self.paragraph(&text::left(name, 12), &" ".repeat(12), said);
    }

    /// Adds a heading, and a row for each name with its text. Adds nothing if there are no rows.
    fn named(&mut self, heading: &str, rows: &[(&str, String)]) {
        let Some(widest) = rows.iter().map(|(name, _)| text::width(&text::printable(name))).max() else { return };
        let columns = widest.min(NAME_COLUMNS);
        self.heading(heading);
        for (name, said) in rows {
            let name = text::left(&text::printable(name), columns);
            self.paragraph(&format!("  {name}  "), &" ".repeat(columns + 4), said);
        }
    }

    /// Rows of cells in aligned columns; `right` says which columns are aligned to the right.
    fn table<const N: usize>(&mut self, rows: &[[String; N]], right: &[bool; N]) {
        let widths: [usize; N] = std::array::from_fn(|column| {
            rows.iter().map(|row| text::width(&row[column])).max().unwrap_or(0).min(NAME_COLUMNS)
        });
        for row in rows {
            let cells: Vec<String> = row
                .iter()
                .zip(widths)
                .zip(right)
                .map(|((cell, width), right)| if *right { text::right(cell, width) } else { text::left(cell, width) })
                .collect();
            let _ = writeln!(self.text, "{}", cells.join("  ").trim_end());
        }
    }

    /// Words filled into lines; the first line begins with `first`, the others with `rest`.
    fn paragraph(&mut self, first: &str, rest: &str, words: &str) {
        let mut line = first.to_owned();
        let mut fresh = true;
        for word in shown::line(words).split(' ') {
            if !fresh && text::width(&line) + 1 + text::width(word) > COLUMNS {
                let _ = writeln!(self.text, "{}", line.trim_end());
                line = rest.to_owned();
                fresh = true;
            }
            if !fresh {
                line.push(' ');
            }
            line.push_str(word);
            fresh = false;
        }
        let _ = writeln!(self.text, "{}", line.trim_end());
    }
}
