//! `millstream run`: builds a flow, runs the units of its source, shows the progress, and reports the outcome.
//!
//! The main thread reads one channel of events (`watch`). The flow, whose workers read the source, sends events to this
//! channel. So do three threads: the *signals* thread handles interrupts, the *drainer* waits for the last unit, and
//! the *control* thread serves `status` and `set`. The first interrupt stops admission, and the units in flight finish;
//! the second abandons these units. Neither waits for the source, which may be blocked in a read.
//!
//! Progress, messages and the report's table go to standard error. Standard output is only for the stages, for example
//! programs with `stdout = "inherit"` and ops that append to `/dev/stdout`.

mod ending;
mod halt;
pub(crate) mod identity;
mod interrupt;
mod rehearsal;
mod stdout;
mod trace_file;
mod watch;

use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use millstream_command::program;
use millstream_command::program::supervise::{Supervisor, unsupervised};
use millstream_command::screen::out::{self, complain};
use millstream_command::screen::{shown, text};
use millstream_command::writable::NotWritable;
use millstream_flow::{Control, DeadLetter, Report, Service};
use millstream_runner::file::model::{GatherBy, LinesFrom, OpSpec, SourceSpec};
use millstream_runner::file::{FlowError, FlowFile};
use millstream_runner::leftovers;
use millstream_runner::ops::{Gathered, RunEnd};
use millstream_runner::printer::Printer;
use millstream_runner::record::Record;
use millstream_runner::runtime_folder;
use millstream_runner::source::{self, LeftOut, Source, SourceError};
use millstream_runner::wire::{OnRetire, Ops, wire};

use self::ending::Closing;
pub(crate) use self::ending::{ALL_RETIRED, NOT_WRITTEN, WRONG};
use self::halt::{Halt, Reason};
use self::identity::Identity;
use self::interrupt::Interrupts;
use self::trace_file::TraceFile;
use self::watch::{Event, Waits, print_out, watch};
use crate::args::{OutputArgs, RunArgs};
use crate::causes::Causes;
use crate::dead_letters::{self, DeadLetters};
use crate::metrics::Metrics;
use crate::metrics::file::MetricsFile;
#[cfg(feature = "http")]
use crate::metrics::otlp::{OtlpError, Push};
use crate::retry::letters::Letters;
use crate::retry::live::{self, Marks, Parts, Readmission};
use crate::retry::origin::Origin;
use crate::screen::report_file::{ReportFile, ReportFileError};
use crate::screen::run_report::RunReport;
use crate::screen::throughput::Sample;
use crate::screen::{Beside, Screen};
use crate::serve::feed::Feed;
use crate::serve::{self, NotServed, Say, Told};
use crate::shell_word::quoted;
use crate::steer::facts::{Audit, Behind};
use crate::steer::place;
use crate::steer::server::Server;
use crate::steer::setting::{self, SettingError};

/// The reason why a flow was not run. No unit was admitted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// The flow file cannot be used, or cannot be used with these INPUTs.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// The source cannot be opened.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The report could not be written.
    #[error(transparent)]
    Report(#[from] ReportFileError),
    /// Dead letters could not be written.
    #[error("dead letters: {0}, or name a file with --dead-letters")]
    DeadLetters(#[from] NotWritable),
    /// A setting of `--set` is not valid.
    #[error("--set {0}")]
    Set(#[from] SettingError),
    /// The trace cannot be written.
    #[error(transparent)]
    Trace(NotWritable),
    /// The control socket cannot be created at the given path.
    #[error("--control {}: {error}", shown::path(path))]
    Control {
        /// The path from the command line.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// The metrics file could not be written.
    #[error("--metrics-file: {0}")]
    MetricsFile(NotWritable),
    /// Metrics cannot be pushed as requested.
    #[error(transparent)]
    #[cfg(feature = "http")]
    Otlp(#[from] OtlpError),
    /// The live page of the run cannot be served as requested.
    #[error(transparent)]
    Serve(#[from] NotServed),
    /// The system refuses a thread or a signal handler.
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
}

/// Runs a flow, or with `--dry-run` shows what a run would do. Returns the exit status.
pub(crate) fn run(args: &RunArgs) -> ExitCode {
    if let Some(units) = args.dry_run {
        return rehearsal::rehearse(args, units);
    }
    exit(try_run(args, None))
}

/// Runs a flow on the units of dead letters, in place of its source.
pub(crate) fn run_again(args: &RunArgs, letters: &Letters) -> ExitCode {
    exit(try_run(args, Some(letters)))
}

fn exit(ended: Result<u8, RunError>) -> ExitCode {
    match ended {
        Ok(status) => ExitCode::from(status),
        Err(RunError::Flow(error)) => {
            out::complain_page(&error.render());
            ExitCode::from(WRONG)
        }
        Err(error) => {
            complain(format!("error: {error}"));
            ExitCode::from(WRONG)
        }
    }
}

fn try_run(args: &RunArgs, again: Option<&Letters>) -> Result<u8, RunError> {
    let mut file = args.flow.load()?;
    file.bind_inputs(&args.input)?;
    let typed = reads_stdin(&file) && io::stdin().is_terminal();
    let beside = if typed {
        Beside::Typing
    } else if stdout::is_shared_terminal(&file) {
        Beside::Output
    } else {
        Beside::Nothing
    };
    let mut screen = Screen::open(args.output.quiet, beside);
    if let Some(warnings) = file.render_warnings() {
        screen.say_page(&warnings);
    }
    let _list = clear_up_after_others(&mut screen);
    let report_file = args.output.report.as_deref().map(ReportFile::check).transpose()?;
    let metrics_file = args.output.serve.metrics_file.as_deref();
    metrics_file.map_or(Ok(()), MetricsFile::check).map_err(RunError::MetricsFile)?;
    let name = place::run_name(&file.name, std::process::id());
    let letters_path = args
        .dead_letters
        .clone()
        .unwrap_or_else(|| dead_letters::default_path(&file.name, args.output.report.as_deref()));
    let origin = match again {
        None => Origin::of(&name, args, &file.text)?,
        Some(again) => again.origin().retried(&file.text),
    };
    let letters = Arc::new(DeadLetters::check(letters_path, name.clone(), origin)?);
    let halt = Arc::new(Halt::new(args.halt.or(file.halt)));
    let marks = Arc::new(Marks::default());
    let identity = Identity::new(&name, &file, args);
    let causes = Arc::new(Causes::default());
    let left_out = Arc::new(LeftOut::default());
    let [died, retired] = [(); 2].map(|()| {
        let marks = Arc::clone(&marks);
        move |letter| marks.settle(letter)
    });
    // Only a unit from a dead letter has a letter to mark when the unit is retired.
    let may_have_letters = again.is_some() || live::refusal(&file).is_none();
    let on_retire = may_have_letters
        .then(|| -> OnRetire { Box::new(move |record: Record| record.settled_letters().for_each(&retired)) });
    let missing = again.map(Letters::missing);
    let missed = move |letter| missing.iter().for_each(|missing| missing(letter));
    let wired = wire(&file, take(letters.clone(), causes.clone(), halt.clone(), died, missed), on_retire, halt.word())?;
    if let Some(warning) = wired.descriptors.warning() {
        screen.say(&warning);
    }
    wired.descriptors.raise();
    let source = match again {
        None => source::open(&file, &args.input, &left_out)?,
        Some(again) => {
            marks.add(again);
            source::again(&file, &args.input, again.source(gathers_families(&file))?, again.units())
        }
    };
    wired.printer.on_trouble({
        let halt = Arc::clone(&halt);
        move |trouble| halt.halt(Reason::Output(trouble.clone()))
    });
    let in_order = file.stages.iter().any(|stage| stage.op.is_ordered()).then(|| Arc::clone(&wired.printer));
    let source = match &in_order {
        Some(printer) => with_places(source, Arc::clone(printer)),
        None => source,
    };
    let total = exact_length(&source);
    let control = wired.flow.control();
    setting::apply_all(&args.set, &control)?;

    let (send, events) = channel();
    let interrupts = Interrupts::heed(send.clone(), control.clone(), letters.clone())?;
    let audit = Audit::begin();
    let asked = (send.clone(), control.clone());
    let drain = Box::new(move || {
        // The event is sent first: after `stop`, the flow may end before an event could be sent.
        let _ = asked.0.send(Event::Asked(Box::new(asked.1.snapshot())));
        asked.1.stop();
    });
    let live = wired.flow.live_trace(trace_file::note(reads_stdin(&file)));
    let say: Say = Arc::new({
        let events = send.clone();
        move |line| drop(events.send(Event::Said(line)))
    });
    let readmission = Readmission::new(Parts {
        file: file.clone(),
        inputs: args.input.clone(),
        letters: letters.clone(),
        marks,
        control: control.clone(),
        printer: in_order,
        say: Arc::clone(&say),
    });
    let retry = Box::new({
        let readmission = readmission.clone();
        move || readmission.begin()
    });
    let behind =
        Behind { total, causes: Arc::clone(&causes), audit: audit.clone(), retry, live: Some(live.clone()), drain };
    let server = serve(args, &name, &control, behind, &interrupts, &mut screen)?;
    let reach = server.as_ref().map(|server| reach(args, &name, server));
    for resource in control.snapshot().resources.iter().filter(|it| it.capacity == 0 && it.rate_per_s.is_none()) {
        let resource = text::printable(&resource.name);
        let wait = reach.as_ref().map_or_else(
            || "without end".to_owned(),
            |reach| format!("until `millstream set {reach} resource.{resource}=1`"),
        );
        screen.warn(&format!("warning: `{resource}` has no tokens: units that need it wait {wait}"));
    }
    let metrics = Metrics::new(&name, control.clone(), causes.clone());
    let beside = serve::feed::Beside { causes: causes.clone(), audit: audit.clone(), readmission: readmission.clone() };
    let has_page = args.output.serve.page.is_some();
    let names = serve::feed::Names { run: &name, reach: reach.as_deref() };
    let feed = Arc::new(Feed::new(names, &file, &control.snapshot(), has_page, beside));
    if has_page {
        // The live trace begins before the page opens, so that data exists for the page's first request.
        live.begin();
    }
    let told = Told { say, audit: audit.clone(), live };
    let http = serve::start(&args.output.serve, &control, &metrics, &feed, &readmission, told, &mut screen)?;
    let metrics_file = metrics_file.map(|path| MetricsFile::start(path, &metrics)).transpose()?;
    #[cfg(feature = "http")]
    let push = args.output.serve.otlp.as_deref().map(|url| Push::start(url, &name, &metrics)).transpose()?;
    let supervisor = supervised(&file, &mut screen);
    if typed {
        screen.say("units are read from this terminal: type lines, ^D ends them");
    }

    let trace = TraceFile::begin(&args.output, &wired.flow, reads_stdin(&file), &files_of(args, &letters));
    let trace = trace.map_err(RunError::Trace)?;
    let waits = Waits { printer: Arc::clone(&wired.printer), machine: Arc::clone(&wired.machine) };
    let drainer = Drainer::start(send.clone())?;
    letters.begin(again.map(Letters::locked))?;
    halt.attach(control.clone(), send.clone());
    let service = wired.flow.start_from(source, move |end| drop(send.send(Event::Fed(end))));
    readmission.open(service.submitter());
    let total = || total.map(|total| total.saturating_add(readmission.sent()));
    let mut ending = watch(&control, &events, &mut screen, &total, &waits, &feed, move || drainer.drain(service));
    print_out(&wired.printer, &events, &mut screen, &mut ending);
    // Kills the programs that still run after the flow was abandoned.
    program::live::end();
    if let Some(supervisor) = supervisor {
        supervisor.dismiss();
    }
    drop(server);
    let report = ending.report.take().unwrap_or_else(|| Box::new(Report::unfinished(&control.snapshot())));
    let complete = ending.whole && report.left == 0;
    let ran_again = readmission.finish(complete);
    feed.end(&control.snapshot());
    drop(http);
    drop(interrupts);
    #[cfg(feature = "http")]
    let metrics_lost = push.and_then(Push::finish);
    #[cfg(not(feature = "http"))]
    let metrics_lost: Option<String> = None;
    metrics_lost.iter().for_each(|lost| complain(format!("warning: {lost}")));
    let metrics_kept = metrics_file.map_or(Ok(()), MetricsFile::finish);
    let metrics_kept = metrics_kept.inspect_err(|error| complain(format!("error: --metrics-file: {error}"))).is_ok();

    let mut throughput = ending.throughput;
    let (retired, dead_lettered) = (report.retired, report.dead_lettered);
    let traced = trace.map_or(Ok(Vec::new()), |trace| trace.finish(&report));
    match &traced {
        Err(error) => complain(format!("error: {error}")),
        Ok(lines) if !args.output.quiet => lines.iter().for_each(complain),
        Ok(_) => {}
    }
    throughput.end(Sample { at_s: report.wall_s, retired, dead_lettered });
    let causes = causes.groups();
    let steered = audit.steered();
    let kept = again.map_or(Ok(0), |again| keep_rest(again, complete, &letters));
    let all_kept =
        kept.inspect_err(|error| complain(format!("error: letters not retried are lost from the file: {error}")));
    let kept = all_kept.as_ref().copied().unwrap_or(0);
    if all_kept.is_ok()
        && let Err(error) = letters.end_retry()
    {
        complain(format!("error: the letters that were retried keep their name: {error}"));
    }
    let (gathered, written) = finish(
        &wired.ops,
        &RunEnd {
            complete,
            admitted: report.admitted,
            retired: report.retired,
            dead: ran_again.still_dead(report.dead_lettered) + kept,
            first: again.map_or(&name, |again| &again.origin().first),
            retries: again.is_some(),
        },
    );
    let closing = Closing {
        run: RunReport {
            report: &report,
            identity: &identity,
            throughput: &throughput,
            causes: &causes,
            steered: &steered,
            ran_again,
            metrics_lost: metrics_lost.as_deref(),
            dead_letters: None,
            gathered: &gathered,
            page: &feed.frozen(),
        },
        abandoned: ending.abandoned.as_deref(),
        interrupted: ending.interrupted,
        whole: ending.whole,
        halted: ending.halted.as_ref(),
        letters: &letters,
        kept,
        quiet: args.output.quiet,
        left_out: left_out.told(),
        report_file: report_file.as_ref(),
        table: !args.output.quiet && !args.output.no_report,
    };
    let status = closing.tell(written && metrics_kept && all_kept.is_ok() && traced.is_ok());
    // A panic of the source continues here, so that it is not taken for the end of the source.
    if let Some(panic) = ending.panic {
        resume_unwind(panic);
    }
    Ok(status)
}

/// The files on the command line that a run reads or writes.
fn files_of<'a>(args: &'a RunArgs, letters: &DeadLetters) -> Vec<Cow<'a, Path>> {
    let OutputArgs { report, serve, .. } = &args.output;
    let named = [Some(&args.flow.flow), report.as_ref(), serve.metrics_file.as_ref()].into_iter().flatten();
    let inputs = args.input.iter().map(Path::new);
    let named = named.map(PathBuf::as_path).chain(inputs).map(Cow::Borrowed);
    named.chain([Cow::Owned(letters.path())]).collect()
}

/// Whether units are lines of standard input.
fn reads_stdin(file: &FlowFile) -> bool {
    matches!(file.source, SourceSpec::Lines { from: LinesFrom::Stdin, .. })
}

/// Removes temporary files of killed runs, and begins the list from which a later run could remove this run's files.
fn clear_up_after_others(screen: &mut Screen) -> Option<leftovers::Keeper> {
    place::remove_dead_sockets();
    let removed = leftovers::sweep();
    if removed > 0 {
        let files = text::counted(removed, "temporary file");
        screen.say(&format!("removed {files} of runs that were killed"));
    }
    leftovers::Keeper::start()
        .inspect_err(|error| screen.say(&format!("if this run is killed, its temporary files stay: {error}")))
        .ok()
}

/// The supervisor of the programs that stages start, if any stage starts programs.
fn supervised(file: &FlowFile, screen: &mut Screen) -> Option<Supervisor> {
    if !file.stages.iter().any(|stage| matches!(stage.op, OpSpec::Exec(_))) {
        return None;
    }
    Supervisor::start().inspect_err(|error| screen.say(&unsupervised(error))).ok()
}

/// Gives each unit its position in the order of outputs.
pub(crate) fn with_places(source: Source, printer: Arc<Printer>) -> Source {
    Box::new(source.map(move |mut record| {
        record.place = Some(printer.place());
        record
    }))
}

/// The number of units that the source will yield, if that number is known.
fn exact_length(source: &Source) -> Option<u64> {
    match source.size_hint() {
        (least, Some(most)) if least == most => Some(least as u64),
        _ => None,
    }
}

/// Opens the control socket and prints its path. Without a folder for the socket, the flow runs without a socket,
/// unless the command line names a path.
fn serve(
    args: &RunArgs,
    name: &str,
    control: &Control,
    behind: Behind,
    interrupts: &Interrupts,
    screen: &mut Screen,
) -> Result<Option<Server>, RunError> {
    let made = match &args.output.control {
        Some(path) => Server::start(path, control.clone(), behind)
            .map_err(|error| RunError::Control { path: path.clone(), error }),
        None => runtime_folder::make_folder()
            .and_then(|folder| Server::start(&folder.join(name), control.clone(), behind))
            .map_err(RunError::System),
    };
    match made {
        Ok(server) => {
            interrupts.remove(server.file().clone());
            let run = reach(args, name, &server);
            screen.say(&format!("control socket {} (millstream status {run})", shown::path(&absolute(server.path()))));
            Ok(Some(server))
        }
        Err(error) if args.output.control.is_some() => Err(error),
        Err(RunError::System(error)) => {
            screen.say(&format!("no control socket, this run cannot be steered: {error}"));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// The argument by which a command line names this run: its name, or the path that was chosen for its socket.
fn reach(args: &RunArgs, name: &str, server: &Server) -> String {
    match &args.output.control {
        Some(_) => quoted(absolute(server.path()).as_os_str().as_encoded_bytes()),
        None => quoted(name.as_bytes()),
    }
}

/// The absolute path, which is valid in any working folder.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A thread that waits for the last unit, so that the main loop can receive interrupts meanwhile. The thread starts
/// before the flow, which may use up all threads that the system allows.
struct Drainer(Sender<Service<Record, Record>>);

impl Drainer {
    fn start(events: Sender<Event>) -> io::Result<Self> {
        let (hand_over, service) = channel();
        thread::Builder::new().name("drainer".to_owned()).spawn(move || {
            // Nothing is received if the run fails before its flow starts.
            if let Ok(service) = service.recv() {
                let service: Service<Record, Record> = service;
                let _ = events.send(Event::Drained(Box::new(service.drain())));
            }
        })?;
        Ok(Self(hand_over))
    }

    fn drain(self, service: Service<Record, Record>) {
        let _ = self.0.send(service);
    }
}

/// A function that receives the flow's dead letters, and marks the earlier letter of each unit that was retried.
fn take(
    letters: Arc<DeadLetters>,
    causes: Arc<Causes>,
    halt: Arc<Halt>,
    died: impl Fn(usize) + Send + Sync,
    missed: impl Fn(usize) + Send + Sync,
) -> impl Fn(DeadLetter) + Send + Sync {
    move |letter| {
        causes.add(&letter);
        let record = letter.input::<Record>();
        if dead_letters::only_lacks(&letter) {
            // This is a group that lacks pieces. The pieces have letters of their own, which already count towards
            // `halt`.
            record.iter().flat_map(|record| record.letters()).for_each(&died);
            return;
        }
        let pieces = record.and_then(|record| record.rare.wanted.as_deref()).unwrap_or_default();
        pieces.iter().for_each(|piece| missed(piece.letter));
        match record.filter(|record| record.rare.wanted.is_some() && record.rare.letter.is_none()) {
            // The unit gets no letter: the letters of its pieces state more precisely what has to run again.
            Some(record) => {
                let unit = String::from_utf8_lossy(&record.shown_text()).into_owned();
                complain(format!(
                    "error: {} failed in {}: {}; the dead letters of its pieces stay",
                    text::printable(&unit),
                    letter.stage,
                    letter.message
                ));
            }
            None => letters.take(&letter),
        }
        record.iter().flat_map(|record| record.letters()).for_each(&died);
        halt.dies();
    }
}

/// Whether the flow puts the pieces of a unit together again. A retry of only some pieces would produce an incomplete
/// unit.
fn gathers_families(file: &FlowFile) -> bool {
    let by_parent = |op: &OpSpec| matches!(op, OpSpec::Gather(spec) if spec.by == GatherBy::Parent);
    file.stages.iter().any(|stage| by_parent(&stage.op))
}

/// Copies the letters of the units that a retry did not reach into `letters`. Returns their number.
fn keep_rest(again: &Letters, complete: bool, letters: &DeadLetters) -> io::Result<u64> {
    let mut kept = 0;
    for rest in again.rest(complete)? {
        letters.keep(&rest);
        kept += 1;
    }
    Ok(kept)
}

/// Finishes every op. Returns each stage's gathered file, and whether all ops could finish.
fn finish(ops: &Ops, end: &RunEnd<'_>) -> (Vec<(String, Gathered)>, bool) {
    let mut gathered = Vec::new();
    let mut all = true;
    for (stage, result) in ops.finish(end) {
        match result {
            Ok(file) => gathered.push((stage, file)),
            Err(failure) => {
                complain(format!("error: stage {} could not finish: {failure}", text::printable(&stage)));
                all = false;
            }
        }
    }
    (gathered, all)
}
