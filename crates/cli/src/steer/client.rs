//! `millstream status` and `millstream set`: the client's end of the control socket.

use std::fmt::Write as _;
use std::io::{self, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use millstream_command::screen::look::Look;
use millstream_command::screen::{out, shown, text};
use millstream_flow::Snapshot;
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;

use super::facts::Facts;
use super::place::{self, NoRun, Run};
use super::protocol::{self, ANSWER_BYTES, Answer, Request, read_line};
use crate::explain::{Explained, page};
use crate::run::{NOT_WRITTEN, WRONG};
use crate::screen::frame;
use crate::screen::meter::Pace;

/// A run that has not answered completely within this time counts as hung.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time after which a run counts as hung for `millstream top`. It is less than [`PATIENCE`], so that one hung run
/// does not keep `top` from showing the other runs for long.
const SHORT: Duration = Duration::from_secs(2);
/// The number of keys shown for each resource.
const KEYS: usize = 5;
/// The maximum number of times that a client requests a trace again from its start. This is necessary when the server
/// has replaced the trace by a newer trace for another client.
const AGAIN: u32 = 5;
/// The pause before another attempt to connect to a run with too many waiting connections.
const PAUSE: Duration = Duration::from_millis(10);

/// The reason why a run could not be reached or did not execute the request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SteerError {
    /// No run matches RUN, or several runs match.
    #[error(transparent)]
    NoRun(#[from] NoRun),
    /// The run cannot be reached.
    #[error("cannot reach {}: {source}; `millstream status` lists the runs there are", shown::path(path))]
    Unreachable {
        /// The run's socket.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The run exists, but does not answer completely in time.
    #[error("{} does not answer within {} s: its process is stopped, or hangs", text::printable(run), seconds)]
    Silent {
        /// The run's name.
        run: String,
        /// How long the client has waited.
        seconds: u64,
    },
    /// The run has closed the connection.
    #[error("{} ended before it answered", text::printable(run))]
    Ended {
        /// The run's name.
        run: String,
    },
    /// The answer does not follow this version's protocol.
    #[error("{} is not a run of this version of millstream: its answer is wrong, {problem}", shown::path(path))]
    Foreign {
        /// The socket.
        path: PathBuf,
        /// The problem with the answer.
        problem: String,
    },
    /// The socket belongs to another user.
    #[error("{} is served by user {user}, not by user {own}, so it is not used", shown::path(path))]
    OfAnother {
        /// The socket.
        path: PathBuf,
        /// The user who owns the socket.
        user: u32,
        /// The user who runs the client.
        own: u32,
    },
    /// The run does not support the request.
    #[error("the run does not know the request")]
    Unknown,
    /// The run's version is older and does not support the request.
    #[error(
        "{} is a run of an older millstream, which cannot {verb}: end it, or use the command that started it",
        text::printable(run)
    )]
    Older {
        /// The run's name.
        run: String,
        /// The request in words.
        verb: &'static str,
    },
    /// The run refused.
    #[error("{}{}", text::printable(message), listed(settable))]
    Refused {
        /// The reason.
        message: String,
        /// The settings that exist, if the request named an unknown setting.
        settable: Vec<String>,
    },
    /// The answer could not be printed.
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
}

fn listed(settable: &[String]) -> String {
    if settable.is_empty() {
        return String::new();
    }
    let head = "\nwhat can be set, as it is now:".to_owned();
    settable.iter().fold(head, |page, line| page + "\n  " + &text::printable(line))
}

/// `millstream status [RUN] [--json]`: shows a run. Without RUN, shows the only run or a list of all runs. Returns the
/// exit status.
pub(crate) fn status(run: Option<&Path>, json: bool) -> ExitCode {
    exit(try_status(run, json))
}

/// `millstream set RUN KEY=VALUE…`: changes settings of a run, either all or none, and prints the new and the old value
/// of each. Returns the exit status.
pub(crate) fn set(run: &Path, settings: &[(String, String)]) -> ExitCode {
    exit(try_set(run, settings))
}

/// `millstream explain RUN UNIT|KEY|TEXT [--json]`: describes a unit, a resource or a key of a run. Returns the exit
/// status.
pub(crate) fn explain(run: &Path, what: &str, json: bool) -> ExitCode {
    exit(try_explain(run, what, json))
}

/// `millstream fibers RUN [--dump] [--json]`: lists the fibers of a run. Returns the exit status.
pub(crate) fn fibers(run: &Path, dump: bool, json: bool) -> ExitCode {
    exit(try_fibers(run, dump, json))
}

fn exit(result: Result<(), SteerError>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    out::complain_page(&format!("error: {error}"));
    ExitCode::from(if matches!(error, SteerError::Output(_)) { NOT_WRITTEN } else { WRONG })
}

fn try_status(run: Option<&Path>, json: bool) -> Result<(), SteerError> {
    let look = Look::of_stdout().unwrap_or(Look::FILE);
    // The output may be longer than the terminal is high, because the user can scroll.
    let look = Look { rows: usize::MAX, ..look };
    match run {
        Some(run) => print(&described(&snapshot(&place::find(run)?, PATIENCE)?, json, look)),
        None => {
            let mut runs = Vec::new();
            let mut silent = Vec::new();
            for (run, answer) in snapshots(&place::runs(), PATIENCE) {
                match answer {
                    Ok(now) => runs.push((run, now)),
                    // The run has ended since it was listed.
                    Err(SteerError::Unreachable { .. } | SteerError::Ended { .. }) => {}
                    Err(error) => silent.push(error),
                }
            }
            let unanswered = if runs.is_empty() { silent.pop() } else { None };
            for error in silent {
                out::complain_page(&format!("warning: {error}"));
            }
            match runs.as_slice() {
                [] => Err(unanswered.unwrap_or(NoRun::None { asked: None }.into())),
                [(run, now)] if !json => {
                    print(&format!("{}\n{}", text::printable(&run.name), described(now, false, look)))
                }
                runs => print(&list(runs, json)),
            }
        }
    }
}

fn try_set(run: &Path, settings: &[(String, String)]) -> Result<(), SteerError> {
    let settings = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let answer = ask(&place::find(run)?, &Request::Set { settings })?;
    print(&answer.changed.iter().fold(String::new(), |page, line| page + &text::printable(line) + "\n"))
}

fn try_explain(run: &Path, what: &str, json: bool) -> Result<(), SteerError> {
    let run = place::find(run)?;
    let answer = ask(&run, &Request::Explain { what: what.to_owned() })?;
    let explained = answer
        .explained
        .ok_or_else(|| SteerError::Foreign { path: run.path.clone(), problem: "it explains nothing".to_owned() })?;
    print(&explained_page(&explained, json))
}

fn try_fibers(run: &Path, dump: bool, json: bool) -> Result<(), SteerError> {
    let run = place::find(run)?;
    let answer = ask(&run, &Request::Fibers { backtraces: dump || json })?;
    let fibers = answer
        .fibers
        .ok_or_else(|| SteerError::Foreign { path: run.path.clone(), problem: "it tells of no fibers".to_owned() })?;
    if json {
        let json = serde_json::to_string_pretty(&fibers).expect("fibers have only string keys and plain values");
        return print(&(shown::json(&json).into_owned() + "\n"));
    }
    let page = if dump { fibers.to_string() } else { fibers.summary() };
    print(&page.lines().fold(String::new(), |page, line| page + &text::printable(line) + "\n"))
}

fn explained_page(explained: &Explained, json: bool) -> String {
    if !json {
        return page::page(explained);
    }
    let json = serde_json::to_string_pretty(explained).expect("an explanation has only string keys and plain values");
    shown::json(&json).into_owned() + "\n"
}

/// The state of a run for `millstream top`. The facts are empty if the run is of an older version, which sends none.
///
/// # Errors
/// The run does not answer in time, has ended, or belongs to another user.
pub(crate) fn watch(run: &Run) -> Result<(Box<Snapshot>, Box<Facts>), SteerError> {
    let answer = match ask_within(run, &Request::Watch { keys: KEYS }, SHORT) {
        Err(SteerError::Older { .. }) => ask_within(run, &Request::Status, SHORT)?,
        answer => answer?,
    };
    Ok((Box::new(snapshot_in(answer.snapshot)?), answer.facts.unwrap_or_default()))
}

/// The states of runs, which are requested concurrently.
pub(crate) fn states(runs: &[Run]) -> Vec<(Run, Result<Snapshot, SteerError>)> {
    snapshots(runs, SHORT)
}

/// Changes settings of a run, either all or none. Returns the new and the old value of each.
///
/// # Errors
/// The errors of [`watch`], or the run refuses.
pub(crate) fn change(run: &Run, settings: Vec<String>) -> Result<Vec<String>, SteerError> {
    Ok(ask_within(run, &Request::Set { settings }, SHORT)?.changed)
}

/// Runs the units of a run's dead letters again. Returns a description of the run's action.
///
/// # Errors
/// The errors of [`watch`], or the run refuses.
pub(crate) fn retry(run: &Run) -> Result<Vec<String>, SteerError> {
    Ok(ask_within(run, &Request::Retry, SHORT)?.changed)
}

/// Closes the admission of a run. Returns a description of the run's action.
///
/// # Errors
/// As [`watch`].
pub(crate) fn drain(run: &Run) -> Result<Vec<String>, SteerError> {
    Ok(ask_within(run, &Request::Drain, SHORT)?.changed)
}

/// A trace of the newest units that the run has finished. A run begins to record these units at the first request.
///
/// # Errors
/// The errors of [`watch`]. In addition, traces of other clients may have replaced this trace again and again.
pub(crate) fn trace(run: &Run) -> Result<Vec<u8>, SteerError> {
    let foreign = |problem: &str| SteerError::Foreign { path: run.path.clone(), problem: problem.to_owned() };
    let (mut bytes, mut number) = (Vec::new(), None);
    let mut refused = 0;
    loop {
        let part = match ask(run, &Request::Trace { number, from: bytes.len() as u64 }) {
            Ok(answer) => answer.trace.ok_or_else(|| foreign("its answer contains no trace"))?,
            // Another client's trace has replaced this trace.
            Err(SteerError::Refused { .. }) if number.is_some() && refused < AGAIN => {
                refused += 1;
                (bytes, number) = (Vec::new(), None);
                continue;
            }
            Err(error) => return Err(error),
        };
        let more = STANDARD.decode(&part.bytes).map_err(|_| foreign("a part of its trace is not base64"))?;
        if part.total > ANSWER_BYTES || more.is_empty() || number.is_some_and(|number| number != part.number) {
            return Err(foreign("its trace does not fit together"));
        }
        number = Some(part.number);
        bytes.extend(more);
        if bytes.len() as u64 >= part.total {
            return Ok(bytes);
        }
    }
}

fn snapshot(run: &Run, patience: Duration) -> Result<Snapshot, SteerError> {
    snapshot_in(ask_within(run, &Request::Status, patience)?.snapshot)
}

fn snapshot_in(snapshot: Option<Box<Snapshot>>) -> Result<Snapshot, SteerError> {
    snapshot.map(|now| *now).ok_or_else(|| SteerError::Refused {
        message: "the run answered without a snapshot; is it another version of millstream?".to_owned(),
        settable: Vec::new(),
    })
}

/// Asks all runs concurrently, so that a hung run delays only its own answer.
fn snapshots(runs: &[Run], patience: Duration) -> Vec<(Run, Result<Snapshot, SteerError>)> {
    thread::scope(|scope| {
        let asked: Vec<_> = runs.iter().map(|run| scope.spawn(move || snapshot(run, patience))).collect();
        let answers: Vec<_> = asked.into_iter().map(|thread| thread.join().expect("asking does not panic")).collect();
        runs.iter().cloned().zip(answers).collect()
    })
}

fn ask(run: &Run, request: &Request) -> Result<Answer, SteerError> {
    ask_within(run, request, PATIENCE)
}

fn ask_within(run: &Run, request: &Request, patience: Duration) -> Result<Answer, SteerError> {
    let end = Instant::now() + patience;
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
            SteerError::Silent { run: run.name.clone(), seconds: patience.as_secs() }
        }
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
            SteerError::Ended { run: run.name.clone() }
        }
        io::ErrorKind::InvalidData => SteerError::Foreign {
            path: run.path.clone(),
            problem: error.to_string().replace(char::is_control, "\u{fffd}"),
        },
        _ => SteerError::Unreachable { path: run.path.clone(), source: error },
    };
    let mut stream = Hurried { stream: connect(&run.path, end).map_err(failed)?, end };
    let server = socket_peercred(&stream.stream).map_err(|error| failed(error.into()))?.uid.as_raw();
    let own = geteuid().as_raw();
    if own != 0 && server != own && server != 0 {
        return Err(SteerError::OfAnother { path: run.path.clone(), user: server, own });
    }
    // A run that refuses a connection may send its reason and close before it has read the request. The write then
    // fails, but there is an answer.
    let sent = stream.write_all(&protocol::line(request));
    let answer: Option<Answer> = read_line(&mut BufReader::new(stream), ANSWER_BYTES).map_err(failed)?;
    let answer = match (answer, sent) {
        (Some(answer), _) => answer,
        (None, Err(error)) => return Err(failed(error)),
        (None, Ok(())) => return Err(SteerError::Ended { run: run.name.clone() }),
    };
    carried_out(answer).map_err(|error| older(error, run, request))
}

/// If a run of an older version refuses a request that it does not know, replaces the refusal by a clearer error.
fn older(error: SteerError, run: &Run, request: &Request) -> SteerError {
    let verb = match request {
        Request::Status => "show its status",
        Request::Watch { .. } => "be watched",
        Request::Explain { .. } => "explain",
        Request::Drain => "be drained",
        Request::Retry => "run its dead letters again",
        Request::Set { .. } => "be set",
        Request::Fibers { .. } => "show fibers",
        Request::Trace { .. } => "be asked what would happen",
    };
    match error {
        // Before the member `unknown` existed, the refusal quoted the parser's error.
        SteerError::Refused { message, .. } if message.starts_with("not understood: unknown variant") => {
            SteerError::Older { run: run.name.clone(), verb }
        }
        SteerError::Unknown => SteerError::Older { run: run.name.clone(), verb },
        other => other,
    }
}

/// The answer, if it is not a refusal.
fn carried_out(answer: Answer) -> Result<Answer, SteerError> {
    if answer.ok {
        return Ok(answer);
    }
    if answer.unknown {
        return Err(SteerError::Unknown);
    }
    let message = answer.error.unwrap_or_else(|| "refused without a reason".to_owned());
    Err(SteerError::Refused { message, settable: answer.settable })
}

/// Connects. If the run has too many waiting connections, tries again until `end`.
fn connect(path: &Path, end: Instant) -> io::Result<UnixStream> {
    loop {
        match place::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < end => thread::sleep(PAUSE),
            done => return done,
        }
    }
}

/// A stream with one deadline for all reads and writes together.
struct Hurried {
    stream: UnixStream,
    end: Instant,
}

impl Hurried {
    fn left(&self) -> io::Result<Option<Duration>> {
        match self.end.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
            left => Ok(Some(left)),
        }
    }
}

impl Read for Hurried {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(bytes)
    }
}

impl Write for Hurried {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

fn described(now: &Snapshot, json: bool, look: Look) -> String {
    if json {
        let json = serde_json::to_string_pretty(now).expect("a snapshot has only string keys and plain numbers");
        return shown::json(&json).into_owned() + "\n";
    }
    let mut page = frame::frame(now, &Pace::mean(now), look).join("\n") + "\n";
    if now.stages.iter().any(|stage| !stage.blocking) {
        let _ = writeln!(page, "  workers {} shared", text::count(now.workers));
    }
    for resource in &now.resources {
        let capacity = match resource.rate_per_s {
            Some(rate) => format!("{}, burst {}", text::rate(rate), text::count(resource.capacity)),
            None => format!("{} in use of {}", text::count(resource.in_use), text::count(resource.capacity)),
        };
        let _ = write!(page, "  {} {capacity}", text::printable(&resource.name));
        if resource.keys > 0 {
            let _ = write!(page, " for each of {}", text::counted(resource.keys, "key"));
        }
        if resource.waiters > 0 {
            let _ = write!(page, ", {} waiting", text::counted(resource.waiters, "unit"));
        }
        page.push('\n');
    }
    page
}

/// Several runs, one per line. As JSON, they are an array of objects, each with the run's name, socket and snapshot.
fn list(runs: &[(Run, Snapshot)], json: bool) -> String {
    if json {
        let runs: Vec<_> = runs
            .iter()
            .map(|(run, now)| {
                let control = run.path.to_string_lossy();
                serde_json::json!({ "run": run.name, "control": control, "snapshot": now })
            })
            .collect();
        return shown::json(&format!("{:#}\n", serde_json::Value::from(runs))).into_owned();
    }
    let widest = runs.iter().map(|(run, _)| text::width(&text::printable(&run.name))).max().unwrap_or(0);
    runs.iter().fold(String::new(), |mut page, (run, now)| {
        let _ = writeln!(
            page,
            "{}  {} {}  {} retired, {} in flight, held by {}",
            text::left(&text::printable(&run.name), widest),
            frame::phase(now.phase),
            text::clock(now.wall_ns),
            text::count(now.retired),
            text::count(now.in_flight),
            text::printable(&now.held_by())
        );
        page
    })
}

fn print(page: &str) -> Result<(), SteerError> {
    out::print(page).map_err(SteerError::Output)
}

/// The text that is shown for the first answer in these bytes; `None` if the bytes are not an answer.
#[cfg(any(fuzzing, test))]
pub(crate) fn shown_of(mut answers: &[u8]) -> Option<String> {
    let answer = match carried_out(read_line(&mut answers, ANSWER_BYTES).ok()??) {
        Ok(answer) => answer,
        Err(refused) => return Some(refused.to_string()),
    };
    if let Some(explained) = &answer.explained {
        return Some(explained_page(explained, false) + &explained_page(explained, true));
    }
    let now = *answer.snapshot?;
    let page = described(&now, false, Look::FILE) + &described(&now, true, Look::FILE);
    let run = Run { name: "flow-1".to_owned(), path: PathBuf::from("/run/flow-1") };
    Some(page + &list(&[(run, now)], false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::sample;

    #[test]
    fn a_status_shows_stages_and_resources() {
        let text = described(&sample::snapshot(), false, Look::FILE);
        assert!(text.contains("held by disk"), "{text}");
        assert!(text.contains("  disk 2 in use of 2, 10 units waiting\n"), "{text}");
        assert!(text.contains("  api 50/s, burst 10\n"), "{text}");
    }

    #[test]
    fn the_json_is_the_snapshot() {
        let now = sample::snapshot();
        assert_eq!(serde_json::from_str::<Snapshot>(&described(&now, true, Look::FILE)).unwrap(), now);
    }

    /// The value with every number replaced by the largest possible number.
    fn largest(value: &serde_json::Value) -> serde_json::Value {
        use serde_json::Value;
        match value {
            Value::Number(number) if number.is_f64() => f64::MAX.into(),
            Value::Number(_) => u64::MAX.into(),
            Value::Array(values) => values.iter().map(largest).collect(),
            Value::Object(members) => members.iter().map(|(name, value)| (name.clone(), largest(value))).collect(),
            plain => plain.clone(),
        }
    }

    #[test]
    fn a_snapshot_with_any_numbers_and_names_is_shown() {
        let wide = "☁\u{fe0f}".repeat(60);
        let mut now: Snapshot =
            serde_json::from_value(largest(&serde_json::to_value(sample::snapshot()).unwrap())).unwrap();
        now.flow.clone_from(&wide);
        now.stages[0].name.clone_from(&wide);
        now.resources[0].name = "a\x1b[2Jb".to_owned();
        let run = Run { name: wide, path: "/run/x".into() };
        let text = described(&now, false, Look::FILE) + &list(&[(run, now)], false);
        assert!(text.contains("18,446,744,073,709,551,615") && !text.contains('\x1b'), "{text}");
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
