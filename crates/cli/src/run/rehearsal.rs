//! `run --dry-run`: tells what each stage would do with the first units, and does nothing.
//!
//! Ops without effects run: they read files, compute fields and decide conditions. Ops with effects (programs, requests,
//! writing) are told instead. Their results are not known, so what depends on them is told with its fields as the flow file
//! writes them. One unit is in flight at a time, in an engine flow without needs, retries and time limits.

use std::borrow::Cow;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use millstream_command::screen::{out, shown, text};
use millstream_flow::{Cx, DeadLetter, Failure, Flow, Inlet, select};

use super::ending::{ALL_RETIRED, NOT_WRITTEN, SOME_DEAD};
use super::{RunError, exit};
use crate::args::RunArgs;
use crate::file::FlowFile;
use crate::file::model::{ExecSpec, ExecStderr, ExecStdin, ExecStdout, MachineSpec, OpSpec, StageSpec};
use crate::file::template::{Field, Fields, Template};
use crate::machine::Machine;
use crate::ops::{self, Op, Surroundings, rendered_path};
use crate::printer::Printer;
use crate::record::Record;
use crate::shell_word::quoted;
use crate::{source, wire};

/// Columns that the name of a stage takes at most.
const MAX_NAME_COLUMNS: usize = 24;

/// A unit that is not really run.
#[derive(Debug, Clone)]
struct Rehearsed {
    record: Record,
    /// A line for each stage, which tells its part.
    told: Vec<String>,
    /// The stage whose result the payload would be, if that is not known.
    payload_of: Option<String>,
}

/// A stage that tells what it would do.
struct Stage {
    name: String,
    columns: usize,
    spec: OpSpec,
    op: Box<dyn Op>,
    next: Option<String>,
    otherwise: Option<String>,
}

/// Tells what the flow would do with the first `most` units, and gives the exit status.
pub(super) fn rehearse(args: &RunArgs, most: usize) -> ExitCode {
    exit(try_rehearse(args, most))
}

fn try_rehearse(args: &RunArgs, most: usize) -> Result<u8, RunError> {
    let mut file = args.flow.load()?;
    file.bind_inputs(&args.input)?;
    if let Some(warnings) = file.render_warnings() {
        out::complain_page(&warnings);
    }
    // The checks of a flow that runs.
    drop(wire::wire(&file, |_| {}, None, Arc::default())?);
    let mut units = source::open(&file, &args.input, &Arc::default())?.take(most.saturating_add(1)).peekable();
    let printed = Arc::new(Mutex::new(Ok(())));
    let failed = Arc::new(AtomicBool::new(false));
    let flow = flow_of(&file, &printed, &failed);
    let mut count = 0;
    flow.run(std::iter::from_fn(|| {
        count += 1;
        let record = units.next_if(|_| count <= most)?;
        Some(Rehearsed { record, told: Vec::new(), payload_of: None })
    }));
    let mut printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
    if printed.is_ok() && units.peek().is_some() {
        *printed = out::print(&format!("… and more units; `--dry-run={}` tells of more\n", most.saturating_mul(10)));
    }
    if let Err(error) = &*printed {
        out::complain(format!("error: cannot write to standard output: {error}"));
        return Ok(NOT_WRITTEN);
    }
    Ok(if failed.load(Ordering::Relaxed) { SOME_DEAD } else { ALL_RETIRED })
}

type Printed = Arc<Mutex<std::io::Result<()>>>;

/// The flow of these stages, one unit at a time.
fn flow_of(file: &FlowFile, printed: &Printed, failed: &Arc<AtomicBool>) -> Flow<Rehearsed, Rehearsed> {
    let mut builder = Flow::builder::<Rehearsed>(file.name.clone());
    let (letters, failed) = (Arc::clone(printed), Arc::clone(failed));
    builder.inflight(1).workers(1).on_dead_letter(move |letter: DeadLetter| {
        // Relaxed: it is read when the flow is over.
        failed.store(true, Ordering::Relaxed);
        let told = letter.input::<Rehearsed>().map(page).unwrap_or_default();
        let failure = format!("  fails in {}: {}\n", text::printable(&letter.stage), shown::line(&letter.message));
        print(&letters, &(told + &failure));
    });
    let retired = Arc::clone(printed);
    builder.on_retire(move |unit: Rehearsed| print(&retired, &page(&unit)));
    let (printer, machine) = (Arc::new(Printer::new(0)), Arc::new(Machine::new(MachineSpec::default())));
    let columns = file.stages.iter().map(|stage| text::width(&stage.name)).max().unwrap_or(0).min(MAX_NAME_COLUMNS);
    let inlets: Vec<Inlet<Rehearsed>> = file.stages.iter().map(|stage| builder.inlet(stage.name.clone())).collect();
    let inlet = |name: &str| inlets[file.stages.iter().position(|stage| stage.name == name).expect("it was checked")];
    for (index, spec) in file.stages.iter().enumerate() {
        let around =
            Surroundings { most_in_memory: file.most_in_memory(), attempts: 1, printer: &printer, machine: &machine };
        let stage = Stage::of(spec, columns, &around);
        let retire = builder.retire();
        let exit = |name: Option<&String>| name.map_or_else(|| retire.into(), |name| inlet(name).into());
        let exits = [exit(spec.next.as_ref()), exit(spec.otherwise.as_ref())];
        builder
            .update(inlets[index], move |unit: &mut Rehearsed, cx: &mut Cx<'_>| stage.run(unit, cx))
            .to(select(|unit: &Rehearsed| usize::from(unit.record.filtered), exits));
    }
    builder.build(inlets[0]).expect("the flow was checked, and this one has no needs")
}

fn print(printed: &Printed, page: &str) {
    let mut printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
    if printed.is_ok() {
        *printed = out::print(page);
    }
}

/// The unit, and below it what the stages would do.
fn page(unit: &Rehearsed) -> String {
    let name = String::from_utf8_lossy(&unit.record.shown_text()).into_owned();
    let mut page = format!("{}\n", text::printable(&name));
    for line in &unit.told {
        page += &format!("  {}\n", shown::line(line));
    }
    page
}

impl Stage {
    fn of(spec: &StageSpec, columns: usize, around: &Surroundings<'_>) -> Self {
        Self {
            name: spec.name.clone(),
            columns,
            spec: spec.op.clone(),
            op: ops::build(&spec.op, around).expect("the flow was checked"),
            next: spec.next.clone(),
            otherwise: spec.otherwise.clone(),
        }
    }

    fn run(&self, unit: &mut Rehearsed, cx: &mut Cx<'_>) -> Result<(), Failure> {
        if let Some(fault) = &unit.record.fault {
            return Err(Failure::permanent(fault.clone()));
        }
        unit.record.filtered = false;
        let told = match self.tell(unit)? {
            Some(told) => told,
            None => match self.op.run(&mut unit.record, cx) {
                Ok(()) => self.done(&unit.record),
                Err(_) if unit.payload_of.is_some() => self.not_known(unit),
                Err(failure) => return Err(failure),
            },
        };
        unit.told.push(format!("{}  {told}", text::left(&self.name, self.columns)));
        Ok(())
    }

    /// The line of an op that has effects or depends on their results; `None` for one that can run.
    fn tell(&self, unit: &mut Rehearsed) -> Result<Option<String>, Failure> {
        let record = &Known { record: &unit.record, payload: unit.payload_of.is_none() };
        let content =
            unit.payload_of.as_ref().map_or_else(|| "the payload".to_owned(), |stage| format!("the result of {stage}"));
        Ok(Some(match &self.spec {
            OpSpec::Exec(spec) => {
                let told = command(spec, record, &content)?;
                if matches!(spec.stdout, ExecStdout::Payload) {
                    unit.payload_of = Some(self.name.clone());
                }
                told
            }
            OpSpec::HttpGet(spec) => {
                let url = shown_bytes(&spec.url.render_known(record));
                unit.payload_of = Some(self.name.clone());
                format!("GET {url}")
            }
            OpSpec::Write { path, overwrite, skip_existing, .. } => {
                let (name, exists) = target(path, record)?;
                let fate = match (exists, overwrite, skip_existing) {
                    (false, ..) => "",
                    (true, true, _) => ", in place of the file there",
                    (true, _, true) => ", unless that is the file there already: it is kept",
                    (true, false, false) => ": fails, for a file of this name is there",
                };
                format!("{content} to {name}{fate}")
            }
            OpSpec::Append { path, line, .. } => {
                format!("{} to {}", shown_bytes(&line.render_known(record)), target(path, record)?.0)
            }
            OpSpec::Print { .. } => format!("prints {content}"),
            OpSpec::Blake3 | OpSpec::Sha256 | OpSpec::Zstd { .. } | OpSpec::Parse { .. } | OpSpec::Check { .. }
                if unit.payload_of.is_some() =>
            {
                self.not_known(unit)
            }
            _ => return Ok(None),
        }))
    }

    /// The line of an op that has run.
    fn done(&self, record: &Record) -> String {
        let payload = || record.payload.known_len().map_or_else(|| "a payload".to_owned(), text::bytes);
        let hash = |hash: Option<[u8; 32]>| hash.map(|hash| hex::encode(&hash[..8])).unwrap_or_default();
        match &self.spec {
            OpSpec::Read { path, .. } => format!("{}, {}", shown_bytes(&path.render_known(record)), payload()),
            OpSpec::Blake3 => format!("blake3 {}…", hash(record.blake3)),
            OpSpec::Sha256 => format!("sha256 {}…", hash(record.sha256)),
            OpSpec::Zstd { .. } => payload(),
            OpSpec::Set { payload, fields } => {
                let mut set: Vec<String> = fields
                    .iter()
                    .map(|(name, _)| {
                        let value = record.field(&Field::Set(name.clone())).unwrap_or_default();
                        format!("{name} = {}", shown_bytes(&value))
                    })
                    .collect();
                set.extend(
                    payload
                        .as_ref()
                        .map(|_| format!("payload = {}", shown_bytes(record.payload.as_bytes().unwrap_or_default()))),
                );
                set.join(", ")
            }
            OpSpec::Filter { .. } => {
                let (holds, exit) =
                    if record.filtered { ("does not hold", &self.otherwise) } else { ("holds", &self.next) };
                let to = exit.as_ref().map_or_else(|| "leaves the flow".to_owned(), |stage| format!("on to {stage}"));
                format!("{holds}: {to}")
            }
            _ => "as expected".to_owned(),
        }
    }

    fn not_known(&self, unit: &Rehearsed) -> String {
        let of = unit.payload_of.as_deref().unwrap_or_default();
        match &self.spec {
            OpSpec::Filter { .. } => format!("depends on the result of {of}; taken to hold"),
            _ => format!("{} of the result of {of}, which is not known", self.spec.name()),
        }
    }
}

/// The fields of a unit that are known before the run.
struct Known<'a> {
    record: &'a Record,
    /// Whether the payload is known.
    payload: bool,
}

impl Fields for Known<'_> {
    fn field(&self, field: &Field) -> Option<Cow<'_, [u8]>> {
        let is_of_payload = *field == Field::Size && self.record.size.is_none() && self.record.line_text().is_some();
        self.record.field(field).filter(|_| self.payload || !is_of_payload)
    }
}

/// The command line of a program, for a shell to read, and where its streams go.
fn command(spec: &ExecSpec, record: &Known<'_>, content: &str) -> Result<String, Failure> {
    let mut words: Vec<String> = Vec::new();
    for word in &spec.argv {
        match record.record.items().filter(|_| word.is_only(&Field::Items)) {
            Some(items) => words.extend(items.map(quoted)),
            None => words.push(quoted(&word.render_known(record))),
        }
    }
    if spec.shell {
        words.insert(0, "sh -c".to_owned());
        words.insert(2, "sh".to_owned());
    }
    let mut told = words.join(" ");
    if matches!(spec.stdin, ExecStdin::Payload) && content != "the payload" {
        told += &format!(" < {content}");
    }
    if let ExecStdout::File { path, .. } = &spec.stdout {
        told += &format!(" > {}", target(path, record)?.0);
    }
    if let ExecStderr::File(path) = &spec.stderr {
        told += &format!(" 2> {}", target(path, record)?.0);
    }
    Ok(told)
}

/// The name of a file that would be written, and whether something has it.
fn target(path: &Template, record: &Known<'_>) -> Result<(String, bool), Failure> {
    let is_known = path.fields().all(|(field, _)| record.field(field).is_some());
    if !is_known {
        return Ok((shown_bytes(&path.render_known(record)), false));
    }
    let path = rendered_path(path, record.record)?;
    Ok((shown::path(&path).to_string(), path.symlink_metadata().is_ok()))
}

fn shown_bytes(bytes: &[u8]) -> String {
    text::printable(&String::from_utf8_lossy(bytes)).into_owned()
}
