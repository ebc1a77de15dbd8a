//! `millstream run`: builds a flow, feeds it its source, shows what it does, and tells what came of it.
//!
//! Three parties, each with a thread of its own, and the flow, whose workers pull the source, meet at one channel of
//! events that the main thread reads (`watch`): the *signals'* thread passes interrupts on; the *drainer* waits for the
//! last unit; the *control* thread serves `status` and `set`. The first interrupt stops admission and drains; the
//! second abandons; neither waits for the source, which may be stuck in a read.
//!
//! Progress and messages go to standard error. Standard output gets the report's table, and nothing with `--quiet`;
//! if a stage's programs write to standard output, it is theirs alone and the table goes to standard error.

mod ending;
mod interrupt;
mod watch;

use std::io;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use millstream_flow::{Control, Service};

pub use self::ending::{ALL_RETIRED, INTERRUPTED, NOT_WRITTEN, SOME_DEAD, WRONG};
use self::ending::{Closing, complain, one_terminal, unfinished};
use self::interrupt::Interrupts;
use self::watch::{Event, watch};
use crate::args::RunArgs;
use crate::dead_letters::{self, DeadLetters};
use crate::file::FlowError;
use crate::file::model::{ExecStdout, OpSpec};
use crate::ops::exec::live;
use crate::record::Record;
use crate::screen::Screen;
use crate::screen::report_file::{ReportFile, ReportFileError};
use crate::screen::writable::NotWritable;
use crate::source::{self, Source, SourceError};
use crate::steer::place;
use crate::steer::server::Server;
use crate::wire::{Ops, wire};

/// Why a flow was not run. No unit was admitted.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The flow file cannot be used, or not with these INPUTs.
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
    /// There can be no control socket where one was asked for.
    #[error("--control {}: {error}", path.display())]
    Control {
        /// The path asked for.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The system gives no thread or no signal handler.
    #[error("cannot start: {0}")]
    System(#[from] io::Error),
}

/// Runs a flow to its end and gives the exit status.
pub fn run(args: &RunArgs) -> ExitCode {
    match try_run(args) {
        Ok(status) => ExitCode::from(status),
        Err(RunError::Flow(error)) => {
            complain(error.render().trim_end());
            ExitCode::from(WRONG)
        }
        Err(error) => {
            complain(&format!("error: {error}"));
            ExitCode::from(WRONG)
        }
    }
}

fn try_run(args: &RunArgs) -> Result<u8, RunError> {
    let mut file = args.flow.load()?;
    file.bind_inputs(&args.input)?;
    let report_file = args.report.as_deref().map(ReportFile::check).transpose()?;
    let name = place::run_name(&file.name, std::process::id());
    let letters_path =
        args.dead_letters.clone().unwrap_or_else(|| dead_letters::default_path(&file.name, args.report.as_deref()));
    let letters = Arc::new(DeadLetters::check(letters_path, name.clone())?);
    let taken = Arc::clone(&letters);
    let wired = wire(&file, move |letter| taken.take(&letter))?;
    let source = source::open(&file, &args.input)?;
    let total = exact_length(&source);
    let control = wired.flow.control();

    let (send, events) = channel();
    let interrupts = Interrupts::forward(send.clone())?;
    let stdout_is_taken =
        file.stages.iter().any(|stage| matches!(&stage.op, OpSpec::Exec { stdout: ExecStdout::Inherit, .. }));
    let mut screen = Screen::open(args.quiet, stdout_is_taken && one_terminal());
    let server = serve(args, &name, &control, &mut screen)?;

    let fed = send.clone();
    let service = wired.flow.start_from(source, move |end| drop(fed.send(Event::Fed(end))));
    let ending = watch(&control, &events, &mut screen, total, move || drain_aside(service, send));
    // What no worker has ended, for it was given up on first.
    live::end();
    drop(server);
    drop(interrupts);

    let report = ending.report.unwrap_or_else(|| Box::new(unfinished(&control.snapshot())));
    let written = finish(&wired.ops, ending.whole && report.left == 0);
    let closing = Closing {
        report: &report,
        abandoned: ending.abandoned.as_deref(),
        interrupted: ending.interrupts > 0 || report.left > 0,
        letters: &letters,
        report_file: report_file.as_ref(),
        quiet: args.quiet,
        stdout_is_taken,
    };
    let status = closing.tell(written);
    // A source that panicked must not pass for one that ended.
    if let Some(panic) = ending.panic {
        resume_unwind(panic);
    }
    Ok(status)
}

/// The number of units a source will yield, if it knows.
fn exact_length(source: &Source) -> Option<u64> {
    match source.size_hint() {
        (least, Some(most)) if least == most => Some(least as u64),
        _ => None,
    }
}

/// Opens the control socket and says where it is. Without a folder for it the flow runs all the same, unless a path
/// was asked for.
fn serve(args: &RunArgs, name: &str, control: &Control, screen: &mut Screen) -> Result<Option<Server>, RunError> {
    let made = match &args.control {
        Some(path) => {
            Server::start(path, control.clone()).map_err(|error| RunError::Control { path: path.clone(), error })
        }
        None => place::make_folder()
            .and_then(|folder| Server::start(&folder.join(name), control.clone()))
            .map_err(RunError::System),
    };
    match made {
        Ok(server) => {
            // A path of choice is found from any folder only if it is absolute.
            let path = std::path::absolute(server.path()).unwrap_or_else(|_| server.path().to_owned());
            let run = if args.control.is_some() { path.display().to_string() } else { name.to_owned() };
            screen.say(&format!("control socket {} (millstream status {run})", path.display()));
            Ok(Some(server))
        }
        Err(error) if args.control.is_some() => Err(error),
        Err(RunError::System(error)) => {
            screen.say(&format!("no control socket, this run cannot be steered: {error}"));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Waits for the last unit on a thread of its own, so that interrupts are heard meanwhile.
fn drain_aside(service: Service<Record, Record>, events: Sender<Event>) {
    thread::spawn(move || {
        let _ = events.send(Event::Drained(Box::new(service.drain())));
    });
}

/// Lets every op finish, and tells whether all could.
fn finish(ops: &Ops, complete: bool) -> bool {
    let failed = ops.finish(complete).err().unwrap_or_default();
    for (stage, failure) in &failed {
        complain(&format!("error: stage {stage} could not finish: {failure}"));
    }
    failed.is_empty()
}
