//! Reads the text of a flow file, key by key.
//!
//! The order follows the dependencies: parameters come first, because templates use them; then resources and the names
//! of stages, because needs and edges refer to them; then the stages; last the graph, as far as the stages could be
//! read.

mod condition;
pub mod machine;
mod op;
mod resource;
mod source;
mod stage;

pub(super) use op::HTTP;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use millstream_command::screen::shown;

use super::error::{FlowError, Problem, Refusal};
use super::halt::HaltPolicy;
use super::model::{DEFAULT_INFLIGHT, FlowFile, MAX_WORKERS, ResourceSpec, SourceSpec, StageSpec};
use super::reader::{Param, Reading, Section};
use super::template::Field;
use super::{graph, joins, suggest};

/// The largest flow file that is read, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Reads and checks the flow file at `path`; `given` are the parameters of the command line.
///
/// # Errors
/// The file cannot be read, is not text, or is not a flow; the error has all mistakes, except those that others hide.
pub fn load(path: &Path, given: &[(String, String)]) -> Result<FlowFile, FlowError> {
    parse(path, &read_text(path)?, given)
}

/// The text of the file at `path`.
///
/// # Errors
/// The file cannot be read, or is not text.
pub(super) fn read_text(path: &Path) -> Result<String, FlowError> {
    let unreadable = |error| FlowError::Unreadable { path: path.to_owned(), error };
    let mut bytes = Vec::new();
    std::fs::File::open(path).and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes)).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(FlowError::TooLarge { path: path.to_owned(), limit: MAX_FILE });
    }
    String::from_utf8(bytes).map_err(|error| {
        let (valid, rest) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
        let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
        FlowError::NotText { path: path.to_owned(), byte: rest[0], line }
    })
}

/// The text as TOML.
///
/// # Errors
/// The text is not TOML.
pub(super) fn document(text: &str) -> Result<toml_edit::Document<&str>, Problem> {
    toml_edit::Document::parse(text).map_err(|error| {
        let span = error.span().unwrap_or(text.len()..text.len());
        Problem::new(format!("this is not TOML: {}", error.message())).at(span, "here")
    })
}

/// Checks a flow file's text; `path` is its name in errors, and `given` are the parameters of the command line.
///
/// # Errors
/// [`FlowError::Refused`] with all mistakes found.
pub fn parse(path: &Path, text: &str, given: &[(String, String)]) -> Result<FlowFile, FlowError> {
    // A byte order mark would shift every span by its three bytes.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let shared: Arc<str> = text.into();
    let refuse = |problems| FlowError::from(Refusal::new(path, shared.clone(), problems));
    let document = document(text).map_err(|problem| refuse(vec![problem]))?;
    if let Some(problem) = cases_of_a_flow(path, document.as_table()) {
        return Err(refuse(vec![problem]));
    }
    let mut reading = Reading::new(text);
    params(&mut reading, document.as_table(), given);
    let flow = flow_file(&reading, document.as_table(), path, shared.clone());
    let problems = reading.into_problems();
    match flow {
        Some(flow) if problems.is_empty() => Ok(flow),
        _ => Err(refuse(problems)),
    }
}

/// The single problem that is reported if the file is a case file instead of a flow file.
fn cases_of_a_flow(path: &Path, table: &toml_edit::Table) -> Option<Problem> {
    if table.contains_key("source") || table.contains_key("stage") {
        return None;
    }
    let (key, _) = table.get_key_value("case")?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let flow = match name.strip_suffix(".test.toml") {
        Some(stem) => shown::path(&path.with_file_name(format!("{stem}.toml"))).to_string(),
        None => "FLOW.toml".to_owned(),
    };
    let problem = Problem::new("this is a file of cases, and not a flow").at(key.span()?, "a case");
    Some(problem.help(format!(
        "`millstream test {flow}` runs its cases; the other commands take the flow itself, `millstream plan {flow}`"
    )))
}

/// Reads `[params]`, with the values given on the command line.
fn params(reading: &mut Reading<'_>, table: &toml_edit::Table, given: &[(String, String)]) {
    let mut declared = BTreeMap::new();
    let mut params = BTreeMap::new();
    let mut flow = Section::new(reading, table, "the flow".to_owned(), 0..0);
    let entry = flow.get("params");
    let section = entry.as_ref().and_then(|entry| entry.section("[params]", "a table of names and defaults"));
    for entry in section.iter().flat_map(Section::entries) {
        if !entry.name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-') || entry.name.is_empty() {
            let problem = Problem::new(format!("`{}` cannot name a parameter", entry.name)).at(entry.key_span, "here");
            reading.report(problem.help("use letters, digits, `_` and `-`, so that `{param.NAME}` can be read"));
            continue;
        }
        if let Some(value) = entry.scalar() {
            params.insert(entry.name.clone(), value);
        }
        declared.insert(entry.name, Param { span: entry.key_span, used: Cell::new(false) });
    }
    for (name, value) in given {
        if declared.contains_key(name) {
            params.entry(name.clone()).and_modify(|slot| slot.clone_from(value));
            continue;
        }
        let problem = Problem::new(format!("the flow has no parameter `{name}`, which `-p {name}=…` sets"));
        let problem = match &entry {
            Some(entry) => problem.at(entry.key_span.clone(), "its parameters are declared here"),
            None => problem,
        };
        let names: Vec<&str> = declared.keys().map(String::as_str).collect();
        reading.report(problem.help(match suggest::closest(name, names.iter().copied()) {
            Some(near) => format!("did you mean `-p {near}=…`?"),
            None if names.is_empty() => "it declares none".to_owned(),
            None => format!("its parameters are {}", names.join(", ")),
        }));
    }
    (reading.declared, reading.params) = (declared, params);
}

/// Reads everything except `[params]`. Returns `None` if mistakes leave no flow; they have been reported.
fn flow_file(reading: &Reading<'_>, table: &toml_edit::Table, path: &Path, text: Arc<str>) -> Option<FlowFile> {
    let mut flow = Section::new(reading, table, "the flow".to_owned(), 0..0);
    flow.get("params");
    let name = flow.get("name").and_then(|entry| entry.identifier());
    let inflight = flow.get("inflight").and_then(|entry| entry.count());
    let memory = flow.get("memory").and_then(|entry| entry.bytes_cap());
    let workers = flow.get("workers").and_then(|entry| entry.integer(1..=MAX_WORKERS as i64));
    let halt = flow.get("halt").and_then(|entry| match entry.as_integer() {
        Some(failures) => entry.understood(HaltPolicy::parse(&failures.to_string())),
        None => entry.parsed("a number of failures, \"10%\" or \"now,5\"", HaltPolicy::parse),
    });
    let machine = flow.get("machine").and_then(|entry| machine::machine(&entry)).unwrap_or_default();
    let resources = resource::resources(flow.get("resources"));
    let source = flow.get("source");
    if source.is_none() {
        let problem = Problem::new("the flow has no `[source]`, so no unit would ever enter it");
        reading.report(problem.help("add `[source]` with `walk = \"{input}\"`, `lines = \"-\"` or `args = true`"));
    }
    let source_span = source.as_ref().map_or(0..0, |entry| entry.key_span.clone());
    let (source, group) = source.and_then(|entry| source::source(&entry)).unzip();
    let mut inputs = reading.take_fields();
    let stages = flow.get("stage");
    if stages.is_none() {
        let problem = Problem::new("the flow has no stages");
        reading.report(problem.help("add `[[stage]]` with a `name` and an `op`"));
    }
    let mut unfed = Vec::new();
    let drafts = stages.and_then(|entry| stage::stages(&entry, &resources));
    flow.finish();
    if let Some(drafts) = &drafts {
        let nodes: Vec<graph::Node<'_>> = drafts.iter().map(stage::Draft::node).collect();
        let grouped = group.unwrap_or(1) > 1 || matches!(source, Some(SourceSpec::Lines { block: Some(_), .. }));
        graph::check(&nodes, source.as_ref(), grouped, &source_span)
            .into_iter()
            .for_each(|problem| reading.report(problem));
        unfed = graph::unfed(&nodes);
    }
    let mut stages: Option<Vec<StageSpec>> = drafts?.into_iter().map(stage::Draft::finish).collect();
    let declared: Vec<ResourceSpec> = resources.iter().filter_map(|declared| declared.spec.clone()).collect();
    for stage in stages.iter_mut().flatten() {
        stage.fibers =
            stage.fibers.or_else(|| stage::beyond_threads(stage, &declared, inflight.unwrap_or(DEFAULT_INFLIGHT)));
    }
    // Joins are checked only in a flow without other mistakes.
    let is_right = reading.is_right();
    let mut warnings = warnings(reading, &resources, stages.iter().flatten());
    warnings.extend(unfed);
    if let (Some(stages), Some(source), Some(group), true) = (&stages, &source, group, is_right) {
        joins::check(stages, source, group).into_iter().for_each(|problem| reading.report(problem));
        warnings.extend(joins::warn(stages, source, group));
    }

    inputs.extend(stages.iter().flatten().flat_map(|stage| stage.fields.iter().cloned()));
    let input_span = inputs.into_iter().find(|(field, _)| *field == Field::Input).map(|(_, span)| span);
    let file_stem = || path.file_stem().map_or_else(|| "flow".to_owned(), |stem| stem.to_string_lossy().into_owned());
    Some(FlowFile {
        path: path.to_owned(),
        text,
        name: name.map_or_else(file_stem, |name| name.value),
        inflight: inflight.unwrap_or(DEFAULT_INFLIGHT),
        memory,
        workers: workers.and_then(|count| usize::try_from(count).ok()),
        halt,
        machine,
        warnings,
        params: reading.params.clone(),
        resources: declared,
        source: source?,
        group: group?,
        source_span,
        stages: stages?,
        input_span,
    })
}

/// Warnings about declared names that are not used, usually because of a typing mistake where the name should be used.
fn warnings<'a>(
    reading: &Reading<'_>,
    resources: &[resource::Declared],
    stages: impl Iterator<Item = &'a StageSpec>,
) -> Vec<Problem> {
    let needed: BTreeSet<&str> = stages.flat_map(|stage| &stage.needs).map(|need| need.resource.as_str()).collect();
    let idle = resources.iter().filter_map(|declared| declared.spec.as_ref());
    let idle = idle.filter(|spec| !needed.contains(spec.name.as_str())).map(|spec| {
        let name = &spec.name;
        let key = if spec.kind.is_keyed() { format!("\"{name}:{{host}}\"") } else { name.clone() };
        Problem::new(format!("no stage needs the resource `{name}`, so it limits nothing"))
            .at(spec.span.clone(), "not used")
            .help(format!("write `needs = {{ {key} = 1 }}` in a stage, or leave it out"))
    });
    let unused = reading.declared.iter().filter(|(_, param)| !param.used.get()).map(|(name, param)| {
        Problem::new(format!("nothing uses the parameter `{name}`"))
            .at(param.span.clone(), "not used")
            .help(format!("write `{{param.{name}}}` where its value belongs, or leave it out"))
    });
    idle.chain(unused).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::model::{BatchSpec, Hold, OpSpec, RateSpec, ResourceKind, RetrySpec, WorkersBound};
    use super::{FlowFile, parse};
    use crate::file::REFERENCE;

    fn reference() -> FlowFile {
        parse("reference.toml".as_ref(), REFERENCE, &[]).unwrap_or_else(|error| panic!("{}", error.render()))
    }

    #[test]
    fn a_stage_for_more_units_than_threads_is_on_fibers_unless_it_says_otherwise() {
        let fibers = |amounts: &str, stage: &str| {
            let text = format!("{amounts}\n[source]\nlines = \"-\"\n[[stage]]\nname = \"get\"\n{stage}");
            let flow = parse("f.toml".as_ref(), &text, &[]).unwrap_or_else(|error| panic!("{}", error.render()));
            flow.stages[0].fibers.map(|fibers| fibers.most)
        };
        let get = "op = \"http-get\"\nurl = \"{line}\"\nneeds = { net = 1 }\n";
        let many = "inflight = 5000\n[resources]\nnet = 3000";
        assert_eq!(fibers(many, get), Some(3000));
        assert_eq!(fibers(many, "op = \"exec\"\nexec = [\"true\"]\nneeds = { net = 2 }\n"), Some(1500));
        assert_eq!(fibers(many, &format!("{get}workers = 2000\n")), None);
        assert_eq!(fibers(many, &format!("{get}blocking = true\n")), None);
        assert_eq!(fibers(many, &format!("{get}fibers = 7\n")), Some(7));
        assert_eq!(fibers(many, "op = \"read\"\nneeds = { net = 1 }\n"), None);
        // Threads suffice for 1024 units. A stage never has more units at once than are in flight in the flow.
        assert_eq!(fibers("inflight = 5000\n[resources]\nnet = 1024", get), None);
        assert_eq!(fibers("inflight = 1000\n[resources]\nnet = 3000", get), None);
    }

    #[test]
    fn the_reference_is_read_as_it_says() {
        let flow = reference();
        assert_eq!(
            (flow.name.as_str(), flow.inflight, flow.memory, flow.workers),
            ("example", 64, Some(64 << 20), Some(4))
        );
        assert_eq!(flow.halt, super::HaltPolicy::parse("10%").ok());
        let kinds: Vec<ResourceKind> = flow.resources.iter().map(|spec| spec.kind).collect();
        assert_eq!(
            kinds,
            [
                ResourceKind::Tokens(16),
                ResourceKind::KeyedTokens(2),
                ResourceKind::Rate(RateSpec { per_second: 50.0, burst: 10 }),
                ResourceKind::KeyedRate(RateSpec { per_second: 10.0, burst: 2 }),
                ResourceKind::Tokens(2),
            ]
        );
        assert_eq!(flow.resources[3].max_keys, Some(1000));
        assert_eq!(flow.resources[4].hold, Hold::Batch);
        let get = &flow.stages[0];
        assert_eq!(get.needs.len(), 3);
        assert_eq!((get.needs[1].resource.as_str(), get.needs[1].until.as_deref()), ("host", Some("strip")));
        assert_eq!(get.needs[1].key.as_ref().unwrap().to_string(), "{host}");
        assert_eq!(
            get.retry,
            Some(RetrySpec { times: 3, backoff: Duration::from_millis(100)..Duration::from_secs(5) })
        );
        assert_eq!(get.timeout, Some(Duration::from_secs(30)));
        assert_eq!(get.workers, Some((WorkersBound::Count(1), WorkersBound::Count(32))));
        assert_eq!(get.batch, Some(BatchSpec { size: 1, wait: Duration::ZERO }));
        assert_eq!((get.queue, get.idempotent, get.blocking), (Some(64), Some(true), Some(true)));
        let edges: Vec<(Option<&str>, Option<&str>)> =
            flow.stages.iter().map(|stage| (stage.next.as_deref(), stage.otherwise.as_deref())).collect();
        let next = |name| (Some(name), None);
        assert_eq!(
            edges,
            [next("pages"), next("strip"), next("hash"), next("pack"), next("keep"), next("list"), (None, None)]
        );
        assert!(
            matches!(&flow.stages[5].op, OpSpec::Write { path, skip_existing: true, .. } if path.to_string() == "pages/{shard}/{name}.zst")
        );
    }

    #[test]
    fn what_the_reference_leaves_to_comments_is_read_too() {
        for (from, to) in [
            ("lines = \"-\"", "args = true"),
            (
                "lines = \"-\"\nnull = false",
                "walk = \"{input}\"\nhidden = true\nignored = true\nfollow = false\nexcept = [\"{param.out}\", \"x\"]\nname = [\"*.rs\", \"*.{md,toml}\"]",
            ),
            ("op = \"blake3\"", "op = \"sha256\""),
            ("stdout = \"payload\"", "stdout = { file = \"{param.out}/{name}\" }"),
            ("env = { LC_ALL = \"C\" }", "dir = \"{input}\"\nshell = true"),
            ("all = [", "any = [{ size = \"1KiB..1MiB\" },"),
            ("op = \"blake3\"", "op = \"check\"\nfield = \"size\"\nequals = \"5\""),
            ("op = \"blake3\"", "op = \"parse\""),
        ] {
            // Some cases replace several lines at once, so the comments at the ends of lines are removed first.
            let text: String = REFERENCE
                .lines()
                .map(|line| line.split("   #").next().unwrap_or("").trim_end().to_owned() + "\n")
                .collect();
            let text =
                text.replace("{line}", "{path}").replace("{host}", "{name}").replace("{json:line}", "{json:path}");
            let text = text.replace("{blake3}", "{size}").replace("{shard}", "{stem}");
            let changed = text.replacen(from, to, 1);
            assert_ne!(text, changed, "{from}");
            let changed = if to.starts_with("args") { changed.replace("null = false\n", "") } else { changed };
            assert!(
                parse("f.toml".as_ref(), &changed, &[]).map_err(|error| panic!("{to}:\n{}", error.render())).is_ok()
            );
        }
    }

    #[test]
    fn a_flow_of_almost_nothing_has_defaults() {
        let flow =
            parse("dir/copy.toml".as_ref(), "[source]\nargs = true\n[[stage]]\nname = \"a\"\nop = \"read\"", &[])
                .unwrap();
        assert_eq!((flow.name.as_str(), flow.inflight, flow.memory, flow.workers), ("copy", 256, None, None));
        let stage = &flow.stages[0];
        assert!(stage.retry.is_none() && stage.batch.is_none() && stage.next.is_none() && stage.needs.is_empty());
        assert!(matches!(&stage.op, OpSpec::Read { path, .. } if path.to_string() == "{path}"));
    }

    #[test]
    fn a_byte_order_mark_and_dos_line_ends_are_read() {
        let text = "\u{feff}[source]\r\nargs = true\r\n[[stage]]\r\nname = \"a\"\r\nop = \"read\"\r\n";
        assert!(parse("f.toml".as_ref(), text, &[]).is_ok());
    }

    #[test]
    fn the_command_line_sets_parameters() {
        let text = "[params]\nout = \"x\"\nlevel = 3\n[source]\nargs = true\n[[stage]]\nname = \"a\"\nop = \"read\"\npath = \"{param.out}{param.level}\"";
        let flow = parse("f.toml".as_ref(), text, &[("out".to_owned(), "y{}".to_owned())]).unwrap();
        assert!(matches!(&flow.stages[0].op, OpSpec::Read { path, .. } if path.constant() == Some(b"y{}3")));
    }
}
