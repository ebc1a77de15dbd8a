//! `--trace FILE`: the trace of a run, for `millstream whatif`.

use std::fs::File;
use std::io;
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
    /// Begins the trace of a flow that has not started.
    ///
    /// # Errors
    /// The file cannot be written there.
    pub(super) fn begin(path: &Path, flow: &Flow<Record, Record>, reads_stdin: bool) -> Result<Self, NotWritable> {
        writable::check_listed(path, Way::Replace, leftovers::note)?;
        let args: Vec<_> = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
        let dir = std::env::current_dir().ok().map(|dir| dir.to_string_lossy().into_owned());
        let note = json!({ "args": args, "dir": dir, "stdin": reads_stdin });
        let begin = || flow.record(File::create(path)?, note.clone());
        match begin() {
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

fn not_written(path: &Path, source: io::Error, help: &str) -> NotWritable {
    NotWritable { path: path.to_owned(), source, help: help.to_owned() }
}
