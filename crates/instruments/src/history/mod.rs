//! `millstream history check`: whether a recorded history is linearizable.
//!
//! - [`args`]: the command line;
//! - `answer`: the verdict as text and as JSON;
//! - `error`: the errors that prevent a verdict, and the exit statuses.

mod answer;
pub(crate) mod args;
mod error;

use std::fs::{self, File, Metadata};
use std::io::{self, BufRead, BufReader};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use millstream_command::screen::out;
use millstream_command::writable::{self, Way};
use millstream_history::format::{self, Format};
use millstream_history::timeline::Timeline;
use millstream_history::{CheckError, History, Options, Status, check};

use self::answer::{Answer, Others};
use self::args::{CheckArgs, HistoryArgs, HistoryCommand};
use self::error::HistoryError;

/// The number of bytes of a file that are read at once.
const BUFFER: usize = 1 << 18;

/// `millstream history`.
pub(crate) fn history(args: &HistoryArgs) -> ExitCode {
    let HistoryCommand::Check(check) = &args.command;
    ExitCode::from(run(check).unwrap_or_else(|error| {
        out::complain(format!("error: {error}"));
        error.status()
    }))
}

fn run(args: &CheckArgs) -> Result<u8, HistoryError> {
    for (option, path) in [("--html", &args.html), ("--svg", &args.svg)] {
        let Some(path) = path else { continue };
        if is_history(path, args) {
            return Err(HistoryError::Overwrites { option, file: path.clone() });
        }
        writable::check(path, Way::Replace)?;
    }
    if let (Some(html), Some(svg)) = (&args.html, &args.svg)
        && is_same(html, svg)
    {
        return Err(HistoryError::OneFileForTwo { file: html.clone() });
    }
    let history = read(args)?;
    let began = Instant::now();
    let options = Options {
        memory_bytes: args.memory,
        time: args.time,
        explain: !args.no_explain,
        explain_time: args.explain_time,
        explain_memory_bytes: args.explain_memory,
        ..Options::default()
    };
    let misuse = |source: CheckError| {
        let shown = history.show(source.row as usize).to_string();
        HistoryError::Misuse { file: args.file.clone(), shown, source: source.into() }
    };
    let verdict = check(&history, &args.spec, &options).map_err(misuse)?;
    let took = began.elapsed();
    let left = Options { time: options.time.map(|time| time.saturating_sub(took)), ..options };
    let others = args.compare.then(|| Others::of(&verdict, &history, &args.spec, &left)).transpose().map_err(misuse)?;
    let returned = |row| history.status(row) == Status::Ok && history.returned_at(row).is_some();
    let nothing = !args.allow_empty && !(0..history.len()).any(returned);
    let answer = Answer { history: &history, model: &args.spec, verdict: &verdict, nothing, took, others };

    let title = format!("{}: {}", name(&args.file), args.spec);
    let timeline = Timeline::new(&title, &history, &verdict);
    if let Some(path) = &args.html {
        write(path, &timeline.html())?;
    }
    if let Some(path) = &args.svg {
        write(path, &timeline.svg())?;
    }
    print(&if args.json { answer.json() } else { answer.text() })?;
    Ok(answer.status())
}

/// Returns whether both paths name one file, or will do so once it is written.
fn is_same(a: &Path, b: &Path) -> bool {
    match (fs::metadata(a), fs::metadata(b)) {
        (Ok(a), Ok(b)) => is_one(&a, &b),
        (Err(_), Err(_)) => place(a).is_some_and(|of_a| Some(of_a) == place(b)),
        _ => false,
    }
}

fn is_one(a: &Metadata, b: &Metadata) -> bool {
    a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Returns the path at which a file would be created, with the symbolic links in its folder resolved.
fn place(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(folder.canonicalize().ok()?.join(path.file_name()?))
}

/// Returns whether the history comes from this file.
fn is_history(path: &Path, args: &CheckArgs) -> bool {
    if args.file.as_os_str() != "-" {
        return is_same(path, &args.file);
    }
    let input = io::stdin().as_fd().try_clone_to_owned().map(File::from).and_then(|input| input.metadata());
    matches!((fs::metadata(path), input), (Ok(path), Ok(input)) if is_one(&path, &input))
}

/// Reads the history in the file, or on standard input if the file is `-`.
fn read(args: &CheckArgs) -> Result<History, HistoryError> {
    let opened = |source| HistoryError::Open { file: args.file.clone(), source };
    if args.file.as_os_str() == "-" {
        // `io::stdin` would report a closed stream as empty.
        let input = io::stdin().as_fd().try_clone_to_owned().map(File::from).map_err(opened)?;
        return parse(args, BufReader::with_capacity(BUFFER, input));
    }
    parse(args, BufReader::with_capacity(BUFFER, File::open(&args.file).map_err(opened)?))
}

fn parse(args: &CheckArgs, mut input: impl BufRead) -> Result<History, HistoryError> {
    let format = match args.format {
        Some(format) => format,
        None => {
            let start = input.fill_buf().map_err(|source| HistoryError::Open { file: args.file.clone(), source })?;
            guess(start).ok_or_else(|| HistoryError::UnknownFormat { file: args.file.clone() })?
        }
    };
    format::read(input, format, Some(&args.spec))
        .map_err(|source| HistoryError::Malformed { file: args.file.clone(), source: source.into() })
}

/// Guesses the format from the beginning of a file. An empty file is a history without operations, in any format.
fn guess(start: &[u8]) -> Option<Format> {
    let text = start.strip_prefix("\u{feff}".as_bytes()).unwrap_or(start);
    if text.trim_ascii().is_empty() { Some(Format::Json) } else { format::guess(start) }
}

/// Returns the file's name without its folders.
fn name(file: &Path) -> String {
    match file.file_name() {
        Some(name) if name != "-" => name.to_string_lossy().into_owned(),
        _ => "standard input".to_owned(),
    }
}

fn write(path: &Path, text: &str) -> Result<(), HistoryError> {
    fs::write(path, text).map_err(|source| HistoryError::Write { file: path.to_owned(), source })
}

fn print(text: &str) -> Result<(), HistoryError> {
    out::print(text).map_err(|source| HistoryError::Write { file: "standard output".into(), source })
}
