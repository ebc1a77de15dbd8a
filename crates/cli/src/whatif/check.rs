//! `--check` repeats the run with the changes, to test the prediction.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use libc::{SIGHUP, SIGINT, SIGTERM};
use millstream_command::screen::out::complain;
use millstream_command::screen::text;
use millstream_csm::compare::{Comparison, Paired, Smaller};
use millstream_flow::Trace;
use rustix::process::{Pid, Signal};
use serde::Serialize;
use signal_hook::{flag, low_level};

use super::answer::Answer;
use super::{WhatIfError, read};

/// The options of `millstream run` that name files of one run. A repetition must not use these files.
const OF_THE_RUN: [&str; 6] = ["--trace", "--events", "--report", "--dead-letters", "--control", "--metrics-file"];

/// Returns the measured numbers of a run in the form of a prediction.
fn measured(trace: &Trace) -> Answer {
    let run = trace.measured();
    let wall_s = run.wall.as_secs_f64();
    Answer {
        wall_s,
        throughput: run.retired as f64 / wall_s.max(1e-9),
        p50_s: run.latency_p50.as_secs_f64(),
        p99_s: run.latency_p99.as_secs_f64(),
        retired: run.retired,
        dead_lettered: run.dead_lettered,
        limit: run.bottleneck,
        ..Answer::default()
    }
}

/// The maximum probability that a verdict is wrong.
const ERROR: f64 = 0.05;

/// The runs that check a prediction.
pub(super) struct Checked {
    /// The run with the median time, among the runs with the changes.
    pub(super) measured: Answer,
    /// The verdict of the runs without and with the changes, if both were run.
    pub(super) judged: Option<Judged>,
}

/// The verdict of pairs of runs, by the sequential test of `millstream compare`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Judged {
    pub(super) pairs: u64,
    /// The time of a run with the changes, divided by the time of a run without them.
    pub(super) ratio: f64,
    /// The lower end of the ratio's confidence interval: 0 if there were too few pairs for a lower bound.
    pub(super) low: f64,
    /// The upper end of that interval: `None` if there were too few pairs for an upper bound.
    pub(super) high: Option<f64>,
    /// The predicted ratio.
    pub(super) predicted: f64,
    /// Which of the two variants is faster, if that is certain.
    pub(super) faster: Option<&'static str>,
}

impl Judged {
    fn of(comparison: &Comparison, predicted: f64) -> Self {
        Judged {
            pairs: comparison.pairs,
            ratio: comparison.ratio.unwrap_or(1.0),
            low: comparison.interval.low.max(0.0),
            high: Some(comparison.interval.high).filter(|high| high.is_finite()),
            predicted,
            faster: comparison.smaller.map(|smaller| match smaller {
                Smaller::First => "as it was",
                Smaller::Second => "changed",
            }),
        }
    }

    /// Whether both ends of the interval are still open.
    pub(super) fn is_open(&self) -> bool {
        self.low <= 0.0 && self.high.is_none()
    }

    /// Whether the predicted ratio is within the interval.
    pub(super) fn holds(&self) -> bool {
        self.low <= self.predicted && self.high.is_none_or(|high| self.predicted <= high)
    }
}

/// Runs the traced command again with `settings`. With more than one pair, the command runs alternately without and
/// with the settings until it is certain which variant is faster. `predicted` is the predicted ratio of the two times.
///
/// # Errors
/// The command cannot be run again, or has failed.
pub(super) fn check(trace: &Trace, settings: &[String], pairs: u32, predicted: f64) -> Result<Checked, WhatIfError> {
    let refuse = |error: millstream_csm::Error| WhatIfError::Check(error.to_string());
    let mut walls = Paired::new(ERROR, 1.0).map_err(refuse)?;
    let mut changed = Vec::new();
    let alone = pairs <= 1 || settings.is_empty();
    if !alone {
        complain(format!(
            "predicted: {predicted:.3} times as long with the settings; runs both alternately until it is certain which is faster, \
             at most {pairs} times"
        ));
    }
    loop {
        let before = if alone { None } else { Some(run_again(trace, &[])?) };
        changed.push(run_again(trace, settings)?);
        let (Some(before), Some(after)) = (before, changed.last()) else { break };
        let span = |answer: &Answer| text::span((answer.wall_s * 1e9) as u64);
        complain(format!(
            "pair {} of at most {pairs}: {} as it was, {} with the settings",
            changed.len(),
            span(&before),
            span(after)
        ));
        let verdict = walls.observe(before.wall_s.max(1e-9), after.wall_s.max(1e-9)).map_err(refuse)?;
        if verdict.is_some() || changed.len() >= pairs as usize {
            break;
        }
    }
    let judged = if alone { None } else { Some(Judged::of(&walls.status().map_err(refuse)?, predicted)) };
    changed.sort_by(|a, b| a.wall_s.total_cmp(&b.wall_s));
    let measured = changed.swap_remove(changed.len() / 2);
    Ok(Checked { measured, judged })
}

/// Runs the traced command again with `settings`, and returns the measured numbers.
fn run_again(trace: &Trace, settings: &[String]) -> Result<Answer, WhatIfError> {
    let refuse = |why: &str| Err(WhatIfError::Check(why.to_owned()));
    let note = trace.note();
    let Some(args) = note["args"].as_array() else {
        return refuse("the trace does not say how the run was started, or an argument is not Unicode");
    };
    let args: Vec<&str> = args.iter().filter_map(|arg| arg.as_str()).collect();
    let Some((_, ["run", rest @ ..])) = args.split_first() else {
        return refuse("only `millstream run` can be run again");
    };
    if note["stdin"] == true {
        return refuse("the run read standard input: name the file of its units as an INPUT, and trace that run");
    }
    if let Some(setting) = settings.iter().find(|setting| !is_settable(setting)) {
        return refuse(&format!("a run cannot be started with {setting}"));
    }
    let folder = Folder::create().map_err(|error| WhatIfError::Check(format!("no temporary folder: {error}")))?;
    let again = folder.0.join("run.trace");
    let program = std::env::current_exe().map_err(|error| WhatIfError::Check(error.to_string()))?;
    let mut command = Command::new(program);
    // The settings come before the other arguments, because the other arguments may contain `--`, which ends the
    // options.
    command.arg("run").args(settings.iter().flat_map(|setting| ["--set", setting]));
    command.arg("--trace").arg(&again).arg("--dead-letters").arg(folder.0.join("dead-letters.jsonl"));
    // The report is not needed, and would name files that are removed soon.
    if !rest.contains(&"--no-report") {
        command.arg("--no-report");
    }
    command.args(without_files(rest));
    // Standard output of this command is reserved for the answer.
    let failed = |error: io::Error| WhatIfError::Check(error.to_string());
    command.stdout(rustix::stdio::stderr().try_clone_to_owned().map_err(failed)?);
    let dir = note["dir"].as_str().unwrap_or(".");
    command.current_dir(dir);
    let words: Vec<_> = rest.iter().map(|word| text::printable(word)).collect();
    let with = settings.iter().fold(String::new(), |with, setting| with + "--set " + &text::printable(setting) + " ");
    complain(format!("runs again in {}: millstream run {with}{}", text::printable(dir), words.join(" ")));
    let (status, signal) = with_signals(&mut command).map_err(failed)?;
    if let Some(signal) = signal {
        let name = low_level::signal_name(signal).unwrap_or("a signal");
        return refuse(&format!(
            "{name} has ended the check; its run has stopped, and the files of the check are removed"
        ));
    }
    // A run with dead letters has also ended properly.
    if !matches!(status.code(), Some(0 | 1)) {
        return refuse(&format!("the run that was started again failed: {status}"));
    }
    Ok(measured(&read(&again)?))
}

/// The signals that normally end this command. While a run is being repeated, they do not, because the run must end
/// first, and its files must be removed.
const ENDING: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// The time between two checks of a run.
const LOOK: Duration = Duration::from_millis(20);

/// Whether the [`ENDING`] signals have their default effect.
static END_AS_USUAL: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Runs a command to its end. Returns its status, and the signal that asked it to end, if there was one.
fn with_signals(command: &mut Command) -> io::Result<(ExitStatus, Option<i32>)> {
    let as_usual = match END_AS_USUAL.get() {
        Some(as_usual) => as_usual,
        None => {
            let as_usual = Arc::default();
            for signal in ENDING {
                flag::register_conditional_default(signal, Arc::clone(&as_usual))?;
            }
            END_AS_USUAL.get_or_init(|| as_usual)
        }
    };
    // SeqCst: the handlers may run on any thread.
    as_usual.store(false, Ordering::SeqCst);
    let noted = Arc::new(AtomicUsize::new(0));
    let registered = ENDING.map(|signal| flag::register_usize(signal, Arc::clone(&noted), signal as usize));
    let ended = command.spawn().and_then(|child| follow(child, &noted));
    registered.into_iter().flatten().for_each(|id| _ = low_level::unregister(id));
    as_usual.store(true, Ordering::SeqCst);
    ended
}

/// Waits for a run and forwards signals to it. Signals from the terminal's keys reach the run directly.
fn follow(mut child: Child, noted: &AtomicUsize) -> io::Result<(ExitStatus, Option<i32>)> {
    let mut last = None;
    loop {
        let ended = child.try_wait()?;
        if let signal @ 1.. = noted.swap(0, Ordering::SeqCst) as i32 {
            last = Some(signal);
            if signal != SIGINT && ended.is_none() {
                // A run that has ended gets no signal.
                let signal = if signal == SIGTERM { Signal::TERM } else { Signal::HUP };
                _ = rustix::process::kill_process(Pid::from_child(&child), signal);
            }
        }
        if let Some(status) = ended {
            return Ok((status, last));
        }
        thread::sleep(LOOK);
    }
}

/// A temporary folder for the files of the run, which is removed when this value is dropped.
struct Folder(PathBuf);

impl Folder {
    fn create() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("millstream-check-{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that cannot be removed does no harm.
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Returns whether a run can be started with the setting.
fn is_settable(setting: &str) -> bool {
    let key = setting.split('=').next().unwrap_or_default();
    !(key == "cores" || key.ends_with(".service") || key.ends_with(".batch"))
}

/// Returns the arguments without the options that name files of the run.
fn without_files<'a>(args: &[&'a str]) -> Vec<&'a str> {
    let mut kept = Vec::new();
    let mut args = args.iter();
    while let Some(&arg) = args.next() {
        if OF_THE_RUN.contains(&arg) {
            args.next();
        } else if !OF_THE_RUN.iter().any(|option| arg.strip_prefix(option).is_some_and(|rest| rest.starts_with('='))) {
            kept.push(arg);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_run_are_left_out() {
        let args = ["flow.toml", "--trace", "t", "photos", "--report=r.html", "--inflight", "4", "--control", "c"];
        assert_eq!(without_files(&args), ["flow.toml", "photos", "--inflight", "4"]);
        assert!(is_settable("resource.disk=4") && is_settable("stage.a.workers=2"));
        assert!(!is_settable("stage.a.service=-20%") && !is_settable("cores=4"));
    }
}
