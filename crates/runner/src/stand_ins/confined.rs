//! Confines a case to its folder: the files that its source reads, and the files that its ops read and write.
//!
//! The folder begins with regular files only, and nothing in a case makes a symbolic link. So a path leads out of the
//! folder only if it is absolute or contains `..`, and the text of the path shows both.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use millstream_command::screen::shown;
use millstream_flow::{Cx, Failure};

use crate::file::FlowFile;
use crate::file::cases::leads_out;
use crate::file::model::{Condition, ExecStderr, ExecStdout, LinesFrom, OpSpec, SourceSpec};
use crate::file::template::{Field, Template};
use crate::ops::{Gathered, Op, RunEnd, rendered_path};
use crate::record::Record;

/// The standard streams, which lead to files of the trial, and the null device.
const STREAMS: [&str; 4] = ["/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/null"];

/// An op that fails on a unit whose paths lead out of the folder.
pub struct Confined {
    op: Box<dyn Op>,
    paths: Vec<Template>,
}

impl Confined {
    /// Confines the op of this description.
    pub fn new(spec: &OpSpec, op: Box<dyn Op>) -> Self {
        let mut paths = Vec::new();
        match spec {
            OpSpec::Read { path, .. } | OpSpec::Write { path, .. } | OpSpec::Append { path, .. } => paths.push(path),
            OpSpec::Exec(spec) => {
                paths.extend(&spec.dir);
                if let ExecStdout::File { path, .. } = &spec.stdout {
                    paths.push(path);
                }
                if let ExecStderr::File(path) = &spec.stderr {
                    paths.push(path);
                }
            }
            OpSpec::Filter { when } => condition_paths(when, &mut paths),
            _ => {}
        }
        Self { op, paths: paths.into_iter().cloned().collect() }
    }
}

fn condition_paths<'a>(condition: &'a Condition, paths: &mut Vec<&'a Template>) {
    match condition {
        Condition::Exists(path) | Condition::Missing(path) | Condition::Content { path, .. } => paths.push(path),
        Condition::Stale { target, than } => paths.extend([target, than]),
        Condition::Not(inner) => condition_paths(inner, paths),
        Condition::All(inner) | Condition::Any(inner) => inner.iter().for_each(|inner| condition_paths(inner, paths)),
        Condition::Has(_)
        | Condition::Text { .. }
        | Condition::Number { .. }
        | Condition::Date { .. }
        | Condition::Size { .. } => {}
    }
}

impl Op for Confined {
    fn run(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure> {
        for path in &self.paths {
            // If the template cannot be rendered, the op itself reports that.
            if let Ok(path) = rendered_path(path, record)
                && let Some(why) = outside(&path)
            {
                return Err(Failure::permanent(why));
            }
        }
        self.op.run(record, cx)
    }

    fn blocking(&self, has_needs: bool) -> bool {
        self.op.blocking(has_needs)
    }

    fn idempotent(&self) -> bool {
        self.op.idempotent()
    }

    fn finish(&self, end: &RunEnd<'_>) -> Result<Option<Gathered>, Failure> {
        self.op.finish(end)
    }
}

/// The reason why the source would read outside the folder; `None` if it would not.
pub fn source_outside(file: &FlowFile, inputs: &[OsString]) -> Option<String> {
    let from = match &file.source {
        SourceSpec::Walk { root: from, .. } | SourceSpec::Lines { from: LinesFrom::File(from), .. } => from,
        SourceSpec::Lines { from: LinesFrom::Stdin, .. } | SourceSpec::Args => return None,
    };
    let inputs = inputs.iter().filter(|_| from.is_only(&Field::Input)).map(Path::new);
    let own = from.constant().map(|path| Path::new(std::ffi::OsStr::from_bytes(path)));
    inputs.chain(own).find_map(outside)
}

fn outside(path: &Path) -> Option<String> {
    let is_stream = STREAMS.iter().any(|stream| path == Path::new(stream));
    (leads_out(path) && !is_stream).then(|| {
        format!("{} is not in the folder of the case: name it by a parameter, which the case sets", shown::path(path))
    })
}
