//! `--trace FILE`: the trace of a run, for `millstream whatif`.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use millstream_command::screen::shown;
use millstream_command::writable::{self, NotWritable, Way};
use millstream_flow::{Flow, Recording, Report};
use serde_json::json;

use crate::leftovers;
use crate::record::Record;

/// A trace that is being written.
pub(super) struct TraceFile {
    path: PathBuf,
    recording: Recording,
}

impl TraceFile {
    /// Begins the trace of a flow that has not started. `others` are the files that the run reads and writes.
    ///
    /// # Errors
    /// The file cannot be written there, is no regular file, or is one of the others.
    pub(super) fn begin<'a>(
        path: &Path,
        flow: &Flow<Record, Record>,
        reads_stdin: bool,
        others: impl IntoIterator<Item = Cow<'a, Path>>,
    ) -> Result<Self, NotWritable> {
        if let Some(other) = others.into_iter().find(|other| is_same(path, other)) {
            let help = format!("the run uses it as {}: choose another file", shown::path(&other));
            return Err(not_written(path, io::ErrorKind::AlreadyExists.into(), &help));
        }
        if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            let source = io::Error::other("it is no regular file");
            return Err(not_written(path, source, "choose another file"));
        }
        writable::check_listed(path, Way::Replace, leftovers::note)?;
        // A command line may have secrets in it, and dead letters are as private.
        let create = || File::options().write(true).create(true).truncate(true).mode(0o600).open(path);
        let args: Option<Vec<_>> = std::env::args_os().map(|arg| arg.into_string().ok()).collect();
        let dir = std::env::current_dir().ok().and_then(|dir| dir.into_os_string().into_string().ok());
        let note = json!({ "args": args.filter(|_| dir.is_some()), "dir": dir, "stdin": reads_stdin });
        match create().and_then(|file| flow.record(file, note)) {
            Ok(recording) => Ok(TraceFile { path: path.to_owned(), recording }),
            Err(source) => Err(not_written(path, source, "choose another file")),
        }
    }

    /// Ends the trace with the report of the run.
    ///
    /// # Errors
    /// The trace could not be written, now or before.
    pub(super) fn finish(self, report: &Report) -> Result<(), NotWritable> {
        let help = "the run itself is over and its results stand, but its trace is of no use";
        self.recording.finish(report).map_err(|source| not_written(&self.path, source, help))
    }

    /// The line that says how to use the trace.
    pub(super) fn usage(path: &Path) -> String {
        format!("trace {path}: `millstream whatif {path}` tells what would make it faster", path = shown::path(path))
    }
}

/// Whether two paths lead to the same file, or would if there were one.
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
