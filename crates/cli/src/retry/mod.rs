//! `millstream retry`: runs the units of a file of dead letters again.
//!
//! A retry repeats the run from which the letters come, with the same flow, parameters, INPUTs, caps and folder. Only
//! the source differs: its units are those of the letters. Units start over at the first stage. Afterwards the file of
//! dead letters contains the units that died again and, if the retry was interrupted, the units that it did not reach.
//! The retried file is renamed to `FILE.old`.

pub(crate) mod letters;
pub(crate) mod live;
pub(crate) mod origin;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use millstream_command::screen::out::{self, complain};
use millstream_command::screen::{shown, text};
use millstream_runner::file::FlowError;
use millstream_runner::file::model::{GatherBy, OpSpec};

use self::letters::{Letters, LettersError};
use crate::args::{OutputArgs, RetryArgs, RunArgs};
use crate::run;
use crate::serve::args::ServeArgs;
use crate::shell_word::quoted;

/// The end of the name of each file of dead letters.
const ENDING: &str = ".dead-letters.jsonl";

/// The reason why nothing was retried.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RetryError {
    /// The letters cannot be used.
    #[error(transparent)]
    Letters(#[from] LettersError),
    /// No file was named, and the current folder contains none.
    #[error("there is no file `*{ENDING}` here; name the file, as `millstream run` printed it")]
    NoFile,
    /// No file was named, and the current folder contains several files.
    #[error("there are several files of dead letters here, {}: name one", listed(.0))]
    ManyFiles(Vec<PathBuf>),
    /// The flow file has changed since the run.
    #[error(
        "{} has changed since its run: `--changed` retries the letters with the flow as it is now, if their units still suit it",
        shown::path(.0)
    )]
    Changed(PathBuf),
    /// The flow file cannot be used any more.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// The folder in which the run was started cannot be entered.
    #[error("the letters' run was started in {}: {error}", shown::path(folder))]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The operating system's reason.
        error: io::Error,
    },
    /// A path in the letters is damaged.
    #[error("the letters of {} name damaged paths: their bytes in hexadecimal cannot be read", shown::path(.0))]
    Damaged(PathBuf),
}

fn listed(files: &[PathBuf]) -> String {
    files.iter().map(|file| shown::path(file).to_string()).collect::<Vec<_>>().join(", ")
}

/// Retries letters and returns the exit status.
pub(crate) fn retry(args: &RetryArgs) -> ExitCode {
    match prepare(args) {
        Ok(Some((run, letters))) => run::run_again(&run, &letters),
        Ok(None) => ExitCode::from(run::ALL_RETIRED),
        Err(RetryError::Flow(error)) => {
            out::complain_page(&error.render());
            ExitCode::from(run::WRONG)
        }
        Err(error) => {
            complain(format!("error: {error}"));
            ExitCode::from(run::WRONG)
        }
    }
}

/// Prepares the run, in the folder of the first run. Returns `None` if there is nothing to retry.
fn prepare(args: &RetryArgs) -> Result<Option<(RunArgs, Letters)>, RetryError> {
    let path = match &args.letters {
        Some(path) => path.clone(),
        None => only_file(Path::new("."))?,
    };
    for round in rounds_left(&path) {
        let file = quoted(round.as_os_str().as_encoded_bytes());
        say(
            args,
            &format!(
                "a run that was killed was running letters again: they are in {}; `millstream retry {file}` runs all of these, also those \
                 that had ended",
                shown::path(&round)
            ),
        );
    }
    // Relative paths on this command line refer to the current folder. Relative paths of the run refer to the run's
    // folder.
    let here = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
    let path = here(path);
    let Some(letters) = Letters::open(&path)? else {
        say(args, &format!("{} has no dead letters: there is nothing to retry", shown::path(&path)));
        return Ok(None);
    };
    let origin = letters.origin();
    let damaged = || RetryError::Damaged(path.clone());
    let flow = origin.flow_args().ok_or_else(damaged)?;
    let folder = origin.dir.to_path().ok_or_else(damaged)?;
    let input = origin.inputs.iter().map(origin::Bytes::to_os).collect::<Option<_>>().ok_or_else(damaged)?;
    let run = RunArgs {
        flow,
        input,
        dry_run: None,
        halt: None,
        set: Vec::new(),
        dead_letters: Some(args.dead_letters.clone().map_or_else(|| path.clone(), here)),
        output: OutputArgs {
            serve: ServeArgs {
                metrics_file: args.output.serve.metrics_file.clone().map(here),
                page_token_file: args.output.serve.page_token_file.clone().map(here),
                ..args.output.serve.clone()
            },
            report: args.output.report.clone().map(here),
            control: args.output.control.clone().map(here),
            ..args.output.clone()
        },
    };
    std::env::set_current_dir(&folder).map_err(|error| RetryError::Folder { folder: folder.clone(), error })?;
    let file = run.flow.load()?;
    if !origin.is_of(&file.text) && !args.changed {
        return Err(RetryError::Changed(run.flow.flow));
    }
    let units = text::counted(letters.units() as u64, "unit");
    say(
        args,
        &format!("retrying {units} of {} in {}", text::printable(&letters.runs().join(", ")), shown::path(&folder)),
    );
    for stage in
        file.stages.iter().filter(|stage| matches!(&stage.op, OpSpec::Gather(spec) if spec.by != GatherBy::Parent))
    {
        say(
            args,
            &format!(
                "warning: stage `{}` gathers the retried units alone: a group lacks those of its units that went through before, and \
                 so does a file that it replaces. Where that matters, run the flow again as a whole",
                text::printable(&stage.name)
            ),
        );
    }
    if letters.faults() > 0 {
        let letters = text::counted(letters.faults() as u64, "letter");
        say(
            args,
            &format!(
                "{letters} stay: they report faults of the source, or groups that only counted; run the flow again for them"
            ),
        );
    }
    Ok(Some((run, letters)))
}

fn say(args: &RetryArgs, message: &str) {
    if !args.output.quiet {
        complain(message);
    }
}

/// The only file of dead letters in a folder. If the folder has no such file, returns the file of a round that a killed
/// run did not finish.
fn only_file(folder: &Path) -> Result<PathBuf, RetryError> {
    let is_file = |name: &[u8]| name.ends_with(ENDING.as_bytes());
    let mut files = named(folder, is_file);
    if files.is_empty() {
        files =
            named(folder, |name| (0..name.len()).any(|end| is_file(&name[..end]) && is_round_of(&name[..end], name)));
    }
    match files.len() {
        0 => Err(RetryError::NoFile),
        1 => Ok(files.remove(0)),
        _ => Err(RetryError::ManyFiles(files)),
    }
}

/// The files of unfinished rounds of this file of letters, except files that a run still uses.
fn rounds_left(letters: &Path) -> Vec<PathBuf> {
    let Some(own) = letters.file_name().map(OsStr::as_encoded_bytes) else { return Vec::new() };
    let folder = letters.parent().unwrap_or(Path::new(""));
    let files = named(folder, |name| is_round_of(own, name));
    files.into_iter().map(|file| folder.join(file)).filter(|file| letters::is_left(file)).collect()
}

/// Whether `name` is the name of a round's file for the letters in `file`: `FILE.RUN.again-N`.
fn is_round_of(file: &[u8], name: &[u8]) -> bool {
    let run = name.strip_prefix(file).and_then(|rest| rest.strip_prefix(b"."));
    let last = run.and_then(|run| run.rsplit(|&byte| byte == b'.').next());
    last.and_then(|last| last.strip_prefix(b"again-")).is_some_and(|number| number.iter().all(u8::is_ascii_digit))
}

/// The names in a folder that satisfy the condition, sorted. They do not contain the path of the folder.
fn named(folder: &Path, is_so: impl Fn(&[u8]) -> bool) -> Vec<PathBuf> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mut files: Vec<PathBuf> = names.filter(|name| is_so(name.as_encoded_bytes())).map(PathBuf::from).collect();
    files.sort();
    files
}
