//! `millstream status` and `millstream set`: the other process's end of the control socket.

use std::fmt::Write as _;
use std::io::{self, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use millstream_flow::Snapshot;

use super::place::{self, NoRun, Run};
use super::protocol::{ANSWER_BYTES, Answer, Request, read_line, write_line};
use crate::run::{NOT_WRITTEN, WRONG};
use crate::screen::frame;
use crate::screen::look::Look;
use crate::screen::meter::Pace;
use crate::screen::text;

/// A run that does not answer within this time hangs.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a run could not be asked or did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum SteerError {
    /// It is not clear which run is meant.
    #[error(transparent)]
    NoRun(#[from] NoRun),
    /// The run cannot be reached.
    #[error("cannot reach {}: {source}; `millstream status` lists the runs there are", path.display())]
    Unreachable {
        /// Its socket.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is there, and says nothing.
    #[error("{run} does not answer: its process is stopped, or hangs")]
    Silent {
        /// Its name.
        run: String,
    },
    /// The run refused.
    #[error("{message}{}", listed(settable))]
    Refused {
        /// Why.
        message: String,
        /// What can be set, if that is what the request got wrong.
        settable: Vec<String>,
    },
    /// What was asked for could not be printed.
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
}

fn listed(settable: &[String]) -> String {
    if settable.is_empty() {
        return String::new();
    }
    settable.iter().fold("\nwhat can be set, as it is now:".to_owned(), |text, line| text + "\n  " + line)
}

/// `millstream status [RUN] [--json]`: shows a run; without RUN the only one, or a list of all. Gives the exit status.
pub fn status(run: Option<&Path>, json: bool) -> ExitCode {
    exit(try_status(run, json))
}

/// `millstream set RUN KEY=VALUE…`: changes a run, all settings or none, and prints what each is and was. Gives the
/// exit status.
pub fn set(run: &Path, settings: &[(String, String)]) -> ExitCode {
    exit(try_set(run, settings))
}

fn exit(result: Result<(), SteerError>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    let _ = writeln!(io::stderr(), "error: {error}");
    ExitCode::from(if matches!(error, SteerError::Output(_)) { NOT_WRITTEN } else { WRONG })
}

fn try_status(run: Option<&Path>, json: bool) -> Result<(), SteerError> {
    let look = Look::of_terminal(&io::stdout()).unwrap_or(Look::FILE);
    // What a person reads is not cut at the terminal's height: it can be scrolled.
    let look = Look { rows: usize::MAX, ..look };
    match run {
        Some(run) => print(&shown(&snapshot(&place::find(run)?)?, json, look)),
        None => {
            let mut runs = Vec::new();
            let mut silent = Vec::new();
            for run in place::runs() {
                match snapshot(&run) {
                    Ok(now) => runs.push((run, now)),
                    // It has ended since it was listed.
                    Err(SteerError::Unreachable { .. }) => {}
                    Err(error) => silent.push(error),
                }
            }
            let unanswered = if runs.is_empty() { silent.pop() } else { None };
            for error in silent {
                let _ = writeln!(io::stderr(), "warning: {error}");
            }
            match runs.as_slice() {
                [] => Err(unanswered.unwrap_or(NoRun::None { asked: None }.into())),
                [(run, now)] if !json => print(&format!("{}\n{}", run.name, shown(now, false, look))),
                runs => print(&list(runs, json)),
            }
        }
    }
}

fn try_set(run: &Path, settings: &[(String, String)]) -> Result<(), SteerError> {
    let settings = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let answer = ask(&place::find(run)?, &Request::Set { settings })?;
    print(&answer.changed.iter().fold(String::new(), |text, line| text + line + "\n"))
}

fn snapshot(run: &Run) -> Result<Snapshot, SteerError> {
    let answer = ask(run, &Request::Status)?;
    answer.snapshot.map(|now| *now).ok_or_else(|| SteerError::Refused {
        message: "the run answered without a snapshot; is it another version of millstream?".to_owned(),
        settable: Vec::new(),
    })
}

fn ask(run: &Run, request: &Request) -> Result<Answer, SteerError> {
    let unreachable = |source| SteerError::Unreachable { path: run.path.clone(), source };
    let exchange = || -> io::Result<Answer> {
        let mut stream = place::connect(&run.path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        write_line(&mut stream, request)?;
        let answer = read_line(&mut BufReader::new(stream), ANSWER_BYTES)?;
        answer.ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "it ended before it answered"))
    };
    let answer = exchange().map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => SteerError::Silent { run: run.name.clone() },
        _ => unreachable(error),
    })?;
    if answer.ok {
        return Ok(answer);
    }
    let message = answer.error.unwrap_or_else(|| "refused without a reason".to_owned());
    Err(SteerError::Refused { message, settable: answer.settable })
}

fn shown(now: &Snapshot, json: bool, look: Look) -> String {
    if json {
        return serde_json::to_string_pretty(now).expect("a snapshot has only string keys and plain numbers") + "\n";
    }
    let mut shown = frame::frame(now, &Pace::mean(now), look).join("\n") + "\n";
    if now.stages.iter().any(|stage| !stage.blocking) {
        let _ = writeln!(shown, "  workers {} shared", text::count(now.workers));
    }
    for resource in &now.resources {
        let capacity = match resource.rate_per_s {
            Some(rate) => format!("{}, burst {}", text::rate(rate), text::count(resource.capacity)),
            None => format!("{} in use of {}", text::count(resource.in_use), text::count(resource.capacity)),
        };
        let _ = write!(shown, "  {} {capacity}", text::printable(&resource.name));
        if resource.keys > 0 {
            let _ = write!(shown, " for each of {}", text::counted(resource.keys, "key"));
        }
        if resource.waiters > 0 {
            let _ = write!(shown, ", {} waiting", text::counted(resource.waiters, "unit"));
        }
        shown.push('\n');
    }
    shown
}

/// Several runs, a line each; as JSON an array of objects with the run's name, socket and snapshot.
fn list(runs: &[(Run, Snapshot)], json: bool) -> String {
    if json {
        let runs: Vec<_> = runs
            .iter()
            .map(|(run, now)| {
                let control = run.path.to_string_lossy();
                serde_json::json!({ "run": run.name, "control": control, "snapshot": now })
            })
            .collect();
        return format!("{:#}\n", serde_json::Value::from(runs));
    }
    let widest = runs.iter().map(|(run, _)| text::width(&run.name)).max().unwrap_or(0);
    runs.iter().fold(String::new(), |mut text, (run, now)| {
        let _ = writeln!(
            text,
            "{}  {} {}  {} retired, {} in flight, held by {}",
            text::left(&run.name, widest),
            frame::phase(now.phase),
            text::clock(now.wall_ns),
            text::count(now.retired),
            text::count(now.in_flight),
            text::printable(&now.held_by())
        );
        text
    })
}

/// Prints to standard output; a reader that has gone away has what it wanted.
fn print(text: &str) -> Result<(), SteerError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(SteerError::Output(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::sample;

    #[test]
    fn a_status_shows_stages_and_resources() {
        let text = shown(&sample::snapshot(), false, Look::FILE);
        assert!(text.contains("held by disk"), "{text}");
        assert!(text.contains("  disk 2 in use of 2, 10 units waiting\n"), "{text}");
        assert!(text.contains("  api 50/s, burst 10\n"), "{text}");
    }

    #[test]
    fn the_json_is_the_snapshot() {
        let now = sample::snapshot();
        assert_eq!(serde_json::from_str::<Snapshot>(&shown(&now, true, Look::FILE)).unwrap(), now);
    }

    #[test]
    fn several_runs_are_a_line_each() {
        let run = |name: &str| Run { name: name.into(), path: format!("/run/{name}").into() };
        let runs = [(run("archive-7"), sample::snapshot()), (run("fetch-12"), sample::snapshot())];
        let text = list(&runs, false);
        assert_eq!(text.lines().count(), 2);
        assert!(text.starts_with("archive-7  running 0:42  12,185 retired, 213 in flight, held by disk"), "{text}");
        let json: serde_json::Value = serde_json::from_str(&list(&runs, true)).unwrap();
        assert_eq!(json[1]["run"], "fetch-12");
        assert_eq!(json[0]["snapshot"]["retired"], 12_185);
    }

    #[test]
    fn a_refusal_lists_what_can_be_set() {
        let error =
            SteerError::Refused { message: "no".into(), settable: vec!["inflight=64".into(), "memory=none".into()] };
        assert_eq!(error.to_string(), "no\nwhat can be set, as it is now:\n  inflight=64\n  memory=none");
    }
}
