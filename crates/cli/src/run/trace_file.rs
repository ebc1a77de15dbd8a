//! `--trace FILE`: the trace of a run, for `millstream whatif`; and `--events FILE`, the same for viewers of timelines.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use millstream_command::screen::shown;
use millstream_command::writable::{self, NotWritable, Way};
use millstream_flow::{Flow, Recording, Report, write_events};
use millstream_runner::leftovers;
use millstream_runner::record::Record;
use serde_json::{Value, json};

use crate::args::OutputArgs;

/// A trace file during the run.
pub(super) struct TraceFile {
    path: PathBuf,
    recording: Recording,
    /// The file of events into which the trace is converted.
    events: Option<PathBuf>,
    /// Whether the trace is written only for the events.
    is_temporary: bool,
}

impl TraceFile {
    /// Begins the trace of a flow that has not started, if the command line asks for a trace. `others` are the files
    /// that the run reads and writes.
    ///
    /// # Errors
    /// The file cannot be written, is not a regular file, or is one of `others`.
    pub(super) fn begin(
        args: &OutputArgs,
        flow: &Flow<Record, Record>,
        reads_stdin: bool,
        others: &[Cow<'_, Path>],
    ) -> Result<Option<Self>, NotWritable> {
        let (trace, events) = (args.trace.as_deref(), args.events.as_deref());
        if let Some(path) = trace {
            check(path, others.iter().map(AsRef::as_ref).chain(events))?;
        }
        if let Some(path) = events {
            check(path, others.iter().map(AsRef::as_ref))?;
        }
        let path = match (trace, events) {
            (None, None) => return Ok(None),
            (Some(path), _) => path.to_owned(),
            (None, Some(_)) => std::env::temp_dir().join(format!("millstream-{}.trace", std::process::id())),
        };
        match create(&path).and_then(|file| flow.record(file, note(reads_stdin))) {
            Ok(recording) => {
                let events = events.map(Path::to_owned);
                Ok(Some(TraceFile { path, recording, events, is_temporary: trace.is_none() }))
            }
            Err(source) => Err(not_written(&path, source, "choose another file")),
        }
    }

    /// Ends the trace with the report of the run, and converts it into the file of events. Returns messages for the
    /// user.
    ///
    /// # Errors
    /// A write to one of the files has failed, now or during the run.
    pub(super) fn finish(self, report: &Report) -> Result<Vec<String>, NotWritable> {
        let help = "the run itself is over and its results are valid, but the file cannot be used";
        let finished = self.recording.finish(report).map_err(|source| not_written(&self.path, source, help));
        let path = shown::path(&self.path);
        let mut lines = Vec::new();
        if !self.is_temporary && report.left == 0 {
            lines.push(format!(
                "trace {path}: `millstream whatif {path}` tells what would make it faster, `millstream page {path}` shows it"
            ));
        }
        let written = finished.and_then(|()| {
            let Some(events) = &self.events else { return Ok(()) };
            let write = || {
                let trace = BufReader::new(File::open(&self.path)?);
                write_events(trace, create(events)?).map_err(io::Error::other)
            };
            lines.push(format!(
                "events {path}: `millstream page {path}` shows them, and so do viewers such as Perfetto",
                path = shown::path(events)
            ));
            write().map_err(|source| not_written(events, source, help))
        });
        if self.is_temporary {
            // A leftover file does no harm.
            drop(fs::remove_file(&self.path));
        }
        written.map(|()| lines)
    }
}

/// The command line of the run, which the trace records so that the run can be repeated.
pub(super) fn note(reads_stdin: bool) -> Value {
    let args: Option<Vec<_>> = std::env::args_os().map(|arg| arg.into_string().ok()).collect();
    let dir = std::env::current_dir().ok().and_then(|dir| dir.into_os_string().into_string().ok());
    json!({ "args": args.filter(|_| dir.is_some()), "dir": dir, "stdin": reads_stdin })
}

/// Checks that a file can be written at `path`, and that it is none of `others`.
fn check<'a>(path: &Path, mut others: impl Iterator<Item = &'a Path>) -> Result<(), NotWritable> {
    if let Some(other) = others.find(|other| is_same(path, other)) {
        let help = format!("the run uses it as {}: choose another file", shown::path(other));
        return Err(not_written(path, io::ErrorKind::AlreadyExists.into(), &help));
    }
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        let source = io::Error::other("it is not a regular file");
        return Err(not_written(path, source, "choose another file"));
    }
    writable::check_listed(path, Way::Replace, leftovers::note)
}

/// Creates a file that only its owner can read: like a dead letter, a trace may contain secrets from the command line.
fn create(path: &Path) -> io::Result<File> {
    File::options().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// Whether two paths lead to the same file. The file need not exist.
fn is_same(one: &Path, other: &Path) -> bool {
    let number = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    match (number(one), number(other)) {
        (Some(one), Some(other)) => one == other,
        (None, None) => {
            std::path::absolute(one).ok().is_some_and(|one| std::path::absolute(other).is_ok_and(|o| o == one))
        }
        _ => false,
    }
}

fn not_written(path: &Path, source: io::Error, help: &str) -> NotWritable {
    NotWritable { path: path.to_owned(), source, help: help.to_owned() }
}
