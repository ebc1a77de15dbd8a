//! `run --dry-run`: shows what each stage would do with the first units, and changes nothing.
//!
//! Ops without effects run: they read files, compute fields and decide conditions. Ops with effects (programs,
//! requests, writes) are only described. Their results are unknown, so a text that depends on these results is shown as
//! it is written in the flow file. Only one unit is in flight at a time, and the flow has no needs, retries or time
//! limits.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use millstream_command::hex;
use millstream_command::screen::{out, shown, text};
use millstream_flow::{Cx, DeadLetter, Failure, Flow, Gather, Inlet, select};
use millstream_runner::file::FlowFile;
use millstream_runner::file::model::{
    Condition, ExecSpec, ExecStderr, ExecStdin, ExecStdout, GatherBy, GatherSpec, MachineSpec, OpSpec, Reduce, SplitBy,
    StageSpec,
};
use millstream_runner::file::template::{Field, Fields, Template};
use millstream_runner::machine::Machine;
use millstream_runner::ops::{self, Op, Surroundings, rendered_path};
use millstream_runner::printer::Printer;
use millstream_runner::record::Record;
use millstream_runner::{source, web_url, wire};

use super::ending::{ALL_RETIRED, NOT_WRITTEN, SOME_DEAD};
use super::{RunError, exit};
use crate::args::RunArgs;
use crate::shell_word::quoted;

/// How often a unit may pass the same stage in a loop without effects.
const MAX_ROUNDS: usize = 1000;
/// The maximum number of columns for the name of a stage.
const MAX_NAME_COLUMNS: usize = 24;

/// A unit of a rehearsal.
#[derive(Debug, Clone, Default)]
struct Rehearsed {
    record: Record,
    /// A line of text for each stage that the unit has passed.
    told: Vec<String>,
    /// The stage whose result would be the payload, if that result is unknown.
    payload_of: Option<String>,
    /// The results that a run would have at this point, but that are unknown in the rehearsal. Their names come from
    /// [`source_of`].
    later: BTreeSet<String>,
    /// The stages that the unit has passed.
    been: Vec<String>,
    /// Whether one of these stages would have had an effect.
    effects: bool,
    /// Whether the rest of the unit's path is unknown.
    ends: bool,
    /// The original unit at the time of the copy, if this unit is a copy.
    whole: Option<Arc<Rehearsed>>,
}

/// The name in [`Rehearsed::later`] of the result that gives a field its value; `None` if no stage sets the field.
fn source_of(field: &Field) -> Option<String> {
    match field {
        Field::Blake3 | Field::Shard => Some("blake3".to_owned()),
        Field::Sha256 => Some("sha256".to_owned()),
        Field::Json(_) => Some("json".to_owned()),
        Field::Size => Some("size".to_owned()),
        Field::Set(name) => Some(format!("set.{name}")),
        Field::Copy(stage, field) => source_of(field).map(|source| format!("copy.{stage}.{source}")),
        _ => None,
    }
}

impl Rehearsed {
    fn new(record: Record) -> Self {
        Self { record, ..Self::default() }
    }

    /// Whether a run would know the field's value at this point, but the rehearsal does not.
    fn is_later(&self, field: &Field) -> bool {
        source_of(field).is_some_and(|source| self.later.contains(&source))
    }

    fn has_later(&self, template: &Template) -> bool {
        template.fields().any(|(field, _)| self.is_later(field))
    }

    /// Notes that the payload is now the unknown result of a stage.
    fn becomes_result_of(&mut self, stage: &str) {
        self.payload_of = Some(stage.to_owned());
        if self.record.size.is_none() && self.record.line_text().is_some() {
            self.later.insert("size".to_owned());
        }
    }

    fn payload_is_known(&mut self) {
        self.payload_of = None;
        self.later.remove("size");
    }

    /// The template's text. A field without a known value appears as it is written in the template.
    fn render(&self, template: &Template) -> Result<Vec<u8>, Failure> {
        if self.has_later(template) {
            return Ok(template.render_known(&Known(self)));
        }
        template.render(&self.record).map_err(|error| Failure::from(error).to_permanent())
    }

    fn shown(&self, template: &Template) -> Result<String, Failure> {
        self.render(template).map(|bytes| shown_bytes(&web_url::without_credentials(&bytes)))
    }

    /// The name of a file that would be written, and whether a file of that name exists.
    fn target(&self, path: &Template) -> Result<(String, bool), Failure> {
        if self.has_later(path) {
            return Ok((shown_bytes(&path.render_known(&Known(self))), false));
        }
        let path = rendered_path(path, &self.record)?;
        Ok((shown::path(&path).to_string(), path.symlink_metadata().is_ok()))
    }

    /// Whether a condition depends on unknown fields.
    fn is_open(&self, condition: &Condition) -> bool {
        match condition {
            Condition::Size { .. } => self.is_later(&Field::Size),
            Condition::Content { path, .. } => self.payload_of.is_some() || self.has_later(path),
            Condition::Exists(path) | Condition::Missing(path) => self.has_later(path),
            Condition::Has(text) | Condition::Text { text, .. } => self.has_later(text),
            Condition::Stale { target, than } => self.has_later(target) || self.has_later(than),
            Condition::Number { number, bounds } | Condition::Date { date: number, bounds } => {
                self.has_later(number) || bounds.iter().any(|(_, bound)| self.has_later(bound))
            }
            Condition::Not(inner) => self.is_open(inner),
            Condition::All(inner) | Condition::Any(inner) => inner.iter().any(|inner| self.is_open(inner)),
        }
    }
}

/// A stage of the rehearsal, which reports what it would do.
struct Stage {
    name: String,
    columns: usize,
    spec: OpSpec,
    op: Box<dyn Op>,
    next: Option<String>,
    otherwise: Option<String>,
}

/// Shows what the flow would do with the first `most` units, and returns the exit status.
pub(super) fn rehearse(args: &RunArgs, most: usize) -> ExitCode {
    exit(try_rehearse(args, most))
}

fn try_rehearse(args: &RunArgs, most: usize) -> Result<u8, RunError> {
    let mut file = args.flow.load()?;
    file.bind_inputs(&args.input)?;
    if let Some(warnings) = file.render_warnings() {
        out::complain_page(&warnings);
    }
    // These are the checks that a run makes before it starts.
    drop(wire::wire(&file, |_| {}, None, Arc::default())?);
    let mut units = source::open(&file, &args.input, &Arc::default())?.take(most);
    let printed = Arc::new(Mutex::new(Ok(())));
    let failed = Arc::new(AtomicBool::new(false));
    let flow = flow_of(&file, &printed, &failed);
    let mut count = 0;
    flow.run(std::iter::from_fn(|| {
        let record = units.next()?;
        count += 1;
        Some(Rehearsed::new(record))
    }));
    let mut printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
    if printed.is_ok() && count == most {
        // The source is not asked whether there are more units, because that could block.
        let more = most.saturating_mul(10);
        *printed =
            out::print(&format!("… the first {}; `--dry-run={more}` shows more\n", text::counted(most as u64, "unit")));
    }
    if let Err(error) = &*printed {
        out::complain(format!("error: cannot write to standard output: {error}"));
        return Ok(NOT_WRITTEN);
    }
    Ok(if failed.load(Ordering::Relaxed) { SOME_DEAD } else { ALL_RETIRED })
}

type Printed = Arc<Mutex<std::io::Result<()>>>;

/// A flow of these stages, with one unit in flight at a time.
fn flow_of(file: &FlowFile, printed: &Printed, failed: &Arc<AtomicBool>) -> Flow<Rehearsed, Rehearsed> {
    let mut builder = Flow::builder::<Rehearsed>(file.name.clone());
    let (letters, failed) = (Arc::clone(printed), Arc::clone(failed));
    builder.inflight(1).workers(1).on_dead_letter(move |letter: DeadLetter| {
        // Relaxed: the value is read when the flow is over.
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
        let around = Surroundings {
            most_in_memory: file.most_in_memory(),
            open_lists: 1,
            attempts: 1,
            fibers: false,
            printer: &printer,
            machine: &machine,
            stand_ins: None,
        };
        let stage = Stage::of(spec, columns, &around);
        let retire = builder.retire();
        let exit = |name: Option<&String>| name.map_or_else(|| retire.into(), |name| inlet(name).into());
        if let Some(copies) = spec.op.copies() {
            let exits: Vec<_> = copies.iter().map(|stage| inlet(stage).into()).collect();
            let printed = Arc::clone(printed);
            let copies = move |unit: &mut Rehearsed, cx: &mut Cx<'_>| stage.copies(unit, &printed, cx);
            builder.split(inlets[index], copies).to(select(|copy: &Rehearsed| copy.record.part() as usize - 1, exits));
            continue;
        }
        if let OpSpec::Gather(GatherSpec { by: GatherBy::Parent, .. }) = &spec.op {
            let gather = stage.gather_copies(Arc::clone(printed));
            let gathers = builder.gather(inlets[index], gather);
            match spec.next.as_ref() {
                Some(next) => gathers.to(inlet(next)),
                None => gathers.to(retire),
            }
            continue;
        }
        let exits = vec![exit(spec.next.as_ref()), exit(spec.otherwise.as_ref()), exit(None)];
        builder
            .update(inlets[index], move |unit: &mut Rehearsed, cx: &mut Cx<'_>| stage.run(unit, cx))
            .to(select(|unit: &Rehearsed| if unit.ends { 2 } else { usize::from(unit.record.filtered) }, exits));
    }
    builder.build(inlets[0]).expect("the flow was checked, and this one has no needs")
}

fn print(printed: &Printed, page: &str) {
    let mut printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
    if printed.is_ok() {
        *printed = out::print(page);
    }
}

/// The unit's text, followed by the lines of the stages.
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

    /// Notes that the unit has entered this stage.
    fn enter(&self, unit: &mut Rehearsed) -> Result<(), Failure> {
        if let Some(fault) = &unit.record.rare.fault {
            return Err(Failure::permanent(fault.clone()));
        }
        let again = unit.been.iter().filter(|been| **been == self.name).count();
        if again > 0 && unit.effects || again > MAX_ROUNDS {
            let message = "it returns to this stage, and the rest depends on results of earlier stages";
            return Err(Failure::permanent(message));
        }
        unit.been.push(self.name.clone());
        unit.record.filtered = false;
        // In a loop, the unit may have passed this stage before. Without this assignment, the op would not run on it
        // again.
        unit.record.done_by = 0;
        Ok(())
    }

    fn run(&self, unit: &mut Rehearsed, cx: &mut Cx<'_>) -> Result<(), Failure> {
        self.enter(unit)?;
        let told = match self.tell(unit)? {
            Some(told) => told,
            None => match &self.spec {
                OpSpec::Split(_) => self.split(unit, cx)?,
                OpSpec::Gather(spec) => gather(unit, spec, cx)?,
                _ => {
                    self.op.run(&mut unit.record, cx)?;
                    self.ran(unit)
                }
            },
        };
        unit.told.push(self.line(&told));
        Ok(())
    }

    /// The line for this stage in a unit's text.
    fn line(&self, told: &str) -> String {
        format!("{}  {told}", text::left(&self.name, self.columns))
    }

    /// The copies of the unit. From here on, each copy has lines of its own.
    fn copies(
        &self,
        unit: &mut Rehearsed,
        printed: &Printed,
        cx: &mut Cx<'_>,
    ) -> Result<impl Iterator<Item = Result<Rehearsed, Failure>> + Send + use<>, Failure> {
        self.enter(unit)?;
        unit.told.push(self.line(&format!("a copy for each of {}", self.spec.copies().unwrap_or_default().join(", "))));
        print(printed, &page(unit));
        unit.told.clear();
        // In a loop, copies could be copied again without end. With this mark, a copy that returns to a stage ends
        // there.
        unit.effects = true;
        let pieces = self.op.open(&mut unit.record, cx)?;
        let whole = Arc::new(unit.clone());
        Ok(pieces.map(move |copy| {
            Ok(Rehearsed { record: copy?, whole: Some(Arc::clone(&whole)), ..Rehearsed::clone(&whole) })
        }))
    }

    /// The rules for gathering copies into their unit. A piece of another kind becomes a group of its own, because the
    /// rehearsal cuts only the first such piece.
    fn gather_copies(self, printed: Printed) -> Gather<Rehearsed, Rehearsed> {
        let OpSpec::Gather(spec) = self.spec.clone() else { unreachable!("no other op gathers") };
        let is_partial = spec.partial;
        let gather =
            Gather::fold(Rehearsed::default, move |group: &mut Rehearsed, member: &mut Rehearsed, cx: &mut Cx<'_>| {
                self.enter(member)?;
                let Some(whole) = member.whole.clone() else {
                    let told = gather(member, &spec, cx)?;
                    member.told.push(self.line(&told));
                    *group = member.clone();
                    return Ok(());
                };
                ops::gather::join(&mut group.record, &member.record, &spec, cx)?;
                if group.been.is_empty() {
                    let record = std::mem::take(&mut group.record);
                    *group = Rehearsed { record, ..Rehearsed::clone(&whole) };
                    group.payload_of = None;
                    group.been.push(self.name.clone());
                    group.told.push(self.line("the copies are one unit again"));
                }
                if let Some(stage) = member.record.copied_for() {
                    group.later.extend(member.later.iter().map(|source| format!("copy.{stage}.{source}")));
                }
                if spec.reduce != Reduce::Count
                    && (spec.item.as_ref().map_or(member.payload_of.is_some(), |item| member.has_later(item)))
                {
                    group.becomes_result_of(&self.name);
                }
                member.told.push(self.line("joins the other copies of its unit"));
                print(&printed, &page(member));
                Ok(())
            });
        let gather = gather.by_parent().finish(|group: &mut Rehearsed| ops::gather::finish(&mut group.record));
        if is_partial { gather.even_if_torn() } else { gather }
    }

    /// The line of an op that has effects, or that depends on results of effects; `None` for an op that can run.
    fn tell(&self, unit: &mut Rehearsed) -> Result<Option<String>, Failure> {
        let of = unit.payload_of.clone();
        let content = of.as_ref().map_or_else(|| "the payload".to_owned(), |stage| format!("the result of {stage}"));
        let told = match (&self.spec, of) {
            (OpSpec::Exec(spec), _) => {
                let told = command(spec, unit, &content)?;
                if matches!(spec.stdout, ExecStdout::Payload) {
                    unit.becomes_result_of(&self.name);
                }
                told
            }
            (OpSpec::Http(spec), _) => {
                let mut told = format!("{} {}", spec.method.name(), unit.shown(&spec.url)?);
                match &spec.body {
                    _ if !spec.method.has_body() => {}
                    Some(body) => told += &format!(" < {}", shown_bytes(&unit.render(body)?)),
                    None => told += &format!(" < {content}"),
                }
                unit.later.extend(spec.fields.iter().map(|(name, _)| format!("set.{name}")));
                if self.spec.gives_payload() {
                    unit.becomes_result_of(&self.name);
                }
                told
            }
            (OpSpec::Write { path, overwrite, skip_existing, .. }, _) => {
                let (name, exists) = unit.target(path)?;
                let fate = match (exists, overwrite, skip_existing) {
                    (false, ..) => "",
                    (true, true, _) => ", in place of the file there",
                    (true, _, true) => ", unless that is the file there already: it is kept",
                    (true, false, false) => ": fails, because a file of this name exists",
                };
                format!("{content} to {name}{fate}")
            }
            (OpSpec::Append { path, line, .. }, _) => {
                format!("{} to {}", shown_bytes(&unit.render(line)?), unit.target(path)?.0)
            }
            (OpSpec::Print { .. }, _) => format!("prints {content}"),
            (OpSpec::Split(spec), Some(of)) => {
                unit.ends = true;
                return Ok(Some(format!("{} of the result of {of}, which is not known", each(&spec.by))));
            }
            (OpSpec::Filter { when }, of) if unit.is_open(when) => {
                let of = of.unwrap_or_else(|| "earlier stages".to_owned());
                return Ok(Some(format!("depends on the result of {of}; taken to be true")));
            }
            (OpSpec::Unique { by, .. }, of) if unit.has_later(by) => {
                let of = of.unwrap_or_else(|| "earlier stages".to_owned());
                return Ok(Some(format!("depends on the result of {of}; taken to be the first")));
            }
            (OpSpec::Set { payload, fields }, _)
                if fields.iter().map(|(_, value)| value).chain(payload).any(|value| unit.has_later(value)) =>
            {
                return self.set_later(unit, payload.as_ref(), fields).map(Some);
            }
            (
                OpSpec::Blake3
                | OpSpec::Sha256
                | OpSpec::Zstd { .. }
                | OpSpec::Gzip { .. }
                | OpSpec::Parse { .. }
                | OpSpec::Stream { .. }
                | OpSpec::Check { .. },
                Some(of),
            ) => {
                let source = match self.spec {
                    OpSpec::Blake3 => Some("blake3"),
                    OpSpec::Sha256 => Some("sha256"),
                    OpSpec::Parse { .. } => Some("json"),
                    _ => None,
                };
                unit.later.extend(source.map(str::to_owned));
                return Ok(Some(format!("{} of the result of {of}, which is not known", self.spec.name())));
            }
            // These ops have no effects and do not need an unknown payload, so they run.
            (
                OpSpec::Read { .. }
                | OpSpec::Blake3
                | OpSpec::Sha256
                | OpSpec::Zstd { .. }
                | OpSpec::Gzip { .. }
                | OpSpec::Parse { .. }
                | OpSpec::Stream { .. }
                | OpSpec::Check { .. }
                | OpSpec::Set { .. }
                | OpSpec::Filter { .. }
                | OpSpec::Unique { .. }
                | OpSpec::Split(_)
                | OpSpec::Gather(_),
                _,
            ) => return Ok(None),
        };
        unit.effects = true;
        Ok(Some(told))
    }

    /// Cuts the first piece, which takes the place of the unit in the rehearsal.
    fn split(&self, unit: &mut Rehearsed, cx: &mut Cx<'_>) -> Result<String, Failure> {
        let first = self.op.open(&mut unit.record, cx)?.next().transpose()?;
        let OpSpec::Split(spec) = &self.spec else { unreachable!("no other op splits") };
        let Some(first) = first else {
            unit.ends = true;
            return Ok(format!("{}, of which there is none", each(&spec.by)));
        };
        let told = format!("{}; the first: {}", each(&spec.by), shown_bytes(&first.shown_text()));
        unit.record = first;
        unit.payload_is_known();
        // In a loop, the stage could split its own pieces forever. With this mark, a unit that returns to a stage ends
        // there.
        unit.effects = true;
        Ok(told)
    }

    /// Describes a `set` stage whose values depend on unknown results.
    fn set_later(
        &self,
        unit: &mut Rehearsed,
        payload: Option<&Template>,
        fields: &[(String, Template)],
    ) -> Result<String, Failure> {
        let mut told = Vec::new();
        for (name, value) in fields {
            told.push(format!("{name} = {}", shown_bytes(&unit.render(value)?)));
        }
        if let Some(payload) = payload {
            told.push(format!("payload = {}", shown_bytes(&unit.render(payload)?)));
        }
        unit.later.extend(fields.iter().map(|(name, _)| format!("set.{name}")));
        if payload.is_some() {
            unit.becomes_result_of(&self.name);
        }
        Ok(told.join(", "))
    }

    /// Notes the fields that an op has computed, and returns the op's line.
    fn ran(&self, unit: &mut Rehearsed) -> String {
        match &self.spec {
            OpSpec::Read { .. } | OpSpec::Set { payload: Some(_), .. } => unit.payload_is_known(),
            OpSpec::Blake3 => drop(unit.later.remove("blake3")),
            OpSpec::Sha256 => drop(unit.later.remove("sha256")),
            OpSpec::Parse { .. } => drop(unit.later.remove("json")),
            _ => {}
        }
        if let OpSpec::Set { fields, .. } = &self.spec {
            for (name, _) in fields {
                unit.later.remove(&format!("set.{name}"));
            }
        }
        self.done(&unit.record)
    }

    /// The line of an op that has run.
    fn done(&self, record: &Record) -> String {
        let payload = || record.payload.known_len().map_or_else(|| "a payload".to_owned(), text::bytes);
        let hash = |hash: Option<[u8; 32]>| hash.map(|hash| hex::encode(&hash[..8])).unwrap_or_default();
        match &self.spec {
            OpSpec::Read { path, .. } => format!("{}, {}", shown_bytes(&path.render_known(record)), payload()),
            OpSpec::Blake3 => format!("blake3 {}…", hash(record.rare.blake3)),
            OpSpec::Sha256 => format!("sha256 {}…", hash(record.rare.sha256)),
            OpSpec::Zstd { .. } | OpSpec::Gzip { .. } | OpSpec::Stream { .. } => payload(),
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
            OpSpec::Filter { .. } | OpSpec::Unique { .. } => {
                let (no, yes) = match self.spec {
                    OpSpec::Unique { .. } => ("not the first", "the first"),
                    _ => ("false", "true"),
                };
                let (result, exit) = if record.filtered { (no, &self.otherwise) } else { (yes, &self.next) };
                let to = exit.as_ref().map_or_else(|| "leaves the flow".to_owned(), |stage| format!("on to {stage}"));
                format!("{result}: {to}")
            }
            OpSpec::Write { .. }
            | OpSpec::Exec(_)
            | OpSpec::Http(_)
            | OpSpec::Print { .. }
            | OpSpec::Append { .. }
            | OpSpec::Check { .. }
            | OpSpec::Split(_)
            | OpSpec::Gather(_)
            | OpSpec::Parse { .. } => "as expected".to_owned(),
        }
    }
}

/// Turns the unit into a group of which it is the only member.
fn gather(unit: &mut Rehearsed, spec: &GatherSpec, cx: &mut Cx<'_>) -> Result<String, Failure> {
    let known = unit.payload_of.is_none();
    unit.record = ops::gather::alone(&unit.record, spec, cx)?;
    if known || spec.reduce == Reduce::Count {
        unit.payload_is_known();
    }
    let of = match spec.by {
        GatherBy::All => "all units".to_owned(),
        GatherBy::Parent => "the pieces of the same unit".to_owned(),
        GatherBy::Key(_) => format!("the units of {}", shown_bytes(unit.record.text())),
    };
    Ok(format!("gathered with {of}; goes on as if it were the only one"))
}

/// The fields of a unit that are known before a run.
struct Known<'a>(&'a Rehearsed);

impl Fields for Known<'_> {
    fn field(&self, field: &Field) -> Option<Cow<'_, [u8]>> {
        self.0.record.field(field).filter(|_| !self.0.is_later(field))
    }
}

/// The command line of a program, quoted for a shell, and the targets of its streams.
fn command(spec: &ExecSpec, unit: &Rehearsed, content: &str) -> Result<String, Failure> {
    let mut words: Vec<String> = Vec::new();
    for word in &spec.argv {
        match unit.record.items().filter(|_| word.is_only(&Field::Items)) {
            Some(items) => words.extend(items.map(|item| quoted(&web_url::without_credentials(item)))),
            None => words.push(quoted(&web_url::without_credentials(&unit.render(word)?))),
        }
    }
    if spec.shell {
        words.insert(0, "sh -c".to_owned());
        words.insert(2, "sh".to_owned());
    }
    let mut told = words.join(" ");
    if matches!(spec.stdin, ExecStdin::Payload) && unit.payload_of.is_some() {
        told += &format!(" < {content}");
    }
    if let ExecStdout::File { path, .. } = &spec.stdout {
        told += &format!(" > {}", unit.target(path)?.0);
    }
    if let ExecStderr::File(path) = &spec.stderr {
        told += &format!(" 2> {}", unit.target(path)?.0);
    }
    Ok(told)
}

/// The kind of pieces that a `split` cuts, in words.
fn each(by: &SplitBy) -> &'static str {
    match by {
        SplitBy::Lines => "a unit for each line",
        SplitBy::Nul | SplitBy::Separator(_) | SplitBy::Matches(_) => "a unit for each piece",
        SplitBy::Blocks(_) => "a unit for each block",
        SplitBy::Json => "a unit for each value",
        SplitBy::Table { .. } => "a unit for each row",
        SplitBy::Tar | SplitBy::Zip => "a unit for each file of the archive",
        SplitBy::Copies(_) => "a copy for each stage",
    }
}

fn shown_bytes(bytes: &[u8]) -> String {
    text::printable(&String::from_utf8_lossy(bytes)).into_owned()
}
